#!/bin/sh
# opencode until the tests pass: what the last attempt taught is one more word of the message.
# usage: opencode.sh TASK TEST_COMMAND
exec kos-retry run --profile agent --transcript opencode --guidance append --max-attempts 5 --verify "tests=$2" -- \
    opencode run --format json "$1"
