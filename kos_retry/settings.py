"""The options of `run` in one table, and their values, read from wherever they were written.

The command line, Typer's help, configuration files and the environment all follow this table. It is read on the way to the
wrapped command, so it imports nothing that is not cheap.
"""

from __future__ import annotations

from kos_retry import limits
from kos_retry.errors import InputError, UsageError
from kos_retry.text.durations import format_duration, parse_duration, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

REPORT_FORMATS = ("text", "json", "markdown")
# How guidance can reach the next attempt.
DELIVERIES = ("none", "stdin", "env", "file", "arg", "append")
# How a value of --store begins: switched off, a file, or a server.
STORE_NONE = "none"
STORE_FILE = "sqlite:"
STORE_SERVERS = ("postgresql://", "postgres://")
_SESSION_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_SESSION_LENGTH = 64

# Options as they were written, by field name: a text, a flag, or the texts of a repeatable option.
Raw = dict[str, "str | bool | list[str]"]


class Option:
    """One option: its name on the command line, how its value is read, its default as one would write it, its help.

    ``read`` is None for a flag, which also has a ``--no-`` form. ``many`` options can be repeated. ``unset`` says
    what no value means.
    """

    __slots__ = ("default", "help", "many", "metavar", "name", "read", "section", "unset")

    def __init__(
        self,
        name: str,
        read: Callable[[str], Any] | None,
        default: str | bool | None,
        metavar: str,
        help: str,  # noqa: A002 - the word of the field
        *,
        section: str,
        unset: str = "none",
        many: bool = False,
    ) -> None:
        self.name = name
        self.read = read
        self.default = default
        self.metavar = metavar
        self.help = help
        self.section = section
        self.unset = unset
        self.many = many

    @property
    def field(self) -> str:
        """Return the name of the attribute that holds the value."""
        return self.name.replace("-", "_")


