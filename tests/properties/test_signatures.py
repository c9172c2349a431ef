"""Signatures do not depend on where and how the interpreter runs."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from builders import PYTHON, ROOT

_SCRIPT = """
import json, sys
from kos_retry.engine.observe import Evidence, observe
from kos_retry.engine.actions import approach
from kos_retry.model import Action
out = []
for n, text in enumerate(json.load(sys.stdin)):
    actions = (Action(name="edit", input={"b": n, "a": [text]}),)
    e = observe(Evidence(1, 1 + n % 3, (text,), constraints=("t::b", "t::a") if n % 2 else (), actions=actions))
    out.append([e.signature, e.approach, e.coarse, e.error_message])
json.dump(out, sys.stdout)
"""
_TEXTS = [
    "",
    "error: no total\n",
    "2026-03-01T08:15:42.118+01:00 ERROR queue: message lost\n",
    "[08:15:42] refused\n",
    "src/a.c:7:3: error: expected ';'\nmake: *** [all] Error 1\n",
    "Traceback (most recent call last):\n  File \"a.x\", line 3, in f\nKeyError: 'total'\n",
    "FAILED t::b\nFAILED t::a\n",
    "connect ECONNREFUSED 127.0.0.1:5432\n",
    "request 3f1c2d9e-0000-4a10-9c11-aaaaaaaaaaaa failed with status 503\n",
    "cannot open /tmp/tmpx81k/a.db\n",
    "/home/ci/w/src/m.rs:7: error: mismatched types\n",
    "worker pid 4312 exited with exit code 137\n",
    "ÉCHEC: fichier manquant, error: introuvable\n",
    "İstanbul: error: yok\n",
    "straße: ERROR: weiß nicht\n",
    "\x1b[31merror\x1b[0m: no\n",
    "10%\r20%\rerror: no\n",
    "错误: error: 没有\n",
    "error: \ufffd\ufffd\n",
    "\n".join(f"error: thing_{chr(97 + n)} is gone" for n in range(20)),
]
_VARIANTS = {
    "hash-seed-one": {"PYTHONHASHSEED": "1"},
    "hash-seed-two": {"PYTHONHASHSEED": "2", "TZ": "Pacific/Kiritimati"},
    "turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "America/St_Johns"},
    "plain-locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "TZ": "UTC"},
}


def _signed(directory, variables):
    kept = {k: v for k, v in os.environ.items() if k not in ("TZ", "LC_ALL", "LANG", "PYTHONHASHSEED", "PYTHONUTF8")}
    done = subprocess.run(
        [PYTHON, "-c", _SCRIPT],
        input=json.dumps(_TEXTS).encode(),
        capture_output=True,
        check=True,
        cwd=directory,
        env={**kept, "PYTHONPATH": str(ROOT), **variables},
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return _signed(tmp_path_factory.mktemp("reference"), {"PYTHONHASHSEED": "0"})


@pytest.mark.parametrize("variables", _VARIANTS.values(), ids=_VARIANTS)
def test_signature_is_the_same_in_another_environment(tmp_path, reference, variables):
    assert reference == _signed(tmp_path, variables)


def test_every_one_of_these_failures_is_told_apart(reference):
    assert len(_TEXTS) == len({signature for signature, *_ in reference})
