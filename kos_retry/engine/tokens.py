"""The table of token classes: which parts of a line are meaning, and which are only circumstance.

The classes are tried in this order at every position, the first that matches takes the text. A class that
keeps protects what it matched from the ones below it. All patterns are bounded, so that the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# Systems hand out ports from 32768 or 49152 on, test suites pick theirs from 10000 on; below that a port names a service, and a few
# services are known by a higher one.
_EPHEMERAL_PORT = 10000
_SERVICE_PORTS = frozenset({10250, 11211, 15672, 25565, 27017, 50051, 61616})


# The name of a replica set ends in a digest without vowels, that of its pods in five such letters more.
_POD = re.compile(r"(.{1,128}?)-(?=[a-z]{0,9}\d)[0-9a-z]{8,10}-[0-9a-z]{5}")
_HASHED = re.compile(r"(.{1,128}?)([-_])(?=[a-f]{0,64}\d)(?=\d{0,64}[a-f])[0-9a-f]{8,64}")
_RANDOM = re.compile(r"([A-Za-z]{1,16}[-_])((?:[A-Za-z]{1,4}\d{1,4}|\d{1,4}[A-Za-z]{1,4}){3,}[A-Za-z0-9]{0,4})")
_HOST = re.compile(r"\bip(?:-\d{1,3}){4}\b")


class TokenClass(NamedTuple):
    """One class of tokens.

    ``mask`` is what stands in the place of a match: a text, a function of the matched text, or None where
    the class protects. ``example`` is a line with such a token, ``counter`` one that looks alike and that
    this class leaves alone.
    """

    name: str
    pattern: str
    mask: str | Callable[[str], str] | None
    example: str
    counter: str


def _base_name(path: str) -> str:
    """Mask the directories of an absolute path, and the line behind it."""
    file, _, line = path.partition(":") if not path.startswith("file:") else (path, "", "")
    name = file.rstrip("/").rpartition("/")[2]
    return f"<dir>/{name}" + (":<n>" if line else "")


def _below_temporary(path: str) -> str:
    """Mask a temporary directory and the generated name in it; keep what lies below."""
    file, _, line = path.partition(":")
    parts = [part for part in file.split("/") if part]
    while parts and parts[0] in {"private", "var", "tmp"}:
        parts.pop(0)
    if parts[:1] == ["folders"]:
        parts = parts[4:]
    below = parts[2:] if parts and "-of-" in parts[0] else parts[1:]
    kept = below[-1:] if len(below) > 2 else below
    return "/".join(["<tmp>", *kept]) + (":<n>" if line else "")


def _file_line(text: str) -> str:
    return text.partition(":")[0] + ":<n>"


def _is_ephemeral(port: str) -> bool:
    return int(port) >= _EPHEMERAL_PORT and int(port) not in _SERVICE_PORTS


def _port(text: str) -> str:
    host, _, port = text.rpartition(":")
    return f"{host}:<port>" if _is_ephemeral(port) else text


def _address(text: str) -> str:
    """Mask an IPv4 address that is not a fixed one, and an ephemeral port behind it."""
    host, colon, port = text.partition(":")
    kept = host if host in {"127.0.0.1", "0.0.0.0", "255.255.255.255"} else "<ip>"  # noqa: S104 - compared, not bound
    return kept + (_port(colon + port) if colon else "")


def _without_number(text: str) -> str:
    return text.rstrip("0123456789") + "<n>"


def _header(text: str) -> str:
    return text.partition(":")[0] + ": <value>"


def _keyed(text: str) -> str:
    """Mask the value behind a key, keep the key."""
    cut = max(text.rfind(mark) for mark in ":= ")
    return text[: cut + 1] + "<id>"


def _has_both_cases(text: str) -> bool:
    return text != text.lower() and text != text.upper()


def _name(text: str) -> str:
    """Mask what a machine appended to a name: the suffix of a pod, a digest, the address in a host's name."""
    if match := _POD.fullmatch(text):
        return f"{match[1]}-<pod>"
    if (match := _RANDOM.fullmatch(text)) and _has_both_cases(match[2]):
        return f"{match[1]}<id>"
    if match := _HASHED.fullmatch(text):
        return f"{match[1]}{match[2]}<id>"
    return _HOST.sub("ip-<ip>", text)


def _url(url: str) -> str:
    """Mask what is volatile in a URL: an address, an ephemeral port, a query; keep scheme, name and path."""
    address, _, query = url.partition("?")
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    head, colon, port = host.rpartition("@")[2].partition(":")
    if head.count(".") == 3 and head.replace(".", "").isdigit():
        head = _address(head)
    if colon and port.isdigit():
        port = "<port>" if _is_ephemeral(port) else port
    return f"{scheme}://{head}{colon}{port}{slash}{path}" + ("?<query>" if query else "")


