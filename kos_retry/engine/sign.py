"""Identity of a failure: features, canonical JSON, signature, and the coarse class for people."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from kos_retry.engine.actions import approach
from kos_retry.engine.normalise import OwnSpan, explain_line, level, normalise_line
from kos_retry.model import Category, FailureEnvelope

# The algorithm's version stands in front of every signature, so that two are never mixed.
SIGNATURE_VERSION = "k1"

_ERROR_TYPE = re.compile(r"\b(?:[\w.]{1,128}\.)?([A-Z]\w{1,64}(?:Error|Exception|Failure|Fault|Panic))\b")
_ERROR_CODE = re.compile(r"\b(?:[A-Z]{1,8}-?\d{2,6}|SIG[A-Z]{2,6}|E[A-Z]{3,15})\b")


class Scheme(NamedTuple):
    """A way to sign: its version, and what own rules of the configuration found in each levelled line."""

    version: str = SIGNATURE_VERSION
    own: Mapping[str, Sequence[OwnSpan]] = {}

    def normalised(self, line: str) -> str:
        """Return a line with its volatile tokens masked."""
        spans = self.own.get(level(line)) if self.own else None
        return explain_line(line, spans).text if spans else normalise_line(line)


STANDARD = Scheme()


def features(envelope: FailureEnvelope, scheme: Scheme = STANDARD) -> tuple[str, ...]:
    """Return what the signature is made of, sorted: category, how it ended, message lines, constraints.

    An envelope that was signed with own rules carries its features; they are returned as they are.
    """
    if envelope.features and scheme is STANDARD:
        return envelope.features
    found = {f"category:{envelope.category}", f"end:{_end(envelope)}"}
    found.update(f"message:{line}" for line in message_lines(envelope, scheme))
    found.update(f"constraint:{scheme.normalised(c)}" for c in envelope.failing_constraints)
    return tuple(sorted(found))


def message_lines(envelope: FailureEnvelope, scheme: Scheme = STANDARD) -> tuple[str, ...]:
    """Return the distinct normalised lines of the message, sorted: parallel work reports in any order."""
    lines = {scheme.normalised(line) for line in envelope.error_message.splitlines()}
    return tuple(sorted(line for line in lines if line))


def canonical(envelope: FailureEnvelope, scheme: Scheme = STANDARD) -> bytes:
    """Return the canonical JSON that is hashed."""
    made_of = {"features": features(envelope, scheme), "version": scheme.version}
    return orjson.dumps(made_of, option=orjson.OPT_SORT_KEYS)


def signature(envelope: FailureEnvelope, scheme: Scheme = STANDARD) -> str:
    """Return the failure's signature: the version, a colon, and 64 hexadecimal digits."""
    return f"{scheme.version}:{hashlib.sha256(canonical(envelope, scheme)).hexdigest()}"


def coarse(envelope: FailureEnvelope) -> str:
    """Return the class of a failure for people: the error's type or code, else the category."""
    for pattern in (_ERROR_TYPE, _ERROR_CODE):
        if match := pattern.search(envelope.error_message):
            return match[match.lastindex or 0]
    return envelope.category.value


def signed(envelope: FailureEnvelope) -> FailureEnvelope:
    """Return the envelope with signature, class and approach filled in where they are missing."""
    if envelope.signature and envelope.coarse and envelope.approach:
        return envelope
    return envelope.replace(
        signature=envelope.signature or signature(envelope),
        coarse=envelope.coarse or coarse(envelope),
        approach=envelope.approach or approach(envelope.executed_actions),
    )


def signed_anew(envelope: FailureEnvelope, scheme: Scheme) -> FailureEnvelope:
    """Return the envelope signed with own rules, with the features that they leave."""
    return envelope.replace(signature=signature(envelope, scheme), features=features(envelope, scheme))


def comparable(history: tuple[FailureEnvelope, ...]) -> tuple[FailureEnvelope, ...]:
    """Return the history with signatures that can be compared.

    Signatures that callers bring are kept as long as one algorithm made them all; where two are mixed
    every one is computed anew.
    """
    given = {_scheme(e.signature) for e in history}
    if len(given) > 1 or given == {None}:
        history = tuple(e.replace(signature="", features=()) for e in history)
    return tuple(signed(e) for e in history)


def _scheme(signature: str) -> str | None:
    if not signature:
        return None
    return signature.partition(":")[0] if ":" in signature else ""


def _end(envelope: FailureEnvelope) -> str:
    """Return how the attempt ended; a time limit ends it in whatever way the platform has."""
    if envelope.category is Category.TIMEOUT:
        return "timeout"
    return f"signal {envelope.signal}" if envelope.signal else f"exit {envelope.exit_code}"
