"""These tests need an environment with frameworks: `make test-hosts` makes them and names each in RECALL_TEST_HOSTS."""

from __future__ import annotations

import os

collect_ignore_glob = [] if "RECALL_TEST_HOSTS" in os.environ else ["test_*.py"]
