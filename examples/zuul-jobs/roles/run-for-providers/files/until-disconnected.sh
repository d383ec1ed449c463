#!/bin/sh
# Runs a command until it ends, or until a process above it ends: Ansible, or sshd when the connection is lost, as when
# Zuul aborts a job. Then it stops the command, and deletes the directory with the credentials.
#
#     setsid --wait sh until-disconnected.sh DIRECTORY COMMAND [ARGUMENT...]
#
# The new session outlives a signal to Ansible's process group.

directory=$1
shift

ancestors() {
  pid=$$
  while [ "${pid:-0}" -gt 1 ]; do
    echo "$pid"
    pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null)
  done
}

is_connected() {
  [ "$(ancestors)" = "$started" ]
}

started=$(ancestors)
"$@" &
command=$!
# One signal to all processes of the command, which deletes its partial work. A second one would end it at once.
trap 'trap "" HUP INT TERM; kill -s TERM -- "-$$"' HUP INT TERM
{
  trap '' TERM
  while is_connected; do sleep 1; done
  kill -s TERM "$$"
  sleep 60
  rm -rf "$directory"
  kill -s KILL -- "-$$"
} >/dev/null 2>&1 &
watcher=$!

# A signal interrupts "wait".
while kill -0 "$command" 2>/dev/null; do
  wait "$command"
  code=$?
done
{ kill -s KILL "$watcher"; wait "$watcher"; } 2>/dev/null
is_connected || rm -rf "$directory"
exit "${code:-1}"
