#!/bin/sh
# Turns a machine into a CI node, as scripts of nodepool's users did: creates the user who runs jobs, and describes the
# node's purpose. Runs as root.
set -eu
image=$1

useradd --create-home --shell /bin/bash "$NODE_USER"
install -d -m 700 -o "$NODE_USER" -g "$NODE_USER" "/home/$NODE_USER/.ssh"
echo "$NODE_USER ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$NODE_USER"

echo "$image" >/etc/image-name
echo "user $NODE_USER of image $image is there: $(id "$NODE_USER")"
