"""How alike two failures are, and in which words they differ: for people, never for a decision."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from kos_retry.model.base import Wire

Share = Annotated[float, Meta(ge=0, le=1)]


class SimilarityPart(Wire, frozen=True, kw_only=True):
    """One part of the comparison: its weight in the whole, and how much of it is shared."""

    name: str
    weight: Share
    score: Share


class Difference(Wire, frozen=True, kw_only=True):
    """One feature that only one side has, or a pair that is closest to each other.

    ``removed`` and ``added`` are the words that make the difference, in order; an empty side has no such feature.
    """

    feature: str
    old: str = ""
    new: str = ""
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


class Similarity(Wire, frozen=True, kw_only=True):
    """The similarity of two failures from 0 to 1, the parts it is the weighted mean of, and what differs."""

    score: Share
    same_signature: bool
    parts: tuple[SimilarityPart, ...]
    differences: tuple[Difference, ...] = ()
