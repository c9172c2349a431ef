"""What `observe` and `explain` look at outcomes with: the settings that hold here, as `run` would apply them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.matchers import extractor_options
from kos_retry.adapters.own_rules import OwnRules
from kos_retry.cli.output import complain
from kos_retry.cli.run import settings_of
from kos_retry.engine.redact import Redactor, secret_values
from kos_retry.errors import InputError, UsageError
from kos_retry.settings import Raw


class Instruments(NamedTuple):
    """The redactor, the extractors and the rules for signatures."""

    redactor: Redactor
    extraction: Extraction
    rules: OwnRules


@contextmanager
def instruments(raw: Raw, mask_env: Sequence[str] = ()) -> Iterator[Instruments]:
    """Yield the instruments of the configuration and of options as they were written, and end them.

    Raises InputError where one of them is not valid.
    """
    try:
        settings = settings_of({name: value for name, value in raw.items() if value}, os.environ)
    except UsageError as error:
        # Here the values are the input; nothing was to be run.
        raise InputError(str(error)) from error
    redactor = Redactor(secret_values(os.environ, mask_env))
    with Extraction(redactor, *settings.extractors, options=extractor_options(settings.matchers)) as extraction:
        yield Instruments(redactor, extraction, OwnRules(settings.token_rules, complain))
