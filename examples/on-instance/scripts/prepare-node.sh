#!/bin/sh
# Makes a machine a node of a CI system, as the scripts of nodepool's users did: somebody who runs jobs, and what the
# node is for. Runs as root.
set -eu
image=$1

useradd --create-home --shell /bin/bash "$NODE_USER"
install -d -m 700 -o "$NODE_USER" -g "$NODE_USER" "/home/$NODE_USER/.ssh"
echo "$NODE_USER ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$NODE_USER"

echo "$image" >/etc/image-name
echo "user $NODE_USER of image $image is there: $(id "$NODE_USER")"
