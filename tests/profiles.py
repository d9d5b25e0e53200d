"""How hypothesis runs, here and in the adapters' tests.

`make test` uses the profile "ci", which tries the same examples every time; pytest by hand uses "dev", which looks for
new ones. HYPOTHESIS_PROFILE names another.
"""

from __future__ import annotations

import os

import hypothesis


def load() -> None:
    """Choose the profile. None of them minds how long an example takes: machines may be busy."""
    hypothesis.settings.register_profile("dev", deadline=None)
    hypothesis.settings.register_profile(
        "ci",
        deadline=None,
        derandomize=True,
        database=None,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
