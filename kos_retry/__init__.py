"""kos-retry: retry what can pass, stop what cannot, and tell the next attempt what was learned.

The public names are loaded when they are first used: importing the package costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.adapters.extraction.registry import Context, DiagnosticExtractorRegistry, with_timeout
    from kos_retry.engine.compare import compare
    from kos_retry.engine.decide import decide
    from kos_retry.engine.observe import Evidence, observe
    from kos_retry.engine.sign import signature
    from kos_retry.engine.similarity import similarity
    from kos_retry.engine.stagnation import assess, checkpoints
    from kos_retry.library import Attempt, attempts, evaluate
    from kos_retry.model import (
        Decision,
        DiagnosticArtifact,
        DiagnosticDelta,
        DiagnosticReport,
        DisambiguationContext,
        FailureEnvelope,
        NegativeConstraint,
        Policy,
        Similarity,
        StagnationAssessment,
        StagnationPolicy,
        StateCheckpoint,
    )
    from kos_retry.ports import Extractor

__version__ = "0.1.0"

_MODEL = (
    "Decision",
    "DiagnosticArtifact",
    "DiagnosticDelta",
    "DiagnosticReport",
    "DisambiguationContext",
    "FailureEnvelope",
    "NegativeConstraint",
    "Policy",
    "Similarity",
    "StagnationAssessment",
    "StagnationPolicy",
    "StateCheckpoint",
)
_HOME = {
    **dict.fromkeys(_MODEL, "kos_retry.model"),
    "Attempt": "kos_retry.library",
    "attempts": "kos_retry.library",
    "evaluate": "kos_retry.library",
    "Context": "kos_retry.adapters.extraction.registry",
    "DiagnosticExtractorRegistry": "kos_retry.adapters.extraction.registry",
    "Evidence": "kos_retry.engine.observe",
    "Extractor": "kos_retry.ports",
    "assess": "kos_retry.engine.stagnation",
    "checkpoints": "kos_retry.engine.stagnation",
    "compare": "kos_retry.engine.compare",
    "decide": "kos_retry.engine.decide",
    "observe": "kos_retry.engine.observe",
    "signature": "kos_retry.engine.sign",
    "similarity": "kos_retry.engine.similarity",
    "with_timeout": "kos_retry.adapters.extraction.registry",
}

__all__ = [
    "Attempt",
    "Context",
    "Decision",
    "DiagnosticArtifact",
    "DiagnosticDelta",
    "DiagnosticExtractorRegistry",
    "DiagnosticReport",
    "DisambiguationContext",
    "Evidence",
    "Extractor",
    "FailureEnvelope",
    "NegativeConstraint",
    "Policy",
    "Similarity",
    "StagnationAssessment",
    "StagnationPolicy",
    "StateCheckpoint",
    "__version__",
    "assess",
    "attempts",
    "checkpoints",
    "compare",
    "decide",
    "evaluate",
    "observe",
    "signature",
    "similarity",
    "with_timeout",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'kos_retry' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(home), name)
