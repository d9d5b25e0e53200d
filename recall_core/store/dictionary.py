"""The user dictionary of a file, and which of its words older records are not indexed by yet."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping

import apsw

from .connection import select, select_one
from .database import Database
from .protocols import Dictionary, WordChange, WordsToIndex

# Keys of meta. How far the records are indexed by the changed words is noted apart from these, which may be many.
VERSION, CHANGED, PROGRESS = "dictionary", "changed_words", "changed_words_progress"
FIRST_KEY = -(1 << 63)  # of a record; another program may have chosen any
INSERT = "INSERT INTO dictionary(word) VALUES (?) ON CONFLICT DO NOTHING RETURNING 1"
DELETE = "DELETE FROM dictionary WHERE word = ? RETURNING 1"
SAVE = "INSERT INTO meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
# Another process may have changed the dictionary once more; what it noted then is not touched.
ADVANCE = """
INSERT INTO meta(key, value) SELECT ?1, json_object('by', ?2, 'after', ?3)
WHERE EXISTS (SELECT 1 FROM meta WHERE key = ?4 AND value = ?2) AND EXISTS (SELECT 1 FROM meta WHERE key = ?5)
ON CONFLICT(key) DO UPDATE SET value = excluded.value
WHERE CASE WHEN json_valid(value) THEN json_extract(value, '$.by') IS NOT ?2
  OR ifnull(json_extract(value, '$.after') < ?3, 1) ELSE 1 END
"""


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

    def changed(self) -> WordsToIndex:
        """Return the words that were added or removed and that not all records are indexed by yet."""
        with self._database.read() as connection:
            words, version = _changed(connection), _version(connection)
            known = read_note(connection, PROGRESS)
        return WordsToIndex(words, version, find_progress(known, version))

    def advance(self, version: str, after: int) -> None:
        """Note that all records up to the key `after` are indexed by the words that changed up to this version."""
        with self._database.write() as connection:
            connection.execute(ADVANCE, (PROGRESS, version, after, VERSION, CHANGED))

    def settle(self, version: str) -> bool:
        """Note that all records are indexed by the words of this version; False if others were changed meanwhile."""
        with self._database.write() as connection:
            if _version(connection) != version:
                return False
            connection.execute("DELETE FROM meta WHERE key IN (?, ?)", (CHANGED, PROGRESS))
            return True


def read_note(connection: apsw.Connection, key: str) -> dict[str, object]:
    """Return an object that is noted in meta, an empty one if there is none, or if it is damaged."""
    row = select_one(connection, "SELECT value FROM meta WHERE key = ?", (key,))
    try:
        found = {} if row is None else json.loads(row[0])
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def find_progress(note: Mapping[str, object], by: str) -> int:
    """Return behind which key a run goes on that notes how far it has come, `by` what it indexes."""
    after = note.get("after")
    return after if note.get("by") == by and isinstance(after, int) else FIRST_KEY


def _version(connection: apsw.Connection) -> str:
    row = select_one(connection, "SELECT value FROM meta WHERE key = ?", (VERSION,))
    return "" if row is None else str(row[0])


def _changed(connection: apsw.Connection) -> frozenset[str]:
    words = read_note(connection, CHANGED).get("words")
    return frozenset(word for word in words if isinstance(word, str)) if isinstance(words, list) else frozenset()


def _note(connection: apsw.Connection, words: Collection[str]) -> None:
    """Have all records looked at for these words, too; there may be none yet."""
    if select_one(connection, "SELECT 1 FROM record LIMIT 1") is not None:
        every = sorted(_changed(connection).union(words))
        connection.execute(SAVE, (CHANGED, json.dumps({"words": every}, ensure_ascii=False)))
