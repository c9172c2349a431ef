"""Addresses that may hold a password, as they may be shown."""

from __future__ import annotations

HIDDEN = "[redacted]"


def without_password(url: str) -> str:
    """Return an address with what its user part and its parameters hold of a password replaced."""
    for password in passwords(url):
        url = url.replace(f":{password}@", f":{HIDDEN}@").replace(f"={password}", f"={HIDDEN}")
    return url


def passwords(url: str) -> list[str]:
    """Return the passwords in an address, as they are written there."""
    _, separator, rest = url.partition("://")
    if not separator:
        return []
    place, _, query = rest.partition("?")
    # A password may hold anything but an at sign: the last one ends it.
    user, at, _ = place.rpartition("@")
    found = [user.partition(":")[2]] if at else []
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        if "password" in name.lower():
            found.append(value)
    return [password for password in found if password]