_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:\s?[AaPp][Mm]\b)?"
# Behind a date the minute is enough.
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,:]\d{1,9})?)?(?:\s?[AaPp][Mm]\b)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT|[A-Z]{3,4}\b|[+-]\d{2}:?\d{2}))?"
_UNIT = r"(?:ns|us|µs|μs|ms|msecs?|milliseconds?|microseconds?|nanoseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
_HEX = "[0-9a-f]"

TOKEN_CLASSES: tuple[TokenClass, ...] = (
    # --- what was masked before stays as it is ---------------------------------------------------------
    TokenClass("placeholder", r"<[a-z][a-z-]{0,31}>", None, "at <time> in <dir>/a", "a <b c> d"),
    # --- clocks ----------------------------------------------------------------------------------------
    TokenClass(
        "timestamp",
        rf"(?<![\w])\d{{4}}[-/.]\d{{2}}[-/.]\d{{2}}(?:[T _]\s?{_TIME}{_ZONE}|(?![\w.-]))",
        "<time>",
        "2026-03-01T08:15:42.118Z job failed",
        "release 2026.03 failed",
    ),
    TokenClass(
        "timestamp-text",
        rf"\b(?:{_DAY},?\s{{1,2}})?(?:\d{{1,2}}[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH}\s{{1,2}}\d{{1,2}}(?:,?\s\d{{4}})?)[ T,:]{{1,2}}{_TIME}{_ZONE}(?:\s\d{{4}})?",
        "<time>",
        "Sun, 01 Mar 2026 08:15:42 +0000 refused",
        "May 4 tests failed",
    ),
    TokenClass(
        "timestamp-numeric",
        rf"(?<![\w.])\d{{1,2}}[/.-]\d{{1,2}}[/.-]\d{{2,4}},?\s{_TIME}{_ZONE}",
        "<time>",
        "03/01/2026 08:15:42 AM refused",
        "ratio 3/1/2 refused",
    ),
    TokenClass(
        "timestamp-value",
        r"\b(?:datetime\.)?(?:datetime|date|time|Timestamp)\((?:\d{1,6}(?:, ){0,1}){3,8}",
        "<time>(",
        "created_at=datetime.datetime(2026, 3, 1, 8, 15) is naive",
        "datetime.now() is naive",
    ),
    TokenClass(
        "timestamp-in-name",
        r"(?<![\w.-])\d{4}-\d{2}-\d{2}[T_-]\d{2}[_.-]\d{2}[_.-]\d{2}(?:[_.-]\d{1,6})?Z?(?!\w)",
        "<time>",
        "see 2026-03-01T08_15_42_118Z-debug-0.log",
        "see 2026-03-01-a",
    ),
    TokenClass(
        "timestamp-compact",
        r"(?<![\w.-])20\d{6}[-_T]?\d{6}(?:Z|\b)(?!_)",
        "<time>",
        "log-of 20260301-081542 refused",
        "migration 20260301081542_create_users refused",
    ),
    TokenClass(
        "timestamp-level",
        rf"\b[IWEF]\d{{4}}\s{_CLOCK}\s{{1,7}}\d{{1,8}}",
        "<time>",
        "E0301 08:15:42.118221    4411 sync failed",
        "E0308 mismatched types",
    ),
    TokenClass(
        "clock", rf"(?<![\w:.]){_CLOCK}{_ZONE}(?!\w|:\w)", "<time>", "[08:15:42] refused", "fe80::12:34 refused"
    ),
    TokenClass(
        "epoch",
        r"(?<![\w.-])1[4-9]\d{8}(?:\d{3}|\.\d{1,9})?(?![\w.])",
        "<n>",
        "at 1772352942118 refused",
        "order 9772352 refused",
    ),
    TokenClass(
        "uptime", r"(?<![\w])\[\s{0,6}\d{1,8}\.\d{1,9}\]", "<time>", "[  412.990121] Oops", "list [1.5, 2] is short"
    ),
    # --- limits and durations --------------------------------------------------------------------------
    TokenClass(
        "limit",
        rf"(?i:time[d]?[ -]?out|timeout|deadline|limit|exceeded|threshold)[a-z]{{0,4}}[\W_]{{0,3}}(?:(?:after|of|is|in|exceeded)\W{{1,3}})?\d{{1,9}}(?:\.\d{{1,6}})?\s?{_UNIT}?(?![\w])",
        None,
        "timed out after 600s",
        "took 600s",
    ),
    TokenClass(
        "limit-after",
        rf"\d{{1,9}}(?:\.\d{{1,6}})?\s?{_UNIT}\s(?i:timeout|limit|deadline|exceeded)",
        None,
        "the 30s timeout",
        "in 30s",
    ),
    TokenClass(
        "duration",
        rf"(?<![\w.:-])\d{{1,9}}(?:[.,]\d{{1,9}})?\s?{_UNIT}(?:\s?\d{{1,4}}(?:[.,]\d{{1,9}})?\s?{_UNIT}){{0,3}}(?![\w])",
        "<duration>",
        "1 failed in 0.41s",
        "3 segments failed",
    ),
    # --- addresses and ids -----------------------------------------------------------------------------
    TokenClass(
        "status-hex",
        r"\b0x(?:8007|C000|c000|8000|8004)[0-9A-Fa-f]{4}\b",
        None,
        "HRESULT 0x80070005",
        "at 0x7f3a80070005",
    ),
    TokenClass("signal-hex", r"\(0x[0-9a-f]{1,2}\)", None, "SIGSEGV (0xb)", "at (0x7ffe12)"),
    TokenClass(
        "address", r"(?:\+|@|\b)0x[0-9A-Fa-f]{1,16}\b", "<address>", "object at 0x7f1c2a4b", "0xyz is no number"
    ),
    TokenClass(
        "object-hash",
        r"(?<=\w)@(?=[a-f]{0,15}\d)[0-9a-f]{5,16}\b",
        "<address>",
        "Foo@1b2c3d4e is closed",
        "a@facade.example is closed",
    ),
    TokenClass(
        "uuid",
        rf"(?i:\b{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}\b)",
        "<id>",
        "request 3f1c2d9e-0000-4a10-9c11-aaaaaaaaaaaa failed",
        "range 10-20-30 failed",
    ),
    TokenClass(
        "digest",
        rf"(?i:\b(?:sha\d{{1,3}}|md5)[:-]{_HEX}{{8,128}}\b)",
        "<id>",
        "sha256:9f86d081884c7d65 missing",
        "sha256 missing",
    ),
    TokenClass(
        "hex",
        rf"(?<![\w.])(?=[a-f]{{0,40}}\d)(?=\d{{0,40}}[a-f]){_HEX}{{7,128}}(?![\w])",
        "<id>",
        "image 3f1c2d9eaa10 not found",
        "a deadbeef facade decade",
    ),
    TokenClass(
        "hex-long",
        r"(?<![\w.])[0-9a-fA-F]{24,128}(?![\w])",
        "<id>",
        "trace 00112233445566778899001122334455",
        "12345678",
    ),
    TokenClass(
        "keyed-id",
        r"(?i:\b(?:request|correlation|trace|span|session|transaction|invocation|message|event|job|build|run)[-_ ]?id)[\"']?(?::\s?|=|\s)[\"']?"
        r"(?=[\w.-]{0,64}\d)[\w.-]{3,64}",
        _keyed,
        "Request ID: 4Z9QF2K7M1T8R3VX denied",
        "request id is missing",
    ),
    TokenClass(
        "random",
        r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]{12,128}(?![A-Za-z0-9]))(?=[A-Z0-9]{0,40}[a-z])(?=[a-z0-9]{0,40}[A-Z])(?:[A-Za-z]{1,4}\d{1,4}|\d{1,4}[A-Za-z]{1,4}){3,}[A-Za-z0-9]{0,4}(?![A-Za-z0-9])",
        "<id>",
        "ticket Qm7vS2Z4T3pVw91kLx rejected",
        "testV1Migration rejected",
    ),
    TokenClass(
        "prefixed-id",
        r"\b(?:req|run|job|msg|toolu|call|trace|span|session|evt|cus|pi|build)_(?=[A-Za-z]{0,32}\d)[A-Za-z0-9]{8,64}\b",
        "<id>",
        "request req_011CSHoEeqs5C35K failed",
        "run_all_tests failed",
    ),
    TokenClass(
        "header",
        r"^(?:< ?)?(?i:age|cf-ray|content-length|date|etag|expires|last-modified|retry-after|set-cookie|x-[a-z-]{1,40}): .{1,400}",
        _header,
        "Retry-After: 81",
        "on date: 3",
    ),
    # --- paths -----------------------------------------------------------------------------------------
    TokenClass(
        "url",
        r"\b[a-z][a-z0-9+.-]{1,12}://(?:(?!\w://)[^\s'\"`<>]){1,512}",
        _url,
        "GET http://10.1.2.3:40213/cart failed",
        "file a:/b missing",
    ),
    TokenClass(
        "drive-path",
        r"(?<![\w])[A-Za-z]:(?:\\[^\\\s:*?\"<>|(]{1,255}){1,40}",
        lambda path: "<dir>/" + path.rpartition("\\")[2],
        r"D:\a\shop\src\cart.ts(4,9): error TS2345",
        "a:b",
    ),
    TokenClass(
        "temporary-path",
        r"(?<![\w./~-])(?:/private)?(?:/var)?/(?:tmp|folders)(?:/[^/\s'\"`:,;()\[\]<>]{1,255}){1,40}(?::\d{1,7}){0,2}",
        _below_temporary,
        "cannot open /tmp/tmpab12/db.sqlite",
        "cannot open /opt/db.sqlite",
    ),
    TokenClass(
        "absolute-path",
        r"(?<![\w./~-])(?:/[^/\s'\"`:,;()\[\]<>]{1,255}){3,40}(?::\d{1,7}){0,2}",
        _base_name,
        "error in /home/ci/w/src/main.rs:7",
        "mkdir '/opt/cache' failed",
    ),
    TokenClass(
        "home-path",
        r"(?<![\w./~-])/(?:home|Users|root)(?:/[^/\s'\"`:,;()\[\]<>]{1,255}){1,2}(?::\d{1,7}){0,2}",
        _base_name,
        "cannot read /root/a.txt",
        "cannot read /srv/a.txt",
    ),
    TokenClass(
        "file-line",
        r"(?<![\w./@+-])[\w./@+-]{0,255}\.[A-Za-z]{1,8}(?::\d{1,7}){1,2}(?!\w)",
        _file_line,
        "src/cart.py:41:7: E501",
        "db.internal is gone",
    ),
    TokenClass(
        "file-line-paren",
        r"\(\d{1,7},\d{1,7}\)(?=:)",
        ":<n>",
        "app.ts(12,5): error TS2304",
        "f(1,2) is 3",
    ),
    TokenClass(
        "line",
        r"(?i:\blines?)\s\d{1,7}(?:,? (?:col(?:umn)?|char(?:acter)?) \d{1,7})?(?!\w)",
        "line <n>",
        "File a.py, line 12, in f",
        "online 12",
    ),
    # --- processes, hosts, ports -----------------------------------------------------------------------
    TokenClass(
        "process",
        r"(?i:\b(?:pid|ppid|tid|process|thread|lwp|goroutine|daemon|cpu|agent|child|node))(?::\s?|[ =#-])\d{1,10}(?!\w|\.\d)",
        _without_number,
        "worker pid 4312 exited",
        "rapid 4312",
    ),
    TokenClass(
        "named-thread",
        r"(?<=') \(\d{1,10}\)(?= panicked\b)|(?i:\bthread) \d{1,10}(?!\w)",
        lambda text: " (<n>)" if text.startswith(" (") else "thread <n>",
        "thread 'main' (8402) panicked",
        "threads 3",
    ),
    TokenClass(
        "worker",
        r"(?<![\w.-])(?:[A-Za-z0-9]\w{0,24}[-/:]){0,4}(?i:\w{0,24}(?:worker|thread|exec|pool|task|fork))[-/:#]?(?:u?\d{1,6}[-:/]){0,2}"
        r"(?:(?:thread|worker|exec)-)?\d{1,6}(?!\w|\.\d)",
        "<worker>",
        "ForkPoolWorker-11 died, pool-3-thread-7 is gone",
        "task 3 died",
    ),
    TokenClass("worker-mark", r"\[gw\d{1,4}\]", "[<worker>]", "[gw3] FAILED test_push", "[gw] FAILED"),
    TokenClass("process-mark", r"={2}\d{1,10}={2}", "==<n>==", "==4120==ERROR", "a==4120"),
    TokenClass(
        "process-bracket",
        r"(?<=[A-Za-z])\[\d{2,8}\](?=:)|(?<=> )\[\d{1,8}\](?=:? )|^\[\d{4,8}\](?=:? )",
        "[<n>]",
        "sshd[4120]: refused",
        "a[12] = 3",
    ),
    TokenClass(
        "job-notice",
        r"(?<=: )\s{0,3}\d{2,8}(?=\s(?:Killed|Terminated|Aborted|Segmentation|Illegal|Bus error|Floating|Hangup|Quit|Trace)\b)",
        "<n>",
        "run.sh: line 12:  4411 Killed",
        "total: 4411 Kills",
    ),
    TokenClass(
        "stream",
        r"(?i:\b(?:stream|request|connection|channel|session|attempt|retry|try|vertex)) #?\d{1,9}(?!\w|[.:]\d)",
        _without_number,
        "HTTP/2 stream 17 was reset",
        "streams 17",
    ),
    TokenClass("step-mark", r"^#\d{1,4} \d{1,6}\.\d{1,3}(?= )", "#<n>", "#12 31.07 ERROR: no such file", "a #12 31.07"),
    TokenClass(
        "ip",
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.]\d)",
        _address,
        "dial 10.4.2.17:5432 refused",
        "version 1.2.3 refused",
    ),
    TokenClass(
        "ipv6",
        r"\[(?!\d{1,2}:\d{2}(?!\d))(?=[^\]]{0,40}:[^\]]{0,40}:)[0-9A-Fa-f:.%a-z]{3,60}\](?::\d{1,5})?|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])",
        "<ip>",
        "peer [2001:db8::9a1]:50512 closed",
        "std::add failed",
    ),
    TokenClass(
        "host-port", r"\b[A-Za-z][\w.-]{0,128}:\d{4,5}(?!\w)", _port, "localhost:49213 refused", "db:5432 refused"
    ),
    # --- counters --------------------------------------------------------------------------------------
    TokenClass(
        "progress",
        r"\[\s{0,2}\d{1,3}%\]|\[?(?<!\d)\b\d{1,7}\s?(?:/|of)\s?\d{1,7}\b(?!/\d)\]?",
        "<n>/<n>",
        "[812/2044] attempt 1 of 3",
        "a/b",
    ),
    TokenClass(
        "measured",
        r"(?i:\b(?:used|requested|remaining|available|allocated|retained))[ :=]{1,3}\d{1,20}(?!\w|\.\d)",
        _without_number,
        "limit reached, Used 29112, Requested 2048",
        "unused 3",
    ),
    TokenClass(
        "size",
        r"(?<![\w.])\d{1,12}(?:[.,]\d{1,6})?\s?(?:[KMGTkmgt]i?[Bb]|bytes|byte\(s\)|object\(s\)|[Bb])(?:/s)?(?!\w)",
        "<size>",
        "read 12.4 MiB/s",
        "12 books",
    ),
    TokenClass(
        "fine-number",
        r"(?<![\w.=@^~<>v-])\d{1,9}\.\d{3,18}(?![\w.]\w|\w)",
        "<n>",
        "lag is 298.771 now",
        "needs ==1.234 now",
    ),
    # --- meaning: codes, versions, names, values -------------------------------------------------------
    TokenClass(
        "code",
        r"(?i:\b(?:status(?: code)?|exit(?:ed)?(?: with)?(?: status| code| value)?|code|errno|error|err|signal|sqlstate|http(?:/\d(?:\.\d)?)?"
        r"|returned(?: non-zero)?(?: exit status)?|rc|curl:?|e:))[\W_]{0,3}(?:\d{1,5}|(?<![:]\s)\d{6,9})"
        # A date, an address, a duration, a size or a share behind the word is none of its codes.
        rf"(?!\w|[.,:/-]\w|\s?(?:of\b|/|%)|\s?{_UNIT}\b|\s?(?:[KMGTk]i?[Bb]|bytes)\b)",
        None,
        "request failed with status 503",
        "took 503 steps",
    ),
    TokenClass(
        "value",
        r"(?i:\b(?:expected|got|want(?:ed)?|actual|received|assert(?:ed)?|was|be|to equal|equals?|has|have|left|right)|[=!<>]=|[<>]|~)[\s:=`'\"(]{1,4}-?\d{1,12}(?:\.\d{1,12})?(?!\w|\.\d)",
        None,
        "expected 3 got 4",
        "3 of 4",
    ),
    TokenClass(
        "version",
        r"(?<![\w.])[v@=^~]{0,2}\d{1,5}(?:\.\d{1,6}){1,3}(?:[-+][\w.]{1,32})?(?!\w)",
        None,
        "needs 2.31.0",
        "at 5",
    ),
    TokenClass("name", r"\b[A-Za-z_][\w-]{0,64}\d[\w-]{0,64}", _name, "error[E0308] in test_case_1", "308 cases"),
    TokenClass("seed", r"(?i:\b(?:random[ _-])?seed)[ :=]{1,3}\d{1,20}", "seed <n>", "seed=918273", "seeds 3 of"),
    TokenClass("big-number", r"(?<![\w.-])\d{5,20}(?![\w.]\w)", "<n>", "order 918273 failed", "10 failed"),
)
