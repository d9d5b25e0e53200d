"""The user dictionary of a file, and which of its words older records are not indexed by yet."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from typing import Any

import apsw

from .connection import select, select_one
from .database import Database
from .protocols import Dictionary, WordChange

VERSION, CHANGED = "dictionary", "changed_words"  # keys of meta
FIRST_KEY = -(1 << 63)  # of a record; another program may have chosen any
INSERT = "INSERT INTO dictionary(word) VALUES (?) ON CONFLICT DO NOTHING RETURNING 1"
DELETE = "DELETE FROM dictionary WHERE word = ? RETURNING 1"
SAVE = "INSERT INTO meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
# Another process may be further, may have finished, or may have changed the dictionary once more.
ADVANCE = """
UPDATE meta SET value = json_set(value, '$.after', ?1)
WHERE key = 'changed_words' AND json_extract(value, '$.words') = json(?2) AND json_extract(value, '$.after') < ?1
"""
SETTLE = "DELETE FROM meta WHERE key = 'changed_words' AND json_extract(value, '$.words') = json(?)"


class DictionaryTable:
    """The words that the keyword index keeps whole. Its version differs after each change, by whichever process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> str:
        """Return what tells the dictionary's present state from others; "" before the first change."""
        with self._database.read() as connection:
            return _version(connection)

    def read(self) -> Dictionary:
        """Return the words and their version, as of one moment."""
        with self._database.read() as connection:
            words = frozenset(word for (word,) in select(connection, "SELECT word FROM dictionary"))
            return Dictionary(_version(connection), words)

    def change(self, add: Collection[str] = (), remove: Collection[str] = ()) -> WordChange:
        """Add and remove words, and note them for the older records; return which were not in or out before."""
        with self._database.write() as connection:
            added = [word for word in add if select(connection, INSERT, (word,))]
            removed = [word for word in remove if select(connection, DELETE, (word,))]
            if added or removed:
                connection.execute(SAVE, (VERSION, secrets.token_hex(8)))
                _note(connection, [*added, *removed])
            return WordChange(tuple(added), tuple(removed))

    def changed(self) -> tuple[frozenset[str], int]:
        """Return the words that were added or removed and that not all records are indexed by yet, and the key up to
        which they are.
        """
        with self._database.read() as connection:
            known = _changed(connection)
        return frozenset(known["words"]), int(known["after"])

    def advance(self, words: Collection[str], after: int) -> None:
        """Note that all records up to the key `after` are indexed by these changed words."""
        with self._database.write() as connection:
            connection.execute(ADVANCE, (after, _dump(words)))

    def settle(self, words: Collection[str]) -> bool:
        """Note that all records are indexed by these changed words; False if others were changed meanwhile."""
        with self._database.write() as connection:
            connection.execute(SETTLE, (_dump(words),))
            return not _changed(connection)["words"]


def _version(connection: apsw.Connection) -> str:
    row = select_one(connection, "SELECT value FROM meta WHERE key = ?", (VERSION,))
    return "" if row is None else str(row[0])


def _changed(connection: apsw.Connection) -> dict[str, Any]:
    row = select_one(connection, "SELECT value FROM meta WHERE key = ?", (CHANGED,))
    return {"words": [], "after": FIRST_KEY} if row is None else dict(json.loads(row[0]))


def _note(connection: apsw.Connection, words: Collection[str]) -> None:
    """Have all records looked at for these words, from the first one on; there may be none yet."""
    if select_one(connection, "SELECT 1 FROM record LIMIT 1") is None:
        return
    every = {*_changed(connection)["words"], *words}
    value = f'{{"words":{_dump(every)},"after":{FIRST_KEY}}}'
    connection.execute(SAVE, (CHANGED, value))


def _dump(words: Collection[str]) -> str:
    """Return words as SQLite's json_extract writes them."""
    return json.dumps(sorted(words), ensure_ascii=False, separators=(",", ":"))
