"""Why a program failed, where the type of the exception or the words of the system tell."""

from __future__ import annotations

import re

from traces import SYNTAX

# What the system says of itself, as `OSError` words it on any platform: kind, rule, what a human must do.
SYSTEM = {
    "Connection refused": ("transient", "connection-refused", None),
    "Connection reset by peer": ("transient", "connection-reset", None),
    "Connection timed out": ("transient", "connection-timeout", None),
    "Software caused connection abort": ("transient", "connection-aborted", None),
    "Network is unreachable": ("transient", "network-unreachable", None),
    "No route to host": ("transient", "network-unreachable", None),
    "Temporary failure in name resolution": ("transient", "name-resolution", None),
    "Name or service not known": ("transient", "name-resolution", None),
    "nodename nor servname provided, or not known": ("transient", "name-resolution", None),
    "Address already in use": ("transient", "address-in-use", None),
    "Resource temporarily unavailable": ("transient", "resource-busy", None),
    "Device or resource busy": ("transient", "resource-busy", None),
    "No space left on device": ("environment", "disk-full", "free disk space, or write to another disk"),
    "Disk quota exceeded": ("environment", "disk-full", "free disk space, or raise the quota"),
    "Read-only file system": ("environment", "read-only", "write to a directory that is not mounted read-only"),
    "Too many open files": ("resource", "open-files", "close files earlier, or raise the limit of open files"),
    "Cannot allocate memory": ("resource", "memory", "use less memory, or raise its limit"),
}
# Types that tell the cause by themselves.
TYPES = {
    "ConnectionResetError": ("transient", "connection-reset", None),
    "ConnectionRefusedError": ("transient", "connection-refused", None),
    "ConnectionAbortedError": ("transient", "connection-aborted", None),
    "RemoteDisconnected": ("transient", "connection-reset", None),
    "BlockingIOError": ("transient", "resource-busy", None),
    "MemoryError": ("resource", "memory", "use less memory, or raise its limit"),
    **dict.fromkeys(SYNTAX, ("deterministic", "syntax", "correct the syntax at the named line")),
    "ImportError": ("deterministic", "import", "correct the import, or install what it needs"),
    "ModuleNotFoundError": ("deterministic", "import", "install the missing module, or correct the import"),
}

_MODULE = re.compile(r"^No module named '([\w.]{1,200})'")
_ERRNO = re.compile(r"^\[Errno -?\d{1,5}\] ([^:]{1,100})")
_HTTP = re.compile(r"^(?:HTTP Error )?(408|425|429|500|502|503|504)\b")


def cause_of(error_type: str, message: str) -> dict[str, str] | None:
    """Return why it failed, where the type or the system's own words tell; never from words in a message."""
    name = error_type.rpartition(".")[2]
    if (errno := _ERRNO.match(message)) and errno[1].strip() in SYSTEM:
        known = SYSTEM[errno[1].strip()]
    elif name in TYPES:
        known = TYPES[name]
    elif name in ("TimeoutError", "timeout") and message in (
        "timed out",
        "The read operation timed out",
        "Read timed out",
    ):
        known = ("transient", "connection-timeout", None)
    elif name == "HTTPError" and _HTTP.match(message):
        known = ("transient", "http-status", None)
    elif name == "OperationalError" and message == "database is locked":
        known = ("transient", "database-locked", None)
    else:
        return None
    kind, rule, fix = known
    if module := _MODULE.match(message):
        fix = f"install the missing module '{module[1]}', or correct the import"
    evidence = f"{error_type}: {message}".partition("\n")[0].rstrip(": ")
    return {"kind": kind, "rule": f"python-{rule}", "evidence": evidence, **({"fix": fix} if fix else {})}
