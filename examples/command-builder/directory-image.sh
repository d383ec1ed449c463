#!/bin/sh
# Creates a file system image of a directory, as NAME.raw and NAME.qcow2.
#
# usage: directory-image.sh DIRECTORY NAME
set -eu
directory=$1
name=$2
mke2fs -q -t ext4 -d "$directory" "$name.raw" 64M
qemu-img convert -O qcow2 "$name.raw" "$name.qcow2"
