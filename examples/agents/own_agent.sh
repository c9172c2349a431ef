#!/bin/sh
# An agent of one's own, which reads the guidance from a file and tells what it did in the generic format.
# usage: own_agent.sh TASK TEST_COMMAND
export TASK="$1"
exec kos-retry run --profile agent --transcript generic --guidance file --max-attempts 5 --verify "tests=$2" -- \
    sh -c 'own-agent "$TASK $(cat "${KOS_RETRY_GUIDANCE_FILE:-/dev/null}")"'
