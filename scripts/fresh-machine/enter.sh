#!/bin/sh
# First process of a machine's namespaces: makes the machine's directory its root, runs the command in the
# checkout, writes its status to descriptor 3, and waits for the end of descriptor 4. All processes of the machine end
# with it. It reaps orphans, as init does.
#
# usage: unshare --mount --pid --fork sh enter.sh ROOT COMMAND...
set -eu
root=$1
shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mkdir -p run/lock
pivot_root . .
umount -l .
cd /
status=0
"$@" 3>&- 4>&- || status=$?
echo "$status" >&3
exec 3>&-
read -r _ <&4 || :
