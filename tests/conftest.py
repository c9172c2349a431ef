"""What all tests share: how hypothesis searches."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# CI must not fail for luck: there the same examples are tried every time; at a desk new ones are.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100, print_blob=True)
settings.register_profile("desk", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "desk")
