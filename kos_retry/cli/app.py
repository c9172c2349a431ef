"""The Typer application: help, completion, and every command but the way of `run` to its command."""

from __future__ import annotations

import inspect
import os
from typing import Annotated, Any, NoReturn

import typer

from kos_retry.errors import KosRetryError
from kos_retry.limits import MAX_REPEATED_ACTIONS, SESSION_MAX_AGE
from kos_retry.settings import RUN_OPTIONS, Raw

app = typer.Typer(
    name="kos-retry",
    help="Retry what can pass, stop what cannot, and tell the next attempt what was learned.",
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help"]},
)
sessions_app = typer.Typer(help="What the journals hold.", rich_markup_mode=None)
extractors_app = typer.Typer(
    help="The plug-ins that read outputs and report files.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(sessions_app, name="sessions")
app.add_typer(extractors_app, name="extractors")
config_app = typer.Typer(help="The settings that hold here.", rich_markup_mode=None)
app.add_typer(config_app, name="config")
history_app = typer.Typer(help="What is remembered across sessions.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(history_app, name="history")

StateDir = Annotated[str | None, typer.Option("--state-dir", metavar="DIR", help="Where sessions are kept.")]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="The store: sqlite:FILE or postgresql://…; the configured one without it."
    ),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many.")]
MaskEnv = Annotated[
    list[str] | None,
    typer.Option("--mask-env", metavar="NAME", help="Treat a variable's value as a secret; repeatable."),
]
Extractors = Annotated[
    list[str] | None,
    typer.Option(
        "--extractor", metavar="NAME|DIR", help="An extractor to ask whatever the output looks like; repeatable."
    ),
]
JsonLines = Annotated[bool, typer.Option("--jsonl", help="One JSON object a line in, one a line out.")]
Format = Annotated[
    str, typer.Option("--format", metavar="FORMAT", help="text, json, or markdown where it is a report.")
]
Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for standard input.")]
_FORMATS = ("text", "json", "markdown")


def _version(asked: bool) -> None:
    if asked:
        from kos_retry import __version__

        typer.echo(f"kos-retry {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Retry what can pass, stop what cannot, and tell the next attempt what was learned."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run_command(**given: Any) -> None:
    """Wrap a command: attempt, observe, decide, retry."""
    from kos_retry.cli import run as work

    command = given.pop("command") or []
    raw: Raw = {field: value for field, value in given.items() if value not in (None, [])}
    raise typer.Exit(work.run_command(raw, command))


def _run_signature() -> inspect.Signature:
    """Return the signature that makes Typer's `run` of the option table."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = []
    for option in RUN_OPTIONS:
        names = [f"--{option.name}"] if option.read else [f"--{option.name}/--no-{option.name}"]
        shown = False if option.many else option.unset if option.default is None else str(option.default)
        if option.read is None:
            shown = "on" if option.default else "off"
        info = typer.Option(
            *names,
            metavar=option.metavar or None,
            help=option.help,
            show_default=shown,
            rich_help_panel=option.section,
        )
        kind: Any = bool if option.read is None else list[str] if option.many else str
        parameters.append(
            inspect.Parameter(
                option.field,
                keyword,
                default=None,
                annotation=Annotated[kind | None, info],
            )
        )
    argument = typer.Argument(
        metavar="COMMAND [ARG]...", help="The command to wrap, and its arguments.", show_default=False
    )
    parameters.append(
        inspect.Parameter("command", keyword, default=None, annotation=Annotated[list[str] | None, argument])
    )
    return inspect.Signature(parameters)


run_command.__signature__ = _run_signature()  # type: ignore[attr-defined] # what inspect.signature() looks at
run_command.__annotations__ = {name: p.annotation for name, p in _run_signature().parameters.items()}
app.command("run", context_settings={"allow_interspersed_args": False})(run_command)


@app.command()
def observe(
    exit_code: Annotated[
        int | None,
        typer.Option("--exit-code", metavar="N", help="The command's exit code; below zero a signal's number."),
    ] = None,
    signal: Annotated[
        str | None, typer.Option("--signal", metavar="NAME", help="The signal that ended the command.")
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="The command's output, - for standard input.")
    ] = None,
    category: Annotated[
        str | None, typer.Option("--category", metavar="NAME", help="The category, where you know it better.")
    ] = None,
    attempt: Annotated[int, typer.Option("--attempt", metavar="N", help="The number of the attempt, from 1.")] = 1,
    command: Annotated[str | None, typer.Option("--command", metavar="TEXT", help="The command line.")] = None,
    failing_constraint: Annotated[
        list[str] | None, typer.Option("--failing-constraint", metavar="NAME", help="What did not hold; repeatable.")
    ] = None,
    collect: Annotated[
        list[str] | None,
        typer.Option("--collect", metavar="GLOB", help="Report files that the attempt wrote; repeatable."),
    ] = None,
    transcript: Annotated[
        str | None,
        typer.Option(
            "--transcript", metavar="FORMAT", help="Read the output as an agent's transcript; auto finds the format."
        ),
    ] = None,
    actions: Annotated[
        str | None, typer.Option("--actions", metavar="FILE", help="The command's actions, one JSON object a line.")
    ] = None,
    extractor: Extractors = None,
    mask_env: MaskEnv = None,
    matcher: Annotated[
        list[str] | None,
        typer.Option(
            "--matcher",
            metavar="FILE",
            help="A file of problem matchers; the configuration's without it; repeatable.",
        ),
    ] = None,
    jsonl: JsonLines = False,
) -> None:
    """Turn an outcome into a FailureEnvelope."""
    from kos_retry.adapters.reports import matching
    from kos_retry.cli import observe as work
    from kos_retry.cli.inputs import parse_model
    from kos_retry.model import OutcomeRow

    raw: Raw = {"extractor": extractor or [], "matcher": matcher or []}
    if jsonl:
        work.observe_rows("-", raw, mask_env or [])
        return
    given = {"exit_code": exit_code, "signal": signal, "category": category, "attempt": attempt, "command": command}
    given["transcript"] = transcript
    lists = {"reports": list(matching(collect or [])), "failing_constraints": failing_constraint or []}
    row = parse_model(OutcomeRow, {**given, **lists}, "options")
    work.observe(row, log, raw, mask_env or [], actions)


@app.command("next")
def next_command(
    source: Source = "-",
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Add to this session, and decide over all of it.")
    ] = None,
    state_dir: StateDir = None,
    max_attempts: Annotated[int | None, typer.Option("--max-attempts", metavar="N", help="Attempts in all.")] = None,
    max_stagnant_attempts: Annotated[int | None, typer.Option("--max-stagnant-attempts", metavar="N")] = None,
    zero_delta_fail_fast: Annotated[
        bool | None, typer.Option("--zero-delta-fail-fast/--no-zero-delta-fail-fast")
    ] = None,
    max_identical_signatures: Annotated[int | None, typer.Option("--max-identical-signatures", metavar="N")] = None,
    max_prompt_bytes: Annotated[
        str | None, typer.Option("--max-prompt-bytes", metavar="SIZE", help="Bound of the guidance in bytes.")
    ] = None,
    max_prompt_tokens: Annotated[
        int | None, typer.Option("--max-prompt-tokens", metavar="N", help="Bound of the guidance in tokens.")
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 0 continue, 10 pivot, 20 escalate, 30 halt.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every rule in order, with why it did or did not decide.")
    ] = False,
    jsonl: JsonLines = False,
    form: Format = "json",
) -> None:
    """Decide what to do next from a history of envelopes."""
    from kos_retry.cli import next as work
    from kos_retry.text.durations import parse_size

    given: dict[str, Any] = {
        "max_attempts": max_attempts,
        "max_stagnant_attempts": max_stagnant_attempts,
        "zero_delta_fail_fast": zero_delta_fail_fast,
        "max_identical_signatures": max_identical_signatures,
        "max_prompt_bytes": _read("max-prompt-bytes", parse_size, max_prompt_bytes),
        "max_prompt_tokens": max_prompt_tokens,
    }
    overrides = {name: value for name, value in given.items() if value is not None}
    if jsonl:
        work.decide_rows(source, overrides)
        return
    if explain:
        as_text = _chosen(form, ("json", "text")) == "text"
        work.explain_next(source, overrides, session=session, state_dir=state_dir, text=as_text)
        return
    text = _chosen(form, ("json", "text")) == "text"
    raise typer.Exit(
        work.decide_next(source, overrides, session=session, state_dir=state_dir, exit_code=exit_code, text=text)
    )


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="An envelope: a file, or -.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The envelope after it.")],
    form: Format = "text",
) -> None:
    """Show what changed between two envelopes."""
    from kos_retry.cli import diff as work

    work.diff(old, new, _chosen(form, ("text", "json")))


@app.command()
def explain(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ENVELOPE|LOG]...", help="A log or an envelope, or two to compare; - for standard input."
        ),
    ] = None,
    exit_code: Annotated[int, typer.Option("--exit-code", metavar="N", help="The exit code behind a log.")] = 1,
    form: Format = "text",
) -> None:
    """Explain a signature: the lines it is made of, and what was masked in them; of two, why they differ."""
    from kos_retry.cli import explain as work

    work.explain(sources or ["-"], exit_code, _chosen(form, ("text", "json")))


@app.command()
def report(
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session; the latest without it.")
    ] = None,
    state_dir: StateDir = None,
    form: Format = "text",
) -> None:
    """Report how a session went."""
    from kos_retry.cli import sessions as work

    work.report(session, state_dir, _chosen(form, _FORMATS))


@app.command()
def hook(
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="The session; the one that this runs in without it."),
    ] = None,
    state_dir: StateDir = None,
    max_repeated_actions: Annotated[
        int,
        typer.Option("--max-repeated-actions", metavar="N", help="Same successful calls in a row that say nothing."),
    ] = MAX_REPEATED_ACTIONS,
) -> None:
    """Answer an agent's hook: JSON on standard input, JSON on standard output, never a fault of its own."""
    # Help and completion are all that is made here: an agent does not wait for that, see `kos_retry.__main__`.


@app.command()
def schema(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A wire type; all names without it.")] = None,
) -> None:
    """Print the JSON Schema of a wire type."""
    from kos_retry.cli import schema as work

    work.schema(name)


@sessions_app.command("list")
def sessions_list(state_dir: StateDir = None, form: Format = "text") -> None:
    """List the sessions, the oldest first."""
    from kos_retry.cli import sessions as work

    work.list_sessions(state_dir, _chosen(form, ("text", "json")))


@sessions_app.command("resume", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def sessions_resume(
    context: typer.Context,
    session: Annotated[str, typer.Argument(metavar="ID")],
    state_dir: StateDir = None,
) -> None:
    """Go on with a session that was stopped or killed; options of run behind the id hold instead of its own."""
    from kos_retry.cli import resume as work

    raise typer.Exit(work.resume(session, state_dir, context.args))


@sessions_app.command("stop")
def sessions_stop(session: Annotated[str, typer.Argument(metavar="ID")], state_dir: StateDir = None) -> None:
    """End a running session from elsewhere."""
    from kos_retry.cli import resume as work

    work.stop(session, state_dir)


@sessions_app.command("prune")
def sessions_prune(
    state_dir: StateDir = None,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="DURATION", help="The age of the last record.")
    ] = SESSION_MAX_AGE,
) -> None:
    """Forget old sessions."""
    from kos_retry.cli import resume as work
    from kos_retry.text.durations import parse_duration

    raise typer.Exit(work.prune(state_dir, _read("older-than", parse_duration, older_than)))


@sessions_app.command("show")
def sessions_show(
    session: Annotated[str, typer.Argument(metavar="ID")], state_dir: StateDir = None, form: Format = "text"
) -> None:
    """Show one session's last run."""
    from kos_retry.cli import sessions as work

    work.show_session(session, state_dir, _chosen(form, _FORMATS))


@history_app.command("signatures")
def history_signatures(
    store: StoreUrl = None, state_dir: StateDir = None, limit: Limit = 50, form: Format = "text"
) -> None:
    """List the failures, the last seen first."""
    from kos_retry.cli import history as work

    work.signatures(work.Place(store, state_dir), limit, _chosen(form, ("text", "json")))


@history_app.command("flaky")
def history_flaky(store: StoreUrl = None, state_dir: StateDir = None, limit: Limit = 50, form: Format = "text") -> None:
    """List the failures that passed on retry, the most costly first."""
    from kos_retry.cli import history as work

    work.flaky(work.Place(store, state_dir), limit, _chosen(form, ("text", "json")))


@history_app.command("lessons")
def history_lessons(
    store: StoreUrl = None, state_dir: StateDir = None, limit: Limit = 50, form: Format = "text"
) -> None:
    """Tell how the sessions ended that did not pass at once, the newest first."""
    from kos_retry.cli import history as work

    work.lessons(work.Place(store, state_dir), limit, _chosen(form, ("text", "json")))


@history_app.command("export")
def history_export(store: StoreUrl = None, state_dir: StateDir = None) -> None:
    """Write everything as JSON Lines."""
    from kos_retry.cli import history as work

    work.export(work.Place(store, state_dir))


@history_app.command("import")
def history_import(source: Source = "-", store: StoreUrl = None, state_dir: StateDir = None) -> None:
    """Read what another store exported; what is known already is not counted twice."""
    from kos_retry.cli import history as work

    raise typer.Exit(work.import_lines(work.Place(store, state_dir), source))


@history_app.command("prune")
def history_prune(
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="DURATION", help="Drop what is older, for example 90d.")
    ] = None,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", min=0, help="Keep only the newest.")] = None,
    store: StoreUrl = None,
    state_dir: StateDir = None,
) -> None:
    """Drop old outcomes; without an option those that are dropped by themselves in time."""
    from kos_retry.cli import history as work
    from kos_retry.text.durations import parse_duration

    work.prune(work.Place(store, state_dir), _read("older-than", parse_duration, older_than), keep)


