#!/bin/sh
# Runs the suite in parallel; where something fails, only that is run again.
exec kos-retry run --delay 0 --collect report.xml \
  --retry-command 'tr "\n" "\0" < "$KOS_RETRY_FAILING_FILE" | xargs -0 pytest -q -n 2 --junitxml report.xml' \
  -- pytest -q -n 2 --junitxml report.xml
