#!/bin/sh
# Codex until the tests pass: what the last attempt taught comes on standard input, which Codex adds to the prompt.
# usage: codex.sh TASK TEST_COMMAND
exec kos-retry run --profile agent --transcript codex --guidance stdin --max-attempts 5 --verify "tests=$2" -- \
    codex exec --json --sandbox workspace-write "$1" </dev/null
