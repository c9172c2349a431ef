"""Removing secrets from text before it is kept or sent anywhere.

Two sources: values that are known to be secret (whole, line by line, and in base64), and shapes that well-known
kinds of credentials have. Nothing slow is imported until a text holds something that may be one.
"""

from __future__ import annotations

from kos_retry.limits import MIN_SECRET_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

REDACTED = "[redacted]"

# Words in the name of a variable that make its value a secret.
_SECRET_NAMES = (
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "_PAT",
    "_PWD",
    "_AUTH",
    "DSN",
    "COOKIE",
)
# Names that hold such a word and no secret.
_OPEN_NAMES = frozenset({"OLDPWD", "PWD", "SSH_AUTH_SOCK", "XAUTHORITY"})
_OPEN_VALUES = frozenset({"false", "none", "null", "true", "default", "disabled", "enabled"})

# A shape is tried only where its literal start stands in the text.
_SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"(?<![A-Za-z0-9_-])gh[pousr]_[A-Za-z0-9]{20,255}"),
    (("github_pat_",), r"(?<![A-Za-z0-9_-])github_pat_[A-Za-z0-9_]{20,255}"),
    (("glpat-", "gldt-", "glrt-", "glcbt-"), r"(?<![A-Za-z0-9_-])gl(?:pat|dt|rt|cbt)-[A-Za-z0-9_.-]{16,255}"),
    (("xox", "xapp-"), r"(?<![A-Za-z0-9_-])x(?:ox[abeprs]|app)-[A-Za-z0-9-]{10,255}"),
    (("AKIA", "ASIA"), r"(?<![A-Za-z0-9_-])A[KS]IA[A-Z0-9]{16}\b"),
    (("AIza",), r"(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{30,64}"),
    (
        ("sk-", "sk_live_", "rk_live_", "sk_test_"),
        r"(?<![A-Za-z0-9_-])(?:sk|rk)[-_](?:live_|test_|ant-|proj-)?[A-Za-z0-9_-]{20,255}",
    ),
    (("npm_",), r"(?<![A-Za-z0-9_-])npm_[A-Za-z0-9]{30,255}"),
    (("pypi-",), r"(?<![A-Za-z0-9_-])pypi-[A-Za-z0-9_-]{40,255}"),
    (("hvs.", "hvb."), r"(?<![A-Za-z0-9_-])hv[sb]\.[A-Za-z0-9_-]{20,255}"),
    (("dop_v1_",), r"(?<![A-Za-z0-9_-])dop_v1_[a-f0-9]{32,128}"),
    (("SG.",), r"(?<![A-Za-z0-9_-])SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"),
    (("eyJ",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,4096}"),
    (
        ("PRIVATE KEY-----",),
        r"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?:(?!-----BEGIN)[\s\S]){0,16384}?(?:-----END [A-Z ]{0,32}PRIVATE KEY-----|\Z)",
    ),
    (
        ("uthorization", "UTHORIZATION"),
        r"(?i)(?P<keep>\bauthorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?:(?:bearer|basic|token|digest)\s{1,4})?[A-Za-z0-9+/=_.~-]{8,8192}",
    ),
    (("earer ", "EARER "), r"(?i)(?<=\bbearer )[A-Za-z0-9+/=_.~-]{16,8192}"),
    (("://",), r"(?<=://)[^\s/:@'\"]{0,256}:[^\s/@'\"]{1,256}(?=@)"),
)

_MAX_KEYS = 1024
# From so many characters on it is faster to ask the outline (measured).
_LONG = 32 * 1024

# Words that a secret stands behind, and how. Behind a colon only what has a digit: "unexpected token: identifier" is no secret.
_NAMED = ("password", "passwd", "passphrase", "secret", "token", "api_key", "api-key", "apikey")
_NAMED_SHAPE = r"(?i)(?P<keep>(?:password|passwd|passphrase|secret|token|api[_-]?key)[\"']?\s{0,4}(?:=\s{0,4}|:\s{0,4}(?=[^\s]{0,64}\d))[\"']?)[^\s\"'&,;\[]{6,1024}"


