#!/bin/sh
# Runs the unchanged configurations in examples/all-in-one and examples/many-hosts under the units in examples/systemd.
set -eux
value() { systemctl show "$1" --property="$2" --value; }
until_value() { until [ "$(value "$1" "$2")" = "$3" ]; do sleep 0.1; done; }
before=$(journalctl --lines=0 --show-cursor | sed -n 's/^-- cursor: //p')
until_image() {
  until ls "$1"; do
    ! journalctl --after-cursor="$before" | grep 'build .* failed' || exit 1
    sleep 0.2
  done
}

# Stands in for disk-image-create, because Debian cannot be downloaded here, and creates an empty disk.
cat >/usr/local/bin/disk-image-create <<'PROGRAM'
#!/bin/sh
set -eu
while [ "$1" != -o ]; do shift; done
qemu-img create -q -f qcow2 "$2.qcow2" 1M
PROGRAM
chmod 755 /usr/local/bin/disk-image-create
rm -r /opt/nodepool/images /var/lib/libvirt/images

# The commands of the README.
mkdir -p /opt/nodepool/images /var/lib/libvirt/images
cp /opt/checkout/examples/all-in-one/nodepool.yaml /etc/nodepool
systemctl start nodepool-all-in-one
until_image /var/lib/libvirt/images/debian-latest.qcow2
systemctl stop nodepool-all-in-one
rm -r /opt/nodepool/images

# The commands of examples/many-hosts, all on one host.
ip link set lo up
ip address add 192.0.2.1/32 dev lo
mkdir -p /srv/images
printf 'OPTIONS="--build-workers 2 --web 8080"\n' >/etc/default/nodepool-builder
printf 'OPTIONS="--web 192.0.2.1:8080"\n' >/etc/default/nodepool-manager
# The kernel's settings must not be changed, and nothing can be downloaded.
sed -e '/^sysctl /d' -e 's/^apt-get install/& --no-download/' /root/many-hosts.sh >/root/commands-of-readme.sh
cd /opt/checkout/examples/many-hosts
sh -eux /root/commands-of-readme.sh
cd /
for name in debian debian-12 debian-efi; do until_image "/srv/images/$name-latest.qcow2"; done
[ "$(value nodepool-manager User)" = nodepool ]
[ "$(value nodepool-manager NRestarts) $(value nodepool-builder NRestarts)" = '0 0' ]
[ "$(value gearman-job-server User)" = gearman ]
curl --fail --silent --output /dev/null http://127.0.0.1:8080/
curl --fail --silent --output /dev/null http://192.0.2.1:8080/
# The manager, which is not root, deletes an image that a builder has written as root.
first=$(readlink /srv/images/debian-latest.qcow2)
nodepool-builder rebuild debian -c /etc/nodepool/nodepool.yaml
while [ -e "/srv/images/$first" ]; do sleep 0.2; done
until_image /srv/images/debian-latest.qcow2

# A manager with a fast watchdog.
mkdir -p /run/systemd/system/nodepool-manager.service.d
printf '[Service]\nWatchdogSec=4s\nRestartSec=1s\n' >/run/systemd/system/nodepool-manager.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart nodepool-manager
first=$(value nodepool-manager WatchdogTimestampMonotonic)
until [ "$(value nodepool-manager WatchdogTimestampMonotonic)" -gt $((first + 6000000)) ]; do sleep 0.2; done
[ "$(value nodepool-manager NRestarts)" = 0 ]
systemctl kill --kill-whom=main --signal=STOP nodepool-manager
until_value nodepool-manager NRestarts 1
until_value nodepool-manager SubState running

systemctl stop nodepool-manager nodepool-builder gearman-job-server
[ "$(value nodepool-manager Result) $(value nodepool-builder Result)" = 'success success' ]
rm /usr/local/bin/disk-image-create
