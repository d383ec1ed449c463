#!/bin/sh
# Sets up a fresh machine: npm packages, Debian packages, and dist/ of each package.
# Prints nothing and takes well under a second if everything is installed.
#
# usage: sh scripts/setup.sh quickstart|example|containers|test|all
set -eu
cd "$(dirname "$0")/.."
purpose=$1
# Debian omits these from the PATH of users other than root. They contain debootstrap and gearmand.
PATH=$PATH:/usr/sbin:/sbin

# Debian package, a command or a file (or a path pattern) that proves its installation, and its users
# ("quickstart" is for all, "example" also for tests, and "all" only for `npm run test:all` and benchmarks).
# Two packages have a gearmand: the C one of gearman-job-server, and the Perl one of gearman-server, whose
# service stays disabled until /etc/default/gearman-server is edited.
# Keystone, Glance, Nova, Swift and MariaDB come as Debian's libraries and programs: keystone, glance-api, nova-api, swift-proxy
# and mariadb-server would add nothing to them but services, users and a database.
debian_packages() {
  cat <<'TABLE'
python3-diskimage-builder disk-image-create                  quickstart
debootstrap               debootstrap                        quickstart
qemu-utils                qemu-img                           quickstart
kpartx                    kpartx                             quickstart
e2fsprogs                 mkfs.ext4                          quickstart
procps                    ps                                 quickstart
sudo                      sudo                               quickstart
debian-archive-keyring    /usr/share/keyrings/debian-archive-keyring.* quickstart
busybox-static            busybox                            test
gearman-job-server        /usr/sbin/gearmand                 test
gearman-tools             gearadmin                          test
gearman-server            /usr/share/perl5/Gearman/Server.pm all
libgearman-client-perl    /usr/share/perl5/Gearman/Client.pm all
libgearman-dev            /usr/include/libgearman/gearman.h  all
gcc                       gcc                                all
libc6-dev                 /usr/include/stdlib.h              all
mmdebstrap                mmdebstrap                         all
openssl                   openssl                            test
iproute2                  ss                                 test
xfsprogs                  mkfs.xfs                           all
dosfstools                mkfs.vfat                          test
gdisk                     sgdisk                             test
rpm                       rpmbuild                           all
qemu-system-x86           qemu-system-x86_64                 example
dropbear-bin              dropbear                           test
openssh-client            ssh                                example
openssh-server            /usr/sbin/sshd                     test
systemd                   systemd-notify                     test
stunnel4                  stunnel4                           all
curl                      curl                               test
python3-keystone          keystone-manage                    test
python3-glance            /usr/lib/python3/dist-packages/glance/common/wsgi_app.py test
python3-nova              /usr/lib/python3/dist-packages/nova/service.py all
python3-placement         /usr/lib/python3/dist-packages/placement/deploy.py all
python3-pymysql           /usr/lib/python3/dist-packages/pymysql/__init__.py test
python3-swift             /usr/lib/python3/dist-packages/swift/__init__.py test
python3-openstacksdk      /usr/lib/python3/dist-packages/openstack/__init__.py test
uwsgi-plugin-python3      uwsgi_python3                      test
mariadb-server-core       mariadbd                           test
postgresql                /usr/lib/postgresql/*/bin/postgres all
nginx                     nginx                              test
docker-registry           docker-registry                    test
skopeo                    skopeo                             all
mosquitto                 /usr/sbin/mosquitto                test
xz-utils                  xz                                 test
zstd                      zstd                               test
python3-securesystemslib  /usr/lib/python3/dist-packages/securesystemslib/__init__.py test
python3-yaml              /usr/lib/python3/dist-packages/yaml/__init__.py test
python3-winrm             /usr/lib/python3/dist-packages/winrm/protocol.py test
ansible-core              ansible-playbook                   all
ansible-lint              ansible-lint                       all
zsh                       zsh                                all
fish                      fish                               all
man-db                    man                                all
chromium                  chromium                           all
prometheus                promtool                           all
buildah                   buildah                            containers
uidmap                    newuidmap                          containers
netavark                  /usr/lib/podman/netavark            containers
procps                    ps                                 containers
TABLE
}

# Services that the package, or one of its dependencies, would leave enabled.
services_of() {
  case $1 in
    gearman-job-server) echo gearman-job-server.service ;;
    python3-glance) echo open-iscsi.service iscsid.service iscsid.socket ;;
    postgresql) echo postgresql.service ;;
    nginx) echo nginx.service ;;
    docker-registry) echo docker-registry.service ;;
    openssh-server) echo ssh.service ;;
    mosquitto) echo mosquitto.service ;;
    prometheus) echo prometheus.service ;;
  esac
}

missing_debian_packages() {
  debian_packages | while read -r package proof needed_by; do
    case $purpose:$needed_by in
      *:quickstart | test:test | all:test | all:all | test:example | all:example | example:example | containers:containers) ;;
      *) continue ;;
    esac
    # shellcheck disable=SC2086 # may be a pattern
    command -v "$proof" >/dev/null || ls $proof >/dev/null 2>&1 || printf '%s ' "$package"
  done
}

# A command that may be silent for long gets a line every few seconds, so that it does not seem to hang.
with_signs_of_life() {
  title=$1
  shift
  (
    seconds=0
    # Short sleeps, because the last one outlives the loop.
    while sleep 1 >/dev/null 2>&1; do
      seconds=$((seconds + 1))
      if [ $((seconds % 6)) -eq 0 ]; then echo "setup: $title, for $seconds s"; fi
    done
  ) &
  ticker=$!
  status=0
  "$@" || status=$?
  kill "$ticker"
  wait "$ticker" 2>/dev/null || :
  return "$status"
}

# Tests start their own servers, so that installing the packages must not leave services running.
# With SYSTEMD_OFFLINE, systemctl starts nothing. A disabled service does not start at the next boot.
OFFLINE='SYSTEMD_OFFLINE=1'

# Debian's PostgreSQL creates a cluster at its installation unless its configuration disables that.
NO_CLUSTER='/etc/postgresql-common/createcluster.d/nodepool-builder.conf'

is_among() {
  name=$1
  shift
  case " $* " in *" $name "*) return 0 ;; *) return 1 ;; esac
}

# A new machine, such as a container, has no package lists.
has_package_lists() {
  ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1
}

apt_update() {
  with_signs_of_life 'fetching the package lists' apt-get -q update
}

apt_install() {
  with_signs_of_life 'installing the Debian packages' env "$OFFLINE" DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"
}

# Only services that the machine did not have. Existing services are its owner's decision.
new_services() {
  for package; do
    for service in $(services_of "$package"); do
      [ -e "/lib/systemd/system/$service" ] || printf '%s ' "$service"
    done
  done
}

install_debian_packages() {
  echo "setup: installing the Debian packages $*"
  services=$(new_services "$@")
  if is_among postgresql "$@"; then
    trap 'rm -f "$NO_CLUSTER"' EXIT
    echo 'create_main_cluster = false' | install -D -m 644 /dev/stdin "$NO_CLUSTER"
  fi
  has_package_lists || apt_update
  apt_install "$@" || {
    echo 'setup: that failed; trying once more with fresh package lists'
    apt_update
    apt_install "$@"
  }
  # shellcheck disable=SC2086 # a list of names
  if [ -n "$services" ]; then env "$OFFLINE" systemctl disable $services; fi
}

name_debian_packages() {
  services=$(new_services "$@")
  install="sudo env $OFFLINE apt-get install --no-install-recommends $*"
  has_package_lists || install="sudo apt-get update && $install"
  if [ -n "$services" ]; then install="$install && sudo env $OFFLINE systemctl disable $services"; fi
  if is_among postgresql "$@"; then
    install="echo 'create_main_cluster = false' | sudo install -D -m 644 /dev/stdin $NO_CLUSTER && $install"
    install="$install && sudo rm $NO_CLUSTER"
  fi
  echo 'setup: Debian packages are missing; install them with the next line, then run the same again'
  echo "$install"
}

set_up_debian_packages() {
  missing=$(missing_debian_packages)
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null; then
    echo "setup: this is not Debian; install what its packages ${missing}hold, by your system's own means" >&2
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    # shellcheck disable=SC2086 # a list of names
    name_debian_packages $missing >&2
    exit 1
  fi
  # shellcheck disable=SC2086
  install_debian_packages $missing
}

# Kernel for machines under QEMU, with the modules that they load, in this order, unless they are built in. It is not
# installed, because the machine that runs the tests would then boot it.
LINUX='.cache/linux'
LINUX_MODULES='virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk failover
  net_failover virtio_net button evdev nls_cp437 nls_ascii fat vfat'

download_linux() {
  with_signs_of_life 'fetching the kernel' \
    apt-get -q download "$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: *\(linux-image-[0-9]\)/\1/p')"
}

fetch_linux() {
  case $purpose in test | all) [ ! -e "$LINUX" ] || return 0 ;; *) return 0 ;; esac
  echo "setup: fetching a kernel for machines under QEMU to $LINUX"
  rm -rf "$LINUX.new"
  mkdir -p "$LINUX.new/modules"
  (
    cd "$LINUX.new"
    download_linux || {
      echo 'setup: that failed; trying once more with fresh package lists'
      apt_update
      download_linux
    }
    dpkg-deb --fsys-tarfile ./*.deb | tar -x
    mv boot/vmlinuz-* vmlinuz
    builtin=$(find . -name modules.builtin)
    number=10
    for module in $LINUX_MODULES; do
      if grep -q "/$module\.ko\$" "$builtin"; then continue; fi
      # Debian 13 compresses modules, which busybox's insmod cannot read.
      find . -name "$module.ko.xz" -exec xz --decompress {} \;
      mv "$(find . -name "$module.ko")" "modules/$number-$module.ko"
      number=$((number + 1))
    done
    rm -rf ./*.deb boot lib usr
  )
  mv "$LINUX.new" "$LINUX"
}

# "npm run" sets variables with its npm and Node, which remain valid while npm ci
# replaces node_modules/.bin, which comes first in PATH.
npm_ci() {
  if [ -n "${npm_execpath:-}" ] && [ -n "${npm_node_execpath:-}" ]; then
    "$npm_node_execpath" "$npm_execpath" ci "$@"
  else
    npm ci "$@"
  fi
}

set_up_npm_packages() {
  node scripts/npm-packages-current.mjs && return
  echo 'setup: installing the npm packages (npm ci): about half a minute'
  # Only errors, because npm warns of engines on the machine's older Node, which nothing here uses.
  with_signs_of_life 'installing the npm packages' npm_ci --loglevel=error
}

# The Debian packages come first, so that missing ones are reported at once.
set_up_debian_packages
fetch_linux
set_up_npm_packages
PATH=$PWD/node_modules/.bin:$PATH
case $purpose in
  # Tests pack all packages.
  test | all) with_signs_of_life 'compiling the packages' tsc -b packages/* ;;
  *) with_signs_of_life 'compiling nodepool-builder' tsc -b packages/nodepool-builder ;;
esac
