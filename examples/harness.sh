#!/bin/sh
# A loop of one's own: run a command, ask what to do, act on it.
# usage: harness.sh COMMAND [ARG]...      (GUIDANCE holds what was learned, for the command to use)
set -u
session=harness-$$
log=$(mktemp)
trap 'rm -f "$log"' EXIT

while :; do
    "$@" >"$log" 2>&1 && { cat "$log"; echo "harness: passed"; exit 0; }
    code=$?
    GUIDANCE=$(kos-retry observe --exit-code "$code" --log "$log" |
        kos-retry next --session "$session" --exit-code --format text)
    case $? in
        0) echo "harness: trying again" ;;
        10) echo "harness: trying again, with guidance"; export GUIDANCE ;;
        20) echo "harness: asking a human"; echo "$GUIDANCE"; exit "$code" ;;
        30) echo "harness: giving up"; echo "$GUIDANCE"; exit "$code" ;;
        *) echo "harness: kos-retry itself failed"; exit "$code" ;;
    esac
done