class Check:
    """A named check of success: the name of the constraint that fails, and a command or an expression."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text


class TokenRule:
    """A rule of the configuration for signatures: what its expression matches is masked, or kept as it is.

    ``name`` stands in the place of what is masked.
    """

    __slots__ = ("keeps", "name", "pattern")

    def __init__(self, name: str, pattern: str, *, keeps: bool) -> None:
        self.name = name
        self.pattern = pattern
        self.keeps = keeps


class RunSettings:
    """The values of all options of `run`; durations in seconds, None where nothing is set.

    ``sources`` says for every field where its value was written. ``retries_dropped`` says that another kos-retry around
    this one does the retrying. ``token_rules`` are the configuration's own masks and keep-rules,
    ``matchers`` what ``matcher`` names and ``extractors`` what ``extractor`` does, once they have been read: those to choose
    from, None for the bundled ones, and the ids to ask in any case.
    """

    max_attempts: int
    timeout: float | None
    kill_after: float
    deadline: float | None
    delay: float
    backoff: float
    max_delay: float
    jitter: Any
    seed: int | None
    retry_on: list[str]
    stop_on: list[str]
    verify: list[Check]
    require: list[Check]
    forbid: list[Check]
    flaky_result: str
    extractor: list[str]
    matcher: list[str]
    actions: str | None
    transcript: str | None
    collect: list[str]
    max_stagnant_attempts: int
    zero_delta_fail_fast: bool
    max_identical_signatures: int
    guidance: str
    pivot: list[str]
    on_pivot: str
    retry_command: str | None
    gate: str | None
    on_escalate: str | None
    done: str | None
    max_prompt_bytes: int
    max_prompt_tokens: int
    max_cost_usd: float | None
    max_tokens: int | None
    max_failures: int | None
    max_transient_retries: int
    max_repeated_actions: int
    replay_stdin: bool
    hold_output: bool
    tty: str
    session: str | None
    state_dir: str | None
    store: str | None
    report: list[tuple[str, str]]
    mask_env: list[str]
    nested: str
    profile: str
    config: str | None
    dry_run: bool
    quiet: bool
    verbose: bool

    def __init__(self, values: dict[str, Any], sources: Mapping[str, str]) -> None:
        self.sources = sources
        self.values = values
        for name, value in values.items():
            setattr(self, name, value)
        self.retries_dropped = False
        self.token_rules: Sequence[TokenRule] = ()
        self.matchers: list[dict[str, Any]] = []
        self.extractors: tuple[tuple[Any, ...] | None, tuple[str, ...]] = (None, ())


def _integer(at_least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        # Eighteen digits fit into 64 bits.
        if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < at_least:
            raise ValueError(f"'{text}' is not a whole number of at least {at_least}")
        return int(text)

    return read


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # Beyond a million every delay is the longest one.
    if not 1 <= value <= 1e6:
        raise ValueError(f"'{text}' is not a number of at least 1")
    return value


def _limit(text: str) -> float:
    seconds = parse_duration(text)
    if not seconds:
        raise ValueError("a time limit must be longer than 0s; leave the option out for none")
    return seconds


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"'{text}' is not one of {', '.join(choices)}")
        return text

    return read


def read_session(text: str) -> str:
    """Return ``text`` if it can name a session; raises ValueError with the rule if not."""
    if not text or len(text) > _SESSION_LENGTH or not set(text) <= _SESSION_CHARS or not text[0].isalnum():
        raise ValueError(
            f"session '{text}': an id is 1 to {_SESSION_LENGTH} letters, digits, '.', '_' or '-', and starts with a letter or digit"
        )
    return text


def _report(text: str) -> tuple[str, str]:
    form, colon, path = text.partition(":")
    if form not in REPORT_FORMATS or not colon or not path:
        raise ValueError(f"'{text}' is not FORMAT:PATH with a format of {', '.join(REPORT_FORMATS)}")
    return form, path


def _text(text: str) -> str:
    if not text:
        raise ValueError("the value is empty")
    return text


def _store(text: str) -> str:
    if text == STORE_NONE or (text.startswith(STORE_FILE) and len(text) > len(STORE_FILE)):
        return text
    if not text.startswith(STORE_SERVERS):
        from kos_retry.text.urls import without_password

        raise ValueError(f"'{without_password(text)}' is not none, {STORE_FILE}FILE or {STORE_SERVERS[0]}…")
    return text


def _condition(text: str) -> str:
    from kos_retry.engine.conditions import check_condition

    return check_condition(text)


def _check(text: str) -> Check:
    """Read ``[NAME=]TEXT``; without a name the text is its own."""
    name, equals, rest = text.partition("=")
    if equals and rest and name and set(name) <= _SESSION_CHARS and name[0].isalpha():
        return Check(name, rest)
    return Check(_text(text), text)


def _expression(text: str) -> Check:
    from kos_retry.engine.conditions import check_expression

    check = _check(text)
    check_expression(check.text)
    return check


def _regular_expression(text: str) -> str:
    from kos_retry.engine.conditions import check_expression

    return check_expression(_text(text))


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e9:
        raise ValueError(f"'{text}' is not an amount above 0")
    return value


_TIME = "How often, how long"
_WHEN = "When"
_SUCCESS = "What counts as success"
_EVIDENCE = "Evidence"
_STALE = "Stagnation"
_NEXT = "The next attempt"
_BUDGETS = "Budgets"
_STREAMS = "Streams"
_KEEP = "Records"
_HOW = "How it runs"

RUN_OPTIONS: tuple[Option, ...] = (
    Option(
        "max-attempts", _integer(0), str(limits.MAX_ATTEMPTS), "N", "Attempts in all; 0 lifts the limit.", section=_TIME
    ),
    Option("timeout", _limit, None, "DURATION", "Time limit of one attempt.", section=_TIME),
    Option(
        "kill-after",
        parse_duration,
        format_duration(limits.KILL_AFTER_SECONDS),
        "DURATION",
        "Time between the request to end and the kill.",
        section=_TIME,
    ),
    Option("deadline", _limit, None, "DURATION", "Time limit of all attempts and waits together.", section=_TIME),
    Option(
        "delay",
        parse_duration,
        format_duration(limits.DELAY_SECONDS),
        "DURATION",
        "Wait before the second attempt.",
        section=_TIME,
    ),
    Option(
        "backoff",
        _factor,
        f"{limits.BACKOFF_FACTOR:g}",
        "FACTOR",
        "Growth of the wait from attempt to attempt.",
        section=_TIME,
    ),
    Option(
        "max-delay",
        parse_duration,
        format_duration(limits.MAX_DELAY_SECONDS),
        "DURATION",
        "Longest wait.",
        section=_TIME,
    ),
    Option(
        "jitter",
        _one_of("full", "equal", "none"),
        "full",
        "full|equal|none",
        "How much of the wait is random.",
        section=_TIME,
    ),
    Option(
        "seed", _integer(0), None, "N", "Makes the random part of the waits repeatable.", section=_TIME, unset="random"
    ),
    Option(
        "retry-on",
        _condition,
        None,
        "RULE",
        "Failures to retry whatever else speaks against it: exit:1,75,100-110, signal:KILL, timeout, output:REGEX, "
        "category:NAME, cause:NAME; repeatable.",
        section=_WHEN,
        many=True,
    ),
    Option(
        "stop-on",
        _condition,
        None,
        "RULE",
        "Failures never to retry; wins over --retry-on; repeatable.",
        section=_WHEN,
        many=True,
    ),
    Option(
        "verify", _check, None, "[NAME=]CMD", "A command that must pass too; repeatable.", section=_SUCCESS, many=True
    ),
    Option(
        "require",
        _expression,
        None,
        "[NAME=]REGEX",
        "What the output must contain; repeatable.",
        section=_SUCCESS,
        many=True,
    ),
    Option(
        "forbid",
        _expression,
        None,
        "[NAME=]REGEX",
        "What the output must not contain; repeatable.",
        section=_SUCCESS,
        many=True,
    ),
    Option(
        "flaky-result",
        _one_of("pass", "fail"),
        "pass",
        "pass|fail",
        "Whether a pass after failing the same way counts; fail gives the first failure's code.",
        section=_SUCCESS,
    ),
    Option(
        "collect",
        _text,
        None,
        "GLOB",
        "Report files that the command writes; failures in them count although it exits with 0; repeatable.",
        section=_EVIDENCE,
        many=True,
    ),
    Option(
        "extractor",
        _text,
        None,
        "NAME|DIR",
        "An extractor to ask whatever the output looks like: a name, or a directory with one of your own; repeatable.",
        section=_EVIDENCE,
        many=True,
    ),
    Option(
        "matcher",
        _text,
        None,
        "FILE",
        "A file of problem matchers, whose errors are findings; repeatable.",
        section=_EVIDENCE,
        many=True,
    ),
    Option(
        "actions",
        _text,
        None,
        "FILE",
        "A file that the command appends its actions to, one JSON object a line.",
        section=_EVIDENCE,
    ),
    Option(
        "transcript",
        _text,
        None,
        "FORMAT",
        "Read standard output as an agent's transcript, which also says whether it failed; auto finds the format.",
        section=_EVIDENCE,
    ),
    Option(
        "max-stagnant-attempts",
        _integer(1),
        str(limits.MAX_STAGNANT_ATTEMPTS),
        "N",
        "Attempts in a row without anything new before help is called for.",
        section=_STALE,
    ),
    Option(
        "zero-delta-fail-fast",
        None,
        True,
        "",
        "Ask for another approach as soon as one attempt brings nothing new.",
        section=_STALE,
    ),
    Option(
        "max-identical-signatures",
        _integer(1),
        str(limits.MAX_IDENTICAL_SIGNATURES),
        "N",
        "Sightings of one failure, with others between, before help is called for.",
        section=_STALE,
    ),
    Option(
        "guidance",
        _one_of(*DELIVERIES),
        "none",
        "|".join(DELIVERIES),
        "How the next attempt is told what was learned.",
        section=_NEXT,
    ),
    Option(
        "pivot",
        _text,
        None,
        "CMD",
        "A recovery step, run before the next attempt where that must differ; one after the other; repeatable.",
        section=_NEXT,
        many=True,
    ),
    Option(
        "on-pivot",
        _one_of("stop", "retry"),
        "stop",
        "stop|retry",
        "What to do where the next attempt must differ and nothing makes it differ.",
        section=_NEXT,
    ),
    Option(
        "retry-command",
        _text,
        None,
        "CMD",
        "Run instead of the command from the second attempt on, to repeat only what failed: see $KOS_RETRY_FAILING_FILE.",
        section=_NEXT,
    ),
    Option(
        "gate",
        _text,
        None,
        "CMD",
        "Asked before every attempt, with the proposal on standard input; what it does not allow is not started.",
        section=_NEXT,
    ),
    Option(
        "on-escalate",
        _text,
        None,
        "CMD",
        "Asked where help is called for, with the decision on standard input; may answer with a verdict.",
        section=_NEXT,
    ),
    Option(
        "done",
        _regular_expression,
        None,
        "REGEX",
        "What the output says when the work is done; an attempt without it is not the last one.",
        section=_NEXT,
    ),
    Option(
        "max-prompt-bytes",
        parse_size,
        str(limits.MAX_PROMPT_BYTES),
        "SIZE",
        "Bound of the guidance in bytes.",
        section=_NEXT,
    ),
    Option(
        "max-prompt-tokens",
        _integer(0),
        str(limits.MAX_PROMPT_TOKENS),
        "N",
        "Bound of the guidance in tokens.",
        section=_NEXT,
    ),
    Option(
        "max-cost-usd",
        _amount,
        None,
        "X",
        "What all attempts together may cost, as far as a transcript says it.",
        section=_BUDGETS,
    ),
    Option("max-tokens", _integer(1), None, "N", "The tokens that all attempts together may take.", section=_BUDGETS),
    Option(
        "max-failures",
        _integer(1),
        None,
        "N",
        "Failed actions in a row, within and across attempts.",
        section=_BUDGETS,
    ),
    Option(
        "max-transient-retries",
        _integer(0),
        str(limits.MAX_TRANSIENT_RETRIES),
        "N",
        "Failures in a row that waiting can mend.",
        section=_BUDGETS,
    ),
    Option(
        "max-repeated-actions",
        _integer(1),
        str(limits.MAX_REPEATED_ACTIONS),
        "N",
        "Repetitions of one action in a row, with one result, within an attempt.",
        section=_BUDGETS,
    ),
    Option(
        "replay-stdin", None, False, "", "Read standard input once and give every attempt all of it.", section=_STREAMS
    ),
    Option(
        "hold-output",
        None,
        False,
        "",
        "Print the output of the deciding attempt only, when it has ended.",
        section=_STREAMS,
    ),
    Option(
        "tty",
        _one_of("auto", "always", "never"),
        "auto",
        "auto|always|never",
        "Whether the command gets a terminal; auto: where it would have one.",
        section=_STREAMS,
    ),
    Option(
        "session", read_session, None, "ID", "Name of the session in the journal.", section=_KEEP, unset="a new one"
    ),
    Option(
        "state-dir", _text, None, "DIR", "Where sessions are kept.", section=_KEEP, unset="the user's state directory"
    ),
    Option(
        "store",
        _store,
        None,
        "URL",
        "Where outcomes are remembered: sqlite:FILE, postgresql://…, or none.",
        section=_KEEP,
        unset="a file in the state directory",
    ),
    Option(
        "report",
        _report,
        None,
        "FORMAT:PATH",
        "Write a report (text, json, markdown) to a file; repeatable.",
        section=_KEEP,
        many=True,
    ),
    Option(
        "mask-env", _text, None, "NAME", "Treat a variable's value as a secret; repeatable.", section=_KEEP, many=True
    ),
    Option(
        "nested",
        _one_of("auto", "keep", "drop"),
        "auto",
        "auto|keep|drop",
        "Retries inside another kos-retry; auto keeps those that this command line asks for.",
        section=_HOW,
    ),
    Option(
        "profile",
        _text,
        "ci",
        "NAME",
        "A set of options: ci, wait, agent, or one of the configuration's.",
        section=_HOW,
    ),
    Option("config", _text, None, "FILE", "The configuration file.", section=_HOW, unset="searched for"),
    Option("dry-run", None, False, "", "Print the plan and run nothing.", section=_HOW),
    Option("quiet", None, False, "", "Say nothing but what went wrong with kos-retry itself.", section=_HOW),
    Option("verbose", None, False, "", "Say more about every failure.", section=_HOW),
)
BY_NAME = {option.name: option for option in RUN_OPTIONS}
BY_FIELD = {option.field: option for option in RUN_OPTIONS}

# What the profiles bundle. `ci` is what a CI step expects; `wait` polls until something is there, so neither stagnation nor cause
# ends it, except where the command cannot be started at all; `agent` goes on as long as there is progress.
PROFILES: dict[str, Raw] = {
    "ci": {},
    "wait": {
        "max_attempts": "0",
        "deadline": "10m",
        "delay": "2s",
        "backoff": "1",
        "jitter": "none",
        "retry_on": ["exit:1-125,128-255", "timeout"],
    },
    "agent": {"max_attempts": "0", "guidance": "env"},
}
COMMAND_LINE = "command line"
DEFAULT = "default"


def resolve(layers: Sequence[tuple[str, Raw]], profiles: Mapping[str, Raw]) -> RunSettings:
    """Return the settings of layers in rising precedence, each with the name of its source.

    The chosen profile lies above the files and below the environment and the command line: its layer is put in front of the first
    layer that is no file. ``profiles`` are the configuration's own. Raises UsageError that names the option and the source.
    """
    chosen_by, name = (_merged(layers, files=True) | _merged(layers, files=False)).get("profile", (DEFAULT, "ci"))
    known = {**PROFILES, **profiles}
    if name not in known:
        raise UsageError(
            f"option --profile ({chosen_by}): there is no profile '{name}'; known are {', '.join(sorted(known))}"
        )
    lower = _merged(layers, files=True)
    lower.update({field: (f"profile {name}", value) for field, value in known[name].items() if field != "profile"})
    lower.update(_merged(layers, files=False))
    return _read(lower)


def drop_nested_retries(settings: RunSettings, environment: Mapping[str, str]) -> None:
    """Leave the retrying to a kos-retry around this one, unless this command line asks for retries of its own."""
    asked = any(settings.sources[field] == COMMAND_LINE for field in ("max_attempts", "retry_on", "profile"))
    inside = "KOS_RETRY_ATTEMPT" in environment and "KOS_RETRY_MARK" in environment
    if inside and settings.nested != "keep" and (settings.nested == "drop" or not asked):
        settings.max_attempts = settings.values["max_attempts"] = 1
        settings.retries_dropped = True


def _merged(layers: Sequence[tuple[str, Raw]], *, files: bool) -> dict[str, tuple[str, Any]]:
    out: dict[str, tuple[str, Any]] = {}
    for source, raw in layers:
        if _is_file(source) == files:
            out.update({field: (source, value) for field, value in raw.items()})
    return out


def _is_file(source: str) -> bool:
    return source != COMMAND_LINE and not source.startswith("$")


def _read(merged: Mapping[str, tuple[str, Any]]) -> RunSettings:
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for option in RUN_OPTIONS:
        source, given = merged.get(option.field, (DEFAULT, option.default))
        sources[option.field] = source
        try:
            values[option.field] = read_value(option, given)
        except (ValueError, InputError) as error:
            place = "" if source == COMMAND_LINE else f" ({source})"
            raise UsageError(f"option --{option.name}{place}: {error}") from error
    return RunSettings(values, sources)


def read_value(option: Option, given: Any) -> Any:
    """Return the value of an option as it was written; raises ValueError with what is wrong."""
    if option.many:
        return [option.read(text) for text in given or []] if option.read else []
    if option.read is None or given is None:
        return given
    return option.read(given)
