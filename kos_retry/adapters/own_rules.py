"""Signing with the masks and keep-rules of the configuration.

Their expressions are a user's and the lines are hostile, so they run in a process that can be killed; the engine is handed the places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import orjson

from kos_retry.adapters.expressions import spans
from kos_retry.engine.normalise import OwnSpan, level
from kos_retry.engine.sign import SIGNATURE_VERSION, Scheme, signed_anew
from kos_retry.model import FailureEnvelope
from kos_retry.settings import TokenRule

_VERSION_DIGITS = 8


class OwnRules:
    """The rules of one configuration, earlier ones before later ones."""

    def __init__(self, rules: Sequence[TokenRule], warn: Callable[[str], None]) -> None:
        self._rules = tuple(rules)
        self._warn = warn
        self.version = version(rules)

    def signed(self, envelopes: Sequence[FailureEnvelope]) -> tuple[FailureEnvelope, ...]:
        """Return the envelopes with signatures of these rules; one that has such a signature, or a caller's own, keeps it."""
        if not self._rules:
            return tuple(envelopes)
        anew = [self._is_to_sign(e.signature) for e in envelopes]
        scheme = self.scheme([e for e, wanted in zip(envelopes, anew, strict=True) if wanted])
        return tuple(signed_anew(e, scheme) if wanted else e for e, wanted in zip(envelopes, anew, strict=True))

    def _is_to_sign(self, signature: str) -> bool:
        made_by = signature.partition(":")[0]
        return not signature or (made_by.partition("+")[0] == SIGNATURE_VERSION and made_by != self.version)

    def scheme(self, envelopes: Sequence[FailureEnvelope]) -> Scheme:
        """Return the scheme that signs these envelopes."""
        if not self._rules:
            return Scheme()
        texts = [text for e in envelopes for text in (*e.error_message.splitlines(), *e.failing_constraints)]
        lines = sorted({level(text) for text in texts} - {""})
        found = spans([rule.pattern for rule in self._rules], lines, self._warn) if lines else {}
        own: dict[str, list[OwnSpan]] = {line: [] for line in lines}
        for rule in self._rules:
            for line, places in zip(lines, found.get(rule.pattern) or (), strict=False):
                for start, end in places:
                    _take(own[line], OwnSpan(rule.name, start, end, None if rule.keeps else f"<{rule.name}>"))
        return Scheme(
            self.version, {line: sorted(taken, key=lambda span: span.start) for line, taken in own.items() if taken}
        )


def version(rules: Sequence[TokenRule]) -> str:
    """Return the version of signatures that are made with own rules: another rule makes another version."""
    if not rules:
        return SIGNATURE_VERSION
    told = orjson.dumps([(rule.name, rule.pattern, rule.keeps) for rule in rules])
    return f"{SIGNATURE_VERSION}+{hashlib.sha256(told).hexdigest()[:_VERSION_DIGITS]}"


def _take(taken: list[OwnSpan], span: OwnSpan) -> None:
    """Add a span unless it is empty or an earlier rule has a part of it."""
    if span.start < span.end and all(span.end <= other.start or other.end <= span.start for other in taken):
        taken.append(span)
