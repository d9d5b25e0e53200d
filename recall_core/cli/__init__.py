"""The `recall` command: store, search and look after a memory file from a shell.

Exit codes: 0 done; 1 nothing found, or refused; 2 the call or its input can't be used; 3 the memory file (or the model)
can't be used; 130 interrupted. Results go to stdout, everything else to stderr, each message a line that begins with
"recall: ".
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the `recall` command."""
    if sys.argv[1:2] == ["hook"]:
        from .answering import answer_call

        if answer_call(sys.argv[1:]):
            return
    from .app import main as run

    run()