@extractors_app.command("list")
def extractors_list(form: Format = "text") -> None:
    """List the extractors."""
    from kos_retry.cli import extractors as work

    work.list_extractors(_chosen(form, ("text", "json")))


@extractors_app.command("run")
def extractors_run(
    name: Annotated[str, typer.Argument(metavar="NAME|DIR", help="An extractor's name, or a directory with one.")],
    log: Annotated[
        str | None, typer.Option("--log", metavar="FILE", help="The output to read, - for standard input.")
    ] = None,
    report_file: Annotated[
        list[str] | None, typer.Option("--report-file", metavar="FILE", help="A report file to read; repeatable.")
    ] = None,
    exit_code: Annotated[int, typer.Option("--exit-code", metavar="N", help="The exit code behind the output.")] = 1,
) -> None:
    """Run one extractor and print its findings."""
    from kos_retry.cli import extractors as work

    work.run_extractor(name, log, report_file or [], exit_code)


@extractors_app.command("check")
def extractors_check(
    directories: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DIR]...", help="Directories with an extractor each; the bundled ones without."),
    ] = None,
    form: Format = "text",
) -> None:
    """Check extractors: manifest, recorded cases, and what hostile output does to them."""
    from kos_retry.cli import extractors as work

    raise typer.Exit(work.check_extractors(directories or [], _chosen(form, ("text", "json"))))


