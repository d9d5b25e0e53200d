"""Runs an example whose agents wait for their memory however busy the machine is."""

from __future__ import annotations

import runpy
import sys

from recall_langchain import RecallMiddleware

RecallMiddleware.__init__.__kwdefaults__["timeout"] = 120.0
runpy.run_path(sys.argv[1], run_name="__main__")
