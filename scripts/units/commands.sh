#!/bin/sh
# Starts, reloads and stops a builder with manager and job server, on a machine with systemd.
set -eux
value() { systemctl show "$1" --property="$2" --value; }
until_value() { until [ "$(value "$1" "$2")" = "$3" ]; do sleep 0.1; done; }

systemctl start nodepool-all-in-one
value nodepool-all-in-one StatusText | grep 'Job servers: 127.0.0.1:4730'
until ls /var/lib/libvirt/images/docs-latest.raw; do sleep 0.2; done
# This image is built by diskimage-builder, which mounts and enters a file system on a loop device.
until ls /var/lib/libvirt/images/mini-latest.raw; do
  ! journalctl | grep 'build mini.* failed' || exit 1
  sleep 0.5
done
debugfs -R 'cat /etc/mini-mark' /var/lib/libvirt/images/mini-latest.raw | grep 'built under systemd'
[ -z "$(losetup --list --noheadings | grep /opt/nodepool)" ]
systemctl reload nodepool-all-in-one
until journalctl | grep -q 'reloaded /etc/nodepool/nodepool.yaml'; do sleep 0.1; done
until_value nodepool-all-in-one SubState running

# The journal has one identifier, a priority per line, one timestamp, and no output of builds, which is in their logs.
! nodepool-builder image-build broken --image-id broken-1 -c /etc/nodepool/nodepool.yaml || exit 1
until journalctl --identifier=nodepool-builder --priority=err --output=cat |
  grep '^nodepool\.builder\.BuildWorker: build broken-1 .* failed'; do sleep 0.1; done
[ -z "$(journalctl --quiet --identifier=env)" ]
! journalctl --unit=nodepool-all-in-one --output=cat | grep -E '^(<[0-9]>|[0-9]{4}-)' || exit 1
! journalctl --unit=nodepool-all-in-one | grep 'nodepool\.image\.build' || exit 1
nodepool-builder logs broken-1 -c /etc/nodepool/nodepool.yaml | grep '^+ exit 3$'

systemctl stop nodepool-all-in-one
[ "$(value nodepool-all-in-one Result)" = success ]
