#!/usr/bin/env python3
"""A stand-in for the agents of these examples: a script without a model, which speaks their real formats.

It is whichever agent it is called as (a link named `claude`, `codex`, `gemini`, `opencode` or `own-agent`). It edits `answer.txt`: wrongly
at first, and rightly where its prompt, in its words or on standard input, tells what failed. It is content either way, as agents are.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

Events = Iterator[dict[str, Any]]
CALL = {"path": "answer.txt"}


def main() -> None:
    agent = os.path.basename(sys.argv[0])
    prompt = " ".join(sys.argv[1:]) + (sys.stdin.read() if agent == "codex" else "")
    with open("prompts.jsonl", "a") as file:
        file.write(json.dumps(prompt) + "\n")
    answer = "42" if "Look first at" in prompt else "41"
    with open("answer.txt", "w") as file:
        file.write(answer)
    for event in AGENTS[agent]({**CALL, "text": answer}):
        print(json.dumps(event))


def claude(call: dict[str, str]) -> Events:
    use = {"type": "tool_use", "id": "t1", "name": "Write", "input": call}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": "saved"}
    yield {"type": "system", "subtype": "init", "session_id": "s1", "claude_code_version": "2"}
    yield {"type": "assistant", "message": {"id": "m1", "content": [use]}, "parent_tool_use_id": None}
    yield {"type": "user", "message": {"content": [done]}, "parent_tool_use_id": None}
    usage = {"input_tokens": 900, "output_tokens": 20}
    end = {"num_turns": 2, "result": "Done.", "session_id": "s1", "total_cost_usd": 0.01, "usage": usage}
    yield {"type": "result", "subtype": "success", "is_error": False, "permission_denials": [], **end}


def codex(call: dict[str, str]) -> Events:
    changes = [{"path": call["path"], "kind": "update", "diff": call["text"]}]
    yield {"type": "thread.started", "thread_id": "t1"}
    yield {"type": "turn.started"}
    yield {
        "type": "item.completed",
        "item": {"id": "i1", "type": "file_change", "changes": changes, "status": "completed"},
    }
    yield {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done."}}
    yield {"type": "turn.completed", "usage": {"input_tokens": 900, "output_tokens": 20}}


def gemini(call: dict[str, str]) -> Events:
    yield {"type": "init", "session_id": "s1", "model": "none"}
    yield {"type": "tool_use", "tool_name": "write_file", "tool_id": "t1", "parameters": call}
    yield {"type": "tool_result", "tool_id": "t1", "status": "success", "output": "saved"}
    yield {"type": "message", "role": "assistant", "content": "Done.", "delta": True}
    yield {"type": "result", "status": "success", "stats": {"input_tokens": 900, "output_tokens": 20, "tool_calls": 1}}


def opencode(call: dict[str, str]) -> Events:
    state = {"status": "completed", "input": call, "output": "saved"}
    end = {"type": "step-finish", "reason": "stop", "cost": 0.01, "tokens": {"input": 900, "output": 20}}
    yield {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}}
    yield {
        "type": "tool_use",
        "sessionID": "ses_1",
        "part": {"type": "tool", "tool": "write", "callID": "c1", "state": state},
    }
    yield {"type": "text", "sessionID": "ses_1", "part": {"type": "text", "text": "Done."}}
    yield {"type": "step_finish", "sessionID": "ses_1", "part": end}


def own_agent(call: dict[str, str]) -> Events:
    yield {"kind": "action", "id": "1", "tool": "write", "input": call}
    yield {"kind": "observation", "id": "1", "ok": True, "output": "saved"}
    yield {
        "kind": "finish",
        "ok": True,
        "stop_reason": "done",
        "usage": {"input_tokens": 900, "output_tokens": 20, "cost_usd": 0.01},
    }


AGENTS = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode, "own-agent": own_agent}

if __name__ == "__main__":
    main()
