#!/bin/sh
# Claude Code until the tests pass: what the last attempt taught stands in the next prompt.
# usage: claude.sh TASK TEST_COMMAND
exec kos-retry run --profile agent --transcript claude --guidance arg --max-attempts 5 --verify "tests=$2" -- \
    claude -p "$1 {guidance}" --output-format stream-json --verbose --permission-mode acceptEdits
