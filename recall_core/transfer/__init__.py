"""Memories in and out: the native format, and importers for other programs' files.

A new importer is a module with a class that has the `Source` protocol (entries.py), listed in formats.py. It yields
`Entry` values with a `key`; ids, batches, duplicates and the report are the frame's (importing.py). SQLite files are
read through `ForeignDatabase` (foreign.py), the only SQL here.
"""

from .methods import Transfer

__all__ = ["Transfer"]
