#!/bin/sh
# Builds an image under the restrictions of nodepool-builder.service, and then once for each restriction that the unit
# omits, with that one added. The first build succeeds; the log of each other one shows what the restriction forbids.
set -eu

# Name of a build, its line in the unit, and a regular expression that matches its log, but not the first build's.
exceptions() {
  cat <<'TABLE'
user User=nodepool no.new.privileges
sys-admin CapabilityBoundingSet=~CAP_SYS_ADMIN mount: .*permission denied
sys-chroot CapabilityBoundingSet=~CAP_SYS_CHROOT reassociate to namespace .* failed
mknod CapabilityBoundingSet=~CAP_MKNOD mknod: null: Operation not permitted
dac-override CapabilityBoundingSet=~CAP_DAC_OVERRIDE file: Permission denied
chown CapabilityBoundingSet=~CAP_CHOWN chown: file: Operation not permitted
fowner CapabilityBoundingSet=~CAP_FOWNER chmod: file: Operation not permitted
fsetid CapabilityBoundingSet=~CAP_FSETID the set-group-ID bit is gone
setuid CapabilityBoundingSet=~CAP_SETUID setresuid.*Operation not permitted
setgid CapabilityBoundingSet=~CAP_SETGID unable to set runas group vector
setfcap CapabilityBoundingSet=~CAP_SETFCAP PermissionError: .*ping
kill CapabilityBoundingSet=~CAP_KILL kill: .*Operation not permitted
audit CapabilityBoundingSet=~CAP_AUDIT_WRITE unable to send audit message
mount SystemCallFilter=~@mount mount: .*permission denied
privileged SystemCallFilter=~@privileged setresuid.*Operation not permitted
resources SystemCallFilter=~@resources pam_open_session: Permission denied
private-devices PrivateDevices=yes mknod: null: Operation not permitted
device-policy DevicePolicy=closed BlockDeviceSetupException: exec_sudo failed
namespaces RestrictNamespaces=yes the build has no namespaces of its own
private-users PrivateUsers=yes setresuid.*Invalid argument
no-new-privileges NoNewPrivileges=yes find: .private.: Permission denied
suid RestrictSUIDSGID=yes chmod: file: Operation not permitted
architectures SystemCallArchitectures=native Bad system call
personality LockPersonality=yes personality.*Operation not permitted
write-execute MemoryDenyWriteExecute=yes Fatal error
TABLE
}

log_of() {
  cat "/opt/build-$1"/*.log 2>/dev/null || true
  journalctl --unit="build-$1" --output=cat
}

# A unit that builds an image once.
add_build() {
  sed -E -e '/^(Type|NotifyAccess|WatchdogSec|TimeoutStartSec|ExecReload|Restart|RestartSec|StateDirectory)=/d' \
    -e 's/^\[Service\]/&\nType=oneshot/' \
    -e "s|^ExecStart=.*|ExecStart=/usr/bin/env nodepool-builder build packages -c /etc/nodepool/build.yaml --output /opt/build-$1|" \
    /etc/systemd/system/nodepool-builder.service >"/run/systemd/system/build-$1.service"
  printf '[Service]\n%s\n' "$2" >>"/run/systemd/system/build-$1.service"
  mkdir -m 777 "/opt/build-$1"
}

cat >/etc/nodepool/build.yaml <<'YAML'
images-dir: /opt/nodepool/images
elements-dir: /opt/checkout/test/elements
diskimages:
  - {name: packages, elements: [mini-os, mini-packages], formats: [raw]}
YAML
add_build plain ''
exceptions | while read -r name line _; do add_build "$name" "$line"; done
systemctl daemon-reload
systemctl start build-plain || { log_of plain; exit 1; }
# Builds mostly wait for programs to start.
exceptions | while read -r name _; do echo "build-$name"; done | xargs -n 1 -P 3 systemctl start || true
exceptions | {
  status=0
  while read -r name line message; do
    if ! log_of plain | grep -q -e "$message" && log_of "$name" | grep -q -e "$message"; then
      echo "needed: no $line"
    else
      log_of "$name" | tail -30
      echo "not needed, or for another reason: no $line"
      status=1
    fi
  done
  exit "$status"
}
