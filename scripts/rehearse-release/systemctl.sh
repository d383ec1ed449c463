#!/bin/sh
# Stands in for systemctl where systemd does not run: enable --now UNIT and disable --now UNIT. It starts the unit's
# command with its environment and directories, without its restrictions.
set -eu
name=$3
unit=/etc/systemd/system/$name.service
value() { sed -n "s/^$1=//p" "$unit" | sed 's/ \$OPTIONS//'; }
case $1 in
  enable)
    mkdir -p "/var/cache/$(value CacheDirectory)"
    # shellcheck disable=SC2046 # lists of words
    setsid env $(value Environment) $(value ExecStart) </dev/null >"/run/$name.log" 2>&1 &
    echo $! >"/run/$name.pid"
    until grep -qs ': serving ' "/run/$name.log"; do
      kill -0 "$(cat "/run/$name.pid")" || { cat "/run/$name.log"; exit 1; }
      sleep 0.2
    done
    ;;
  disable)
    kill "$(cat "/run/$name.pid")"
    while kill -0 "$(cat "/run/$name.pid")" 2>/dev/null; do sleep 0.2; done
    rm "/run/$name.pid" "/run/$name.log"
    ;;
esac