class Redactor:
    """Removes a fixed set of secret values, and everything that looks like a credential."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Take the secret values; those that are too short or too common to be one are ignored."""
        self._needles = _needles(values)
        self._keys: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return ``text`` without secrets; doing it twice changes nothing."""
        for needle in self._needles:
            if needle in text:
                text = text.replace(needle, REDACTED)
        return _without_shapes(text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with every string in it redacted, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._key(k) if isinstance(k, str) else k: self.value(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(v) for v in value]
        return value

    def _key(self, key: str) -> str:
        """Return the key of an object without secrets; most are the names of fields, which come again with every attempt."""
        if key not in self._keys and len(self._keys) < _MAX_KEYS:
            self._keys[key] = self.text(key)
        return self._keys[key] if key in self._keys else self.text(key)

    def cut_edges(self, head: str, tail: str) -> tuple[str, str]:
        """Return two texts between which something was left out, without a secret cut in half.

        The end of ``head`` may hold the start of a secret, and the start of ``tail`` its end.
        """
        for needle in self._needles:
            for size in range(min(len(needle) - 1, len(head)), 3, -1):
                if head.endswith(needle[:size]):
                    head = head[:-size] + REDACTED
                    break
            for size in range(min(len(needle) - 1, len(tail)), 3, -1):
                if tail.startswith(needle[-size:]):
                    tail = REDACTED + tail[size:]
                    break
        return head, tail


def secret_values(environment: Mapping[str, str], names: Iterable[str] = ()) -> list[str]:
    """Return the values of the variables that ``names`` lists or whose own name says that they are secret."""
    wanted = set(names)
    return [v for k, v in environment.items() if k in wanted or (_is_secret_name(k) and v.lower() not in _OPEN_VALUES)]


def _is_secret_name(name: str) -> bool:
    upper = name.upper()
    return upper not in _OPEN_NAMES and any(word in upper for word in _SECRET_NAMES)


def _needles(values: Iterable[str]) -> tuple[str, ...]:
    """Return every form in which the values may stand in a text, the longest first."""
    found: set[str] = set()
    for value in values:
        for form in {value, value.strip(), *value.splitlines()}:
            if len(form.strip()) >= MIN_SECRET_CHARS and form not in REDACTED:
                found.add(form)
        if len(value) >= MIN_SECRET_CHARS:
            found.update(_base64_forms(value))
    return tuple(sorted(found, key=lambda needle: (-len(needle), needle)))


def _base64_forms(value: str) -> set[str]:
    """Return what of ``value`` stays visible in base64, at each of the three offsets in a longer text."""
    from binascii import b2a_base64

    raw = value.encode("utf-8", "surrogateescape")
    forms = set()
    for offset in range(3):
        encoded = b2a_base64(b"\0" * offset + raw, newline=False).decode()
        # Characters that also depend on what stands before or behind the value.
        visible = encoded[(0, 2, 3)[offset] :].rstrip("=")
        if (offset + len(raw)) % 3:
            visible = visible[:-1]
        forms.update({visible, visible.replace("+", "-").replace("/", "_")})
    return {form for form in forms if len(form) >= MIN_SECRET_CHARS}


def _without_shapes(text: str) -> str:
    holds = _holds(text)
    due = [shape for triggers, shape in _SHAPES if any(map(holds, triggers))]
    if due:
        import re

        for shape in due:
            text = re.sub(shape, _keep_name, text)
    return _without_named(text)


def _holds(text: str) -> Callable[[str], bool]:
    """Return the test whether a text may hold a trigger; of a long one the outline is asked."""
    if len(text) < _LONG:
        return text.__contains__
    from kos_retry.text.outline import in_outline, outline

    said = outline(text.encode("utf-8", "replace"))
    return lambda trigger: in_outline(trigger.encode()) in said


def _without_named(text: str) -> str:
    """Replace what stands behind the words of `_NAMED`: where one is, is found ten times faster than by an expression."""
    starts = _starts(text.lower(), len(text))
    if not starts:
        return text
    import re

    shape = re.compile(_NAMED_SHAPE)
    if starts == _ANYWHERE:
        return shape.sub(_keep_name, text)
    parts, done = [], 0
    for start in starts:
        if start >= done and (found := shape.match(text, start)):
            parts += [text[done:start], _keep_name(found)]
            done = found.end()
    return "".join([*parts, text[done:]])


# Where there are capitals that become several letters, places in the text and in its small letters differ.
_ANYWHERE = [-1]


def _starts(small: str, length: int) -> list[int]:
    """Return where a word of `_NAMED` stands in a text of this length that was put in small letters, in order."""
    starts: list[int] = []
    for name in _NAMED:
        at = small.find(name)
        if at >= 0 and len(small) != length:
            return _ANYWHERE
        while at >= 0:
            starts.append(at)
            at = small.find(name, at + 1)
    return sorted(starts)


def _keep_name(match: Any) -> str:
    """Replace a match, but not the name that the secret stands behind."""
    return (match.groupdict().get("keep") or "") + REDACTED
