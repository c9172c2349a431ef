"""kos-retry: retry what can pass, stop what cannot, and tell the next attempt what was learned."""

from __future__ import annotations

__version__ = "0.1.0"
