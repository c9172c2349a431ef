"""Every exception that kos-retry raises on purpose, each with the exit status it ends a command with.

The wrapped command failing is not an error: it is a value, see ``kos_retry.outcome``.
"""

from __future__ import annotations


class KosRetryError(Exception):
    """Base of all expected faults; the text completes "failed to …" and needs no traceback."""

    exit_status = 125


class UsageError(KosRetryError):
    """The command line of ``run`` was wrong; nothing was started."""


class InputError(KosRetryError):
    """Data that was handed in is not what was asked for; the text names the field and the place."""

    exit_status = 2


class UnknownNameError(InputError):
    """A session, schema or extractor that does not exist was asked for."""


class StateError(KosRetryError):
    """The state directory cannot be used; ``run`` goes on without it."""


class StoreError(KosRetryError):
    """The store cannot be used; ``run`` goes on without it."""


class StoreDamagedError(StoreError):
    """The file is none of our stores, or not any more."""


class ManifestError(InputError):
    """An extractor's manifest is not valid."""


class RegistrationError(KosRetryError, ValueError):
    """An extractor cannot be registered: bad name, nothing, or a name that is taken."""


class ExtractorError(KosRetryError):
    """One extractor failed; the run goes on and the envelope says so."""


class ExtractorTimeoutError(ExtractorError, TimeoutError):
    """One extractor did not answer in time and was given up."""
