#!/bin/sh
# A build script of one's own, with a decision in the middle: JSON in, JSON out.
# usage: build_script.sh COMMAND [ARG]...
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$@" >"$log" 2>&1 && exit 0
code=$?

kos-retry observe --exit-code "$code" --log "$log" | kos-retry next --format text
exit "$code"
