"""The wire types: what kos-retry reads and writes as JSON."""

from kos_retry.model.action import Action
from kos_retry.model.artifact import DiagnosticArtifact, DiagnosticReport, ResultRecord
from kos_retry.model.base import Wire
from kos_retry.model.cause import Cause, CauseKind, Retryable
from kos_retry.model.decision import Budget, ConsideredRule, Decision, Reason, StopReason
from kos_retry.model.delta import DiagnosticDelta
from kos_retry.model.envelope import Category, FailureEnvelope, Omitted, ReportVerdict, Transcript, Usage
from kos_retry.model.finding import EvidenceSpan, ExtractorAnswer, Finding, Location
from kos_retry.model.guidance import DisambiguationContext, NegativeConstraint
from kos_retry.model.outcome import OutcomeRow
from kos_retry.model.policy import NextAttempt, Policy, StagnationPolicy
from kos_retry.model.sighting import Sighting
from kos_retry.model.similarity import Difference, Similarity, SimilarityPart
from kos_retry.model.stagnation import Recommendation, StagnationAssessment, StateCheckpoint

WIRE_TYPES: dict[str, type[Wire]] = {
    kind.__name__: kind
    for kind in (
        Action,
        Cause,
        Decision,
        DiagnosticArtifact,
        DiagnosticDelta,
        DiagnosticReport,
        DisambiguationContext,
        ExtractorAnswer,
        FailureEnvelope,
        NegativeConstraint,
        OutcomeRow,
        Policy,
        Similarity,
        Sighting,
        StagnationAssessment,
        StagnationPolicy,
        StateCheckpoint,
    )
}

__all__ = [
    "WIRE_TYPES",
    "Action",
    "Budget",
    "Category",
    "Cause",
    "CauseKind",
    "ConsideredRule",
    "Decision",
    "DiagnosticArtifact",
    "DiagnosticDelta",
    "DiagnosticReport",
    "Difference",
    "DisambiguationContext",
    "EvidenceSpan",
    "ExtractorAnswer",
    "FailureEnvelope",
    "Finding",
    "Location",
    "NegativeConstraint",
    "NextAttempt",
    "Omitted",
    "OutcomeRow",
    "Policy",
    "Reason",
    "Recommendation",
    "ReportVerdict",
    "ResultRecord",
    "Retryable",
    "Sighting",
    "Similarity",
    "SimilarityPart",
    "StagnationAssessment",
    "StagnationPolicy",
    "StateCheckpoint",
    "StopReason",
    "Transcript",
    "Usage",
    "Wire",
]
