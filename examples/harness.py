"""A loop of one's own: run a command, ask what to do, act on it. usage: harness.py COMMAND [ARG]..."""

import json
import os
import subprocess
import sys

history, environment = [], dict(os.environ)
while True:
    done = subprocess.run(sys.argv[1:], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode == 0:
        print("harness: passed")
        sys.exit(0)
    row = {"attempt": len(history) + 1, "exit_code": done.returncode, "output": done.stdout.decode(errors="replace")}
    observed = subprocess.run(
        ["kos-retry", "observe", "--jsonl"], input=json.dumps(row), capture_output=True, text=True, check=True
    )
    history.append(json.loads(observed.stdout)["envelope"])
    asked = subprocess.run(
        ["kos-retry", "next"], input=json.dumps({"history": history}), capture_output=True, text=True, check=True
    )
    decision = json.loads(asked.stdout)
    history[-1]["emitted_recommendation"] = decision["recommendation"]
    match decision["recommendation"]:
        case "continue":
            print("harness: trying again")
        case "pivot_strategy":
            print("harness: trying again, with guidance")
            environment["GUIDANCE"] = decision["guidance"]
        case "escalate_to_supervisor" | "halt_loop" as what:
            print(f"harness: {what}: {decision['reasons'][0]['evidence']}")
            sys.exit(done.returncode)
