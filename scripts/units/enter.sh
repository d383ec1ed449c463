#!/bin/sh
# Starts systemd on a machine in a directory, as the first process of its own namespaces. It sees no file system of this
# machine except the read-only checkout, only devices like null and loop devices, and no network. Otherwise it would
# set up this machine: empty /tmp, rename network interfaces, and change settings in /proc/sys.
#
# usage: unshare --cgroup --mount --net --pid --ipc --uts --fork sh enter.sh ROOT CHECKOUT
set -eu
root=$1
checkout=$2
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
  : >"dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
# A build attaches loop devices, which the kernel shares among all namespaces.
mknod dev/loop-control c 10 237
for number in $(seq 0 31); do mknod "dev/loop$number" b 7 "$number"; done
mkdir dev/pts dev/shm dev/mqueue dev/hugepages
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p opt/checkout mnt
mount --bind "$checkout" opt/checkout
mount -o remount,bind,ro opt/checkout
pivot_root . mnt
cd /
umount -l /mnt
export container=nodepool-builder
exec setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_boot,-syslog \
  /lib/systemd/systemd --system --unit=test.target --log-target=journal --show-status=no
