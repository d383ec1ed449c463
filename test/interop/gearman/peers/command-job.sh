#!/bin/sh
# What `gearman -w` runs for each job, with the payload as its input. README.md has the behaviours. It tells
# of a held job on standard error, and waits on file descriptor 3: its standard output is the result.
case $1 in
  # All is read before any is written: `gearman -w` writes all before it reads any.
  echo) exec perl -0777 -pe 1 ;;
  empty) exit 0 ;;
  fail) exit 1 ;;
  held)
    payload=$(od -An -v -tx1 | tr -d ' \n')
    echo "job $payload" >&2
    read -r _ <&3
    printf done
    ;;
esac
