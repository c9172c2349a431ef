"""What changes from run to run does not change a signature, and what a failure means does.

For every class of circumstance two random instances are put into error texts; for every kind of identity two
different ones. The same examples are tried every time.
"""

from __future__ import annotations

import string
import uuid

import pytest
from builders import observed
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

_TEXTS = [
    "error: {} cannot load the queue\n",
    "ERROR: failed to load the queue {}\n",
    "fatal: {} is corrupt, giving up\n",
    "step 1\nQueueError: no message for {} was found\nbye\n",
    'Traceback (most recent call last):\n  File "a.x", line 3, in f\nKeyError: no queue in {}\n',
    "src/queue.c:7:3: error: unexpected {} here\n",
    "panic: cannot open {} for the queue\n",
    "not ok 3 - loads the queue {}\n",
    "connection refused ({}) by the queue\n",
    "FAILED tests/queue::loads [{}]\n",
    "error[Q12]: the queue '{}' is missing\n",
    "E   assert queue is ready, {}\n",
    "2026-03-01T08:15:42Z ERROR queue - cannot load {}\n",
    "[error] the queue {} is gone\n",
    "E0301 08:15:42.118221    4411 queue.c:7] cannot sync {}\n",
    "queue: {}: No such file or directory\n",
    "make: *** [Makefile:7: queue] Error 2\nqueue.c:7: error: {} undeclared\n",
    'Exception in thread "main" java.lang.IllegalStateException: queue {} is closed\n\tat shop.Queue.load(Queue.java:7)\n',
    "Caused by: shop.QueueException: no consumer for {}\n",
    "Error: Cannot find module 'queue' near {}\n    at load (/srv/w/queue.js:7:3)\n",
    "TypeError: queue is not iterable ({})\n    at Queue.next (file:///srv/w/queue.mjs:7:3)\n",
    "thread 'main' panicked at src/queue.rs:7:5:\nqueue is empty: {}\n",
    "--- FAIL: TestQueue (0.01s)\n    queue_test.go:7: cannot read {}\n",
    "  1) Queue loads:\n     Error: missing {}\n",
    "  ● Queue › loads\n\n    Expected the queue to be ready: {}\n",
    "FAIL src/queue.test.js\n  ✕ loads the queue {}\n",
    "queue.py:7: error: Incompatible types near {}  [assignment]\n",
    "npm ERR! queue {} is not in this registry\n",
    "ERROR: Could not find a version for {}\n",
    "curl: (7) Failed to connect to the queue {}\n",
    "ssh: connect to the queue {} failed: Connection refused\n",
    "fatal: unable to access the queue {}: not found\n",
    "psql: error: connection to the queue {} failed\n",
    'ERROR:  relation "queue" does not exist ({})\n',
    "==4120==ERROR: AddressSanitizer: heap-use-after-free on {}\n",
    "Segmentation fault (core dumped) in {}\n",
    "queue: symbol lookup error: {}: undefined symbol: load\n",
    "Error response from daemon: queue {} is not running\n",
    "The connection to the queue {} was refused\n",
    "CRITICAL:root:queue {} failed to start\n",
    'level=error msg="cannot load the queue" name={}\n',
    '{{"level":"error","msg":"cannot load the queue","name":"{}"}}\n',
    "queue 3 of 4\nerror: giving up on {}\n",
    "not ok 7 loads the queue\n  ---\n  message: 'missing {}'\n  ...\n",
    "AssertionError: {} not found in the queue\n",
    "assertion failed: queue is ready: {}\n",
    "rsync: read error: {} (104)\n",
    "error: linking with `cc` failed: {}\n",
    "UnhandledPromiseRejection: the queue {} was rejected\n",
    "warning: queue is slow\nerror: the queue {} is corrupt\n",
]
# Two pairs for each class are tried in every text; making a failing one smaller would cost minutes.
_few = settings(
    derandomize=True,
    database=None,
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

_small = st.integers(0, 9)
_hex = "0123456789abcdef"
_word = st.text(string.ascii_lowercase, min_size=3, max_size=8)
_two = "{:02d}".format
_date = st.tuples(st.integers(2021, 2029), st.integers(1, 12), st.integers(1, 28))
_time = st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
_moment = st.tuples(_date, _time, st.integers(0, 999_999))
# What systems hand out, without the few high ports that name a service.
_port = st.integers(32768, 65535).filter(lambda n: n not in (50051, 61616))
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def _clock(time) -> str:
    return ":".join(map(_two, time))


def _digest(size: int, more: str = _hex):
    """Return hexadecimal ids with letters and digits in them, as nearly all ids of that length have."""
    return st.text(more, min_size=size, max_size=size).filter(
        lambda t: any(c.isdigit() for c in t) and sum(c.isalpha() for c in t) > 1
    )


_CIRCUMSTANCE = {
    "iso-time": _moment.map(lambda m: f"{m[0][0]}-{m[0][1]:02d}-{m[0][2]:02d}T{_clock(m[1])}Z"),
    "iso-time-with-zone": _moment.map(
        lambda m: f"{m[0][0]}-{m[0][1]:02d}-{m[0][2]:02d}T{_clock(m[1])}.{m[2]:06d}+0{m[0][1] % 10}:00"
    ),
    "time-of-a-log": _moment.map(lambda m: f"{m[0][0]}-{m[0][1]:02d}-{m[0][2]:02d} {_clock(m[1])},{m[2] // 1000:03d}"),
    "time-with-slashes": _moment.map(lambda m: f"{m[0][0]}/{m[0][1]:02d}/{m[0][2]:02d} {_clock(m[1])}"),
    "time-of-mail": _moment.map(
        lambda m: f"{_DAYS[m[0][2] % 7]}, {m[0][2]:02d} {_MONTHS[m[0][1] - 1]} {m[0][0]} {_clock(m[1])} GMT"
    ),
    "time-of-syslog": _moment.map(lambda m: f"{_MONTHS[m[0][1] - 1]} {m[0][2]:2d} {_clock(m[1])}"),
    "date": _date.map(lambda d: f"{d[0]}-{d[1]:02d}-{d[2]:02d}"),
    "clock": _time.map(_clock),
    "clock-with-fraction": st.tuples(_time, st.integers(0, 999)).map(lambda t: f"{_clock(t[0])}.{t[1]:03d}"),
    "epoch-seconds": st.integers(1_609_459_200, 1_893_456_000).map(str),
    "epoch-milliseconds": st.integers(1_609_459_200_000, 1_893_456_000_000).map(str),
    "duration-seconds": st.floats(0.01, 999).map(lambda s: f"{s:.2f}s"),
    "duration-milliseconds": st.integers(1, 9999).map(lambda n: f"{n}ms"),
    "duration-of-parts": st.tuples(st.integers(1, 59), st.integers(1, 59)).map(lambda p: f"{p[0]}m {p[1]}s"),
    "duration-in-words": st.integers(2, 900).map(lambda n: f"{n} seconds"),
    "address": st.integers(0x1000, 2**47).map(lambda n: f"0x{n:012x}"),
    "short-address": st.integers(0x1000, 2**24).map(hex),
    "object": st.integers(0x10000000, 2**32 - 1)
    .map(lambda n: f"Queue@{n:x}")
    .filter(lambda t: any(c.isdigit() for c in t[6:])),
    "uuid": st.uuids(version=4).map(str),
    "uuid-in-capitals": st.uuids(version=4).map(lambda u: str(u).upper()),
    "uuid-of-a-time": st.integers(0, 2**127).map(lambda n: str(uuid.UUID(int=n))),
    "short-commit": _digest(7),
    "container": _digest(12),
    "commit": _digest(40),
    "digest": _digest(64).map(lambda t: f"sha256:{t}"),
    "temporary-directory": st.text(string.ascii_lowercase + "0123456789_", min_size=8, max_size=8).map(
        lambda t: f"/tmp/tmp{t}/queue.db"
    ),
    "temporary-file": st.text(string.ascii_letters + string.digits, min_size=6, max_size=10).map(
        lambda t: f"/tmp/queue.{t}"
    ),
    "temporary-directory-of-a-mac": st.tuples(_word, _word).map(lambda w: f"/var/folders/x1/{w[0]}/T/{w[1]}/queue.db"),
    "checkout": st.lists(_word, min_size=2, max_size=5).map(lambda parts: "/" + "/".join([*parts, "src", "queue.c"])),
    "checkout-and-line": st.tuples(st.lists(_word, min_size=2, max_size=4), st.integers(1, 9999)).map(
        lambda p: "/" + "/".join([*p[0], "src", f"queue.c:{p[1]}"])
    ),
    "home": _word.map(lambda name: f"/home/{name}/queue.db"),
    "line-of-a-file": st.tuples(st.integers(1, 9999), st.integers(1, 200)).map(lambda p: f"src/queue.c:{p[0]}:{p[1]}"),
    "pid": st.integers(2, 4_194_304).map(lambda n: f"pid {n}"),
    "pid-with-equals": st.integers(2, 4_194_304).map(lambda n: f"pid={n}"),
    "process": st.integers(2, 4_194_304).map(lambda n: f"process {n}"),
    "thread": st.integers(1, 99_999).map(lambda n: f"Thread-{n}"),
    "port": _port.map(lambda n: f"localhost:{n}"),
    "port-of-an-address": _port.map(lambda n: f"127.0.0.1:{n}"),
    "port-in-words": _port.map(lambda n: f"port {n}"),
    "ip": st.tuples(*[st.integers(1, 254)] * 3).map(lambda p: f"10.{p[0]}.{p[1]}.{p[2]}"),
    "ip-and-port": st.tuples(st.integers(1, 254), st.integers(1, 254), _port).map(
        lambda p: f"10.{p[0]}.7.{p[1]}:{p[2]}"
    ),
    "ipv6": st.tuples(*[st.integers(0x1000, 0xFFFF)] * 3).map(
        lambda p: f"[2001:db8::{p[0]:x}:{p[1]:x}:{p[2]:x}]:50512"
    ),
    "url": st.tuples(st.integers(1, 254), _port).map(lambda p: f"http://10.0.0.{p[0]}:{p[1]}/queue"),
    "query": _digest(16).map(lambda t: f"https://api.example/queue?token={t}"),
    "size": st.floats(0.1, 999).map(lambda n: f"{n:.1f} MiB"),
    "size-in-bytes": st.integers(1000, 10**9).map(lambda n: f"{n} bytes"),
    "progress": st.tuples(st.integers(1, 999), st.integers(1000, 9999)).map(lambda p: f"[{p[0]}/{p[1]}]"),
    "progress-in-words": st.tuples(st.integers(1, 9), st.integers(10, 99)).map(lambda p: f"{p[0]} of {p[1]}"),
    "percentage-of-progress": st.integers(1, 99).map(lambda n: f"[{n:3d}%]"),
    "seed": st.integers(0, 2**32).map(lambda n: f"seed={n}"),
    "seed-in-words": st.integers(0, 2**32).map(lambda n: f"random seed {n}"),
    "big-number": st.integers(100_000, 10**12).map(str),
    "request-id": _digest(16).map(lambda t: f"request_id={t}"),
    "pod": st.tuples(
        st.text("bcdfghjklmnpqrstvwxz2456789", min_size=9, max_size=9),
        st.text("bcdfghjklmnpqrstvwxz2456789", min_size=5, max_size=5),
    )
    .filter(lambda p: any(c.isdigit() for c in p[0]))
    .map(lambda p: f"queue-{p[0]}-{p[1]}"),
}


def _apart(strategy):
    return st.lists(strategy, min_size=2, max_size=2, unique=True)


def _signature(text: str, **fields) -> str:
    return observed(text, **fields).signature


def _compared(one: str, other: str) -> dict[str, bool]:
    """Return for each text whether its signature is the same with either of two words in it."""
    return {text: _signature(text.format(one)) == _signature(text.format(other)) for text in _TEXTS}


@pytest.mark.parametrize("instances", _CIRCUMSTANCE.values(), ids=_CIRCUMSTANCE)
@_few
@given(data=st.data())
def test_circumstance_does_not_change_the_signature(instances, data):
    one, other = data.draw(_apart(instances))
    assert [] == [text for text, same in _compared(one, other).items() if not same]


_name = st.sampled_from(
    ["load", "store", "drop_all", "find_first", "parse_total", "merge", "split_words", "update", "remove"]
)
_file = st.sampled_from(["queue.c", "stack.c", "main.rs", "app.test.ts", "queue_test.go", "index.js", "a.py"])
_IDENTITY = {
    "exit-code": st.integers(1, 255).map(lambda n: f"exit code {n}"),
    "exit-status": st.integers(1, 255).map(lambda n: f"exited with status {n}"),
    "signal": st.integers(1, 31).map(lambda n: f"signal {n}"),
    "name-of-a-signal": st.sampled_from(["SIGSEGV", "SIGKILL", "SIGABRT", "SIGTERM"]),
    "http-status": st.integers(400, 599).map(lambda n: f"status {n}"),
    "http-status-code": st.integers(400, 599).map(lambda n: f"status code: {n}"),
    "http-version-and-status": st.integers(400, 599).map(lambda n: f"HTTP/1.1 {n}"),
    "errno": st.integers(1, 133).map(lambda n: f"[Errno {n}]"),
    "name-of-an-errno": st.sampled_from(["ECONNREFUSED", "EACCES", "ENOENT", "EPIPE", "ETIMEDOUT"]),
    "rule": st.integers(100, 999).map(lambda n: f"E{n}"),
    "code-of-a-compiler": st.integers(1000, 9999).map(lambda n: f"TS{n}"),
    "sqlstate": st.integers(10000, 99999).map(lambda n: f"SQLSTATE {n}"),
    "test": _name.map(lambda n: f"tests/queue::test_{n}"),
    "numbered-test": st.integers(1, 999).map(lambda n: f"test_case_{n}"),
    "parameter": st.integers(0, 999).map(lambda n: f"test_total[{n}-a]"),
    "named-parameter": _name.map(lambda n: f"test_total[{n}]"),
    "module": _name.map(lambda n: f"shop.queue.{n}"),
    "type": st.sampled_from(["KeyError", "ValueError", "QueueError", "IOException"]),
    "file": _file.map(lambda f: f"src/{f}"),
    "file-of-a-checkout": _file.map(lambda f: f"/home/ci/w/src/{f}:7"),
    "file-of-a-temporary-directory": _file.map(lambda f: f"/tmp/tmpx81k/{f}"),
    "version": st.tuples(_small, _small, _small).map(lambda v: f"version {v[0]}.{v[1]}.{v[2]}"),
    "required-version": st.tuples(_small, _small).map(lambda v: f"lib>={v[0]}.{v[1]}"),
    "expected-value": st.integers(0, 99_999).map(lambda n: f"expected {n} got 4"),
    "received-value": st.integers(0, 99_999).map(lambda n: f"expected 4 but was {n}"),
    "compared-value": st.integers(0, 99_999).map(lambda n: f"assert {n} == 4"),
    "value-in-quotes": _word.map(lambda w: f"'{w}'"),
    "service-port": st.sampled_from([80, 443, 3306, 5432, 6379, 8080, 9200]).map(lambda n: f"db:{n}"),
    "host": _word.map(lambda w: f"https://{w}.example/queue"),
    "path-of-a-url": _word.map(lambda w: f"https://api.example/{w}"),
    "time-limit": st.integers(1, 999).map(lambda n: f"timed out after {n}s"),
    "small-number": st.integers(0, 99).map(lambda n: f"column {n}"),
    "library": _word.map(lambda w: f"lib{w}.so.1"),
    "variable": _word.map(lambda w: w.upper() + "_URL"),
}


@pytest.mark.parametrize("instances", _IDENTITY.values(), ids=_IDENTITY)
@_few
@given(data=st.data())
def test_identity_changes_the_signature(instances, data):
    one, other = data.draw(_apart(instances))
    assert [] == [text for text, same in _compared(one, other).items() if same]


_ENDS = {
    "exit-code": ({"exit_code": 2}, {"exit_code": 3}),
    "signal": ({"exit_code": 137, "signal": "SIGKILL"}, {"exit_code": 143, "signal": "SIGTERM"}),
    "signal-or-code": ({"exit_code": 137, "signal": "SIGKILL"}, {"exit_code": 137}),
}


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize(("one", "other"), _ENDS.values(), ids=_ENDS)
def test_how_it_ended_changes_the_signature(text, one, other):
    assert _signature(text.format("a"), **one) != _signature(text.format("a"), **other)


_FRAMES = ["load (queue.js:7:3)", "store (queue.js:9:1)", "drop (stack.js:4:2)", "merge (main.js:1:1)"]


def _with_stack(frames) -> str:
    return "QueueError: no message\n" + "".join(f"    at {frame}\n" for frame in frames)


@settings(max_examples=24, derandomize=True, database=None)
@given(frames=st.permutations(_FRAMES))
def test_order_of_a_stack_is_part_of_the_signature(frames):
    assert (frames == _FRAMES) == (_signature(_with_stack(frames)) == _signature(_with_stack(_FRAMES)))


@settings(max_examples=24, derandomize=True, database=None)
@given(
    lines=st.permutations(
        [f"FAILED tests/queue::test_{name} - not ready" for name in ("load", "store", "drop", "merge")]
    )
)
def test_order_in_which_tests_fail_is_not(lines):
    assert _signature("\n".join(lines)) == _signature("\n".join(sorted(lines)))


@settings(max_examples=24, derandomize=True, database=None)
@given(names=st.permutations(["load", "store", "drop", "merge"]))
def test_order_of_constraints_is_not(names):
    assert _signature("error: bad\n", constraints=tuple(names)) == _signature(
        "error: bad\n", constraints=tuple(sorted(names))
    )


@settings(max_examples=24, derandomize=True, database=None)
@given(names=st.permutations(["'load'", "'store'", "'drop'"]))
def test_order_in_a_printed_set_is_not(names):
    assert _signature("error: missing {" + ", ".join(names) + "}\n") == _signature(
        "error: missing {'load', 'store', 'drop'}\n"
    )
