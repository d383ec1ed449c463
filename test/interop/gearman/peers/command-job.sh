#!/bin/sh
# `gearman -w` runs this for each job, with the payload as its input. README.md describes the behaviours. It reports
# a held job on standard error, and waits on file descriptor 3, because standard output is the result.
case $1 in
  # Read all input before writing, because `gearman -w` writes everything before it reads.
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
