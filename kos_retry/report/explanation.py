"""What `explain` shows people: the chosen lines, coloured by what was masked and kept, and the words in which two failures differ."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from kos_retry.engine import sign
from kos_retry.engine.evidence import EvidenceLine
from kos_retry.engine.normalise import Normalised
from kos_retry.model import Difference, FailureEnvelope, Similarity
from kos_retry.text.escapes import inert, printable

_MASKED, _KEPT, _ASIDE = "red", "green", "dim"


def show(envelope: FailureEnvelope, chosen: Sequence[EvidenceLine], parts: Sequence[tuple[str, Normalised]]) -> None:
    """Print what a signature is made of. What comes from an output is text, never markup."""
    console = _console()
    console.print(Text(f"signature {envelope.signature}", "bold"))
    console.print(Text(f"class {printable(envelope.coarse)}"))
    if chosen:
        console.print(Text("lines that were chosen:"))
    for line in chosen:
        console.print(Text(f"  line {line.number}, score {line.score} ({', '.join(line.marks)})", _ASIDE))
        console.print(Text(f"    {printable(line.text)}"))
    console.print(
        Text("what was said, ").append("masked", _MASKED).append(" and ").append("kept", _KEPT).append(" by class:")
    )
    for kind, entry in parts:
        console.print(Text("  ").append(f"{kind}: ", _ASIDE).append_text(_coloured(entry)))
        for token in entry.tokens:
            became = " kept" if token.mask is None else f" became {token.mask}"
            console.print(Text(f"    {token.token_class}: {inert(token.text)}{became}", _ASIDE))
    console.print(Text("what the signature is made of:"))
    for feature in sign.features(envelope):
        console.print(Text(f"  {inert(feature)}"))


def show_difference(told: Similarity, old: FailureEnvelope, new: FailureEnvelope) -> None:
    """Print whether two failures are the same one, and if not in which words they differ."""
    console = _console()
    if told.same_signature:
        console.print(Text(f"same signature {old.signature}", "bold"))
    else:
        console.print(Text("different signatures", "bold"))
        console.print(Text(f"  - {old.signature}  {printable(old.coarse)}", _MASKED))
        console.print(Text(f"  + {new.signature}  {printable(new.coarse)}", _KEPT))
    shares = ", ".join(f"{part.name} {part.score:.2f}" for part in told.parts)
    console.print(Text(f"similarity {told.score:.2f} ({shares})"))
    for difference in told.differences:
        console.print(_difference(difference))


def _difference(difference: Difference) -> Text:
    out = Text(f"  {difference.feature}: ")
    out.append(" ".join(f"[-{inert(word)}-]" for word in difference.removed), _MASKED)
    out.append(" " if difference.removed and difference.added else "")
    out.append(" ".join(f"{{+{inert(word)}+}}" for word in difference.added), _KEPT)
    if difference.old and difference.new:
        out.append(f"  in  {inert(difference.new)}", _ASIDE)
    return out


def _coloured(entry: Normalised) -> Text:
    """Return the levelled line with its tokens in the colour of what happened to them."""
    text = Text(inert(entry.levelled))
    # A command to a CI host was made inert: the places of the tokens have moved.
    for token in entry.tokens if text.plain == entry.levelled else ():
        text.stylize(_KEPT if token.mask is None else f"{_MASKED} underline", token.start, token.end)
    return text


def _console() -> Console:
    return Console(file=sys.stdout, highlight=False, soft_wrap=True)
