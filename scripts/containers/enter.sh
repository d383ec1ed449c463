#!/bin/sh
# Runs a command as a user with a directory as /mnt, which is also its home, and with 65,536 subordinate ids for
# users in its containers. Nothing outlives the command: /etc, /tmp and /var/tmp remain unchanged.
#
# usage: unshare --mount sh enter.sh USER DIRECTORY COMMAND...
set -eu
user=$1
directory=$2
shift 2
mount --bind "$directory" /mnt
for file in /etc/subuid /etc/subgid; do
  mount --bind /mnt/subordinate-ids "$file"
done
# Some programs use the account's home instead of HOME.
sed 's,^\(nobody:.*\):/nonexistent:,\1:/mnt:,' /etc/passwd >/mnt/passwd
mount --bind /mnt/passwd /etc/passwd
mkdir -p -m 1777 /mnt/tmp
for temporary in /tmp /var/tmp; do mount --bind /mnt/tmp "$temporary"; done
cd /mnt
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env HOME=/mnt XDG_RUNTIME_DIR=/mnt/run "$@"
