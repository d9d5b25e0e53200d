"""When records were last accessed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..filters import Selection
from .compile import compile_selection
from .connection import select
from .database import Database

TOUCH = """
UPDATE record SET accessed_at = ?, importance = ifnull(?, importance), expires_at = iif(?, ?, expires_at)
WHERE id IN (SELECT value FROM json_each(?)) AND {selection} RETURNING 1
"""


class AccessTable:
    """The access times of one database's records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def touch(
        self,
        ids: Sequence[str],
        selection: Selection,
        *,
        importance: float | None,
        expires: bool,
        expires_at: int | None,
    ) -> int:
        """Note that the selected ones of these records were accessed at the selection's time; return how many. Their
        importance changes unless it is None, their expiry if `expires`.
        """
        clause = compile_selection(selection)
        sql = TOUCH.format(selection=clause.sql)
        bindings = (selection.now, importance, expires, expires_at, json.dumps(ids), *clause.bindings)
        with self._database.write() as connection:
            return len(select(connection, sql, bindings))
