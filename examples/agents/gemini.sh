#!/bin/sh
# Gemini CLI until the tests pass: what the last attempt taught stands in the next prompt.
# usage: gemini.sh TASK TEST_COMMAND        (the folder has to be a trusted one)
exec kos-retry run --profile agent --transcript gemini --guidance arg --max-attempts 5 --verify "tests=$2" -- \
    gemini --output-format stream-json --approval-mode auto_edit -p "$1 {guidance}" </dev/null
