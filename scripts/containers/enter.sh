#!/bin/sh
# Runs a command as a user, with a directory as /mnt, which is also its home, and with 65,536 subordinate ids for the users
# in its containers. Nothing of this outlives the command: /etc stays as it is.
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
cd /mnt
exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env HOME=/mnt XDG_RUNTIME_DIR=/mnt/run "$@"
