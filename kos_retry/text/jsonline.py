"""Writing one JSON object on one line without importing a JSON library.

The path from the command line to the wrapped command, and the whole path of a command that passes, pay for every
import; what they write is a handful of flat records.
"""

from __future__ import annotations

# The C accelerator of the json package; importing it costs nothing, the package itself several milliseconds.
from _json import encode_basestring_ascii as _quoted

from kos_retry.text.bounds import well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Plain = None | bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"]


def json_line(value: Plain) -> str:
    """Return ``value`` as JSON in ASCII, without a newline; floats must be finite."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return str(_quoted(value if value.isascii() else well_formed(value)))
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(k)}:{json_line(v)}" for k, v in value.items()) + "}"
    return "[" + ",".join(json_line(v) for v in value) + "]"
