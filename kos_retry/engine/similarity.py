"""How alike two failures are: an explained number beside the equality of signatures.

Similarity is not transitive, so nothing is decided on it; it helps people to find the failure next to the one they look at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby

from kos_retry.engine import sign
from kos_retry.limits import MAX_COMPARED_WORDS
from kos_retry.model import Difference, FailureEnvelope, Similarity, SimilarityPart

# What failed by name says most about which failure it is, then what was said; how it ended is shared by many (heuristic).
_WEIGHTS = {"constraint": 0.5, "message": 0.35, "category": 0.05, "end": 0.1}
_WORD = re.compile(r"<[a-z][a-z-]{0,31}>|\w+|[^\w\s]")
# Two lines with less in common than this are two lines, and not one that changed.
_MIN_RATIO = 0.4


def similarity(old: FailureEnvelope, new: FailureEnvelope) -> Similarity:
    """Return how alike two envelopes are, with the words in which they differ.

    Each part is compared as a multiset of normalised words by the Jaccard index (the shared share of all); parts that neither side has
    are left out of the mean.
    """
    before, after = _by_part(sign.features(old)), _by_part(sign.features(new))
    parts = tuple(
        SimilarityPart(name=name, weight=weight, score=_shared(before.get(name, ()), after.get(name, ())))
        for name, weight in _WEIGHTS.items()
        if before.get(name) or after.get(name)
    )
    score = sum(p.weight * p.score for p in parts) / sum(p.weight for p in parts)
    return Similarity(
        score=round(score, 3),
        same_signature=old.signature == new.signature,
        parts=parts,
        differences=tuple(
            difference
            for name in _WEIGHTS
            for difference in _differences(name, before.get(name, ()), after.get(name, ()))
        ),
    )


def _by_part(features: Sequence[str]) -> dict[str, tuple[str, ...]]:
    split = (feature.partition(":") for feature in features)
    return {name: tuple(text for _, _, text in group) for name, group in groupby(split, key=lambda part: part[0])}


def _shared(old: Sequence[str], new: Sequence[str]) -> float:
    before, after = Counter(w for text in old for w in _words(text)), Counter(w for text in new for w in _words(text))
    whole = (before | after).total()
    return round((before & after).total() / whole, 3) if whole else 1.0


def _differences(name: str, old: Sequence[str], new: Sequence[str]) -> list[Difference]:
    """Pair what is closest to each other, the closest pairs first, and name the words that differ."""
    gone, came = [t for t in old if t not in new], [t for t in new if t not in old]
    ranked = sorted(
        ((_ratio(a, b), i, j) for i, a in enumerate(gone) for j, b in enumerate(came)),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    pairs: dict[int, int] = {}
    for ratio, i, j in ranked:
        if ratio >= _MIN_RATIO and i not in pairs and j not in pairs.values():
            pairs[i] = j
    alone = [Difference(feature=name, old=text, removed=(text,)) for i, text in enumerate(gone) if i not in pairs]
    alone += [
        Difference(feature=name, new=text, added=(text,)) for j, text in enumerate(came) if j not in pairs.values()
    ]
    return [_difference(name, gone[i], came[j]) for i, j in sorted(pairs.items())] + alone


def _difference(name: str, old: str, new: str) -> Difference:
    before, after = _words(old), _words(new)
    removed, added = [], []
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += [" ".join(before[i:j])] if i < j else []
            added += [" ".join(after[k:m])] if k < m else []
    return Difference(feature=name, old=old, new=new, removed=tuple(removed), added=tuple(added))


def _ratio(old: str, new: str) -> float:
    return _shared((old,), (new,))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)[:MAX_COMPARED_WORDS]