@config_app.command("show")
def config_show(
    config: Annotated[str | None, typer.Option("--config", metavar="FILE", help="The configuration file.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME", help="The profile to show.")] = None,
    form: Format = "text",
) -> None:
    """Print every value with its source."""
    from kos_retry.cli import config as work

    work.show(config, profile, _chosen(form, ("text", "json")))


@config_app.command("init")
def config_init(
    path: Annotated[str | None, typer.Argument(metavar="FILE", help="Where to write it.")] = None,
) -> None:
    """Write a commented configuration file."""
    from kos_retry.cli import config as work

    work.init(path)


@app.command()
def doctor() -> None:
    """Look for what can go wrong on this machine."""
    from kos_retry.cli import doctor as work

    raise typer.Exit(work.doctor())


def _chosen(form: str, known: tuple[str, ...]) -> str:
    if form not in known:
        raise typer.BadParameter(f"'{form}' is not one of {', '.join(known)}", param_hint="--format")
    return form


def _read(name: str, read: Any, text: str | None) -> Any:
    try:
        return None if text is None else read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=f"--{name}") from error


def main() -> None:
    """Run the application; an expected fault is one line on standard error, a bug says how to report it."""
    # Looking for plug-ins of the validator means reading every installed package's metadata; ours need none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        status = app(standalone_mode=False)
    except KosRetryError as error:
        _end(str(error), error.exit_status)
    except typer.Abort:
        raise SystemExit(130) from None
    except _UsageError as error:
        _end(error.format_message(), 2)
    except Exception as error:
        if "KOS_RETRY_DEBUG" in os.environ:
            raise
        _end(f"internal error: {type(error).__name__}: {error}; please report it, KOS_RETRY_DEBUG=1 shows where", 125)
    raise SystemExit(status if isinstance(status, int) else 0)


# The base of all faults of the command line; Typer does not export it.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]


def _end(message: str, status: int) -> NoReturn:
    """Write one line to standard error and end."""
    from kos_retry.cli.output import complain

    complain(message)
    raise SystemExit(status)
