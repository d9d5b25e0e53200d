"""The `recall` command: store, search and look after a memory file from a shell.

Exit codes: 0 done; 1 nothing found, or refused; 2 the call or its input can't be used; 3 the memory file (or the model)
can't be used; 130 interrupted. Results go to stdout, everything else to stderr, each message a line that begins with
"recall: ".
"""

from .app import app, main

__all__ = ["app", "main"]
