"""What is said, stored: at once, once, in order; and what can't be stored now, with the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recall_core import Condition, NewRecord, Record, View, derive_id, derive_name
from recall_core.errors import RecallError, StoreError
from recall_core.forks import Lock

from .texts import parts, plain, spoken
from .waiting import Waiting

MESSAGE, DELEGATION = "message", "delegation"
SOURCE = "hermes"
MICROSECOND = 1e-6
MOST_WAITING = 10_000  # records that are held while the file can't be written
PAUSE = 5.0  # seconds after a failure in which turns wait at once, and do not try


class Transcript:
    """Stores what is said with one agent. `reach` opens the file if it is not open, and then calls `open`; what can not
    be stored waits, in memory and in a file of `waiting`.
    """

    def __init__(
        self,
        scope: str = "",
        *,
        redact: bool = True,
        reach: Callable[[], object] | None = None,
        waiting: Waiting | None = None,
    ) -> None:
        self.session = ""
        self._scope = scope  # of what is stored
        self.last_stored: float | None = None  # seconds since 1970
        self._redact = redact
        self._reach = reach
        self._memory: View | None = None
        self._lock = Lock()
        self._waiting: list[NewRecord] = []
        self._kept = waiting
        self._pauses_until = 0.0
        self._last_time = 0.0
        self._turns: dict[str, int | None] = {}  # records of this conversation, and the turn that they are of
        self._seen: frozenset[str] = frozenset()
        self._forgotten: set[str] = set()
        self._rewound = False
        self._withdrawn: list[str] = []  # records of turns that were taken back, to be deleted

    def open(self, memory: View) -> None:
        """Give it where to store: the whole memory, since it takes over what other agents could not store."""
        self._memory = memory

    @property
    def waiting(self) -> int:
        """How many records can't be stored at present."""
        return len(self._waiting)

    @property
    def seen(self) -> frozenset[str]:
        """The records of earlier turns that the model still has before it, so that they need not be recalled."""
        return self._seen

    def begin_turn(self) -> None:
        """What has been stored up to now is before the model from here on."""
        self._seen = frozenset(self._turns)

    def switch(self, session: str, *, rewound: bool) -> None:
        """Go over to another session, or to one whose last turns were taken back; what is before the model changes."""
        with self._lock:
            self._seen = frozenset()
            self._rewound = rewound
            if not rewound:
                self._turns.clear()
            self.session = session or self.session

    def keep_turn(
        self,
        user: Any,
        assistant: Any,
        *,
        session: str = "",
        turn: int | None = None,
        author: Mapping[str, Any] | None = None,
    ) -> None:
        """Store what the user said and what was answered. `turn` is how often the user has spoken by now."""
        with self._lock:
            session = session or self.session
            self._withdrawn += self._find_withdrawn(turn)
            names = (
                {f"author_{key}": author[key] for key in ("id", "name", "is_bot") if key in author} if author else {}
            )
            said = [("user", plain(user)), ("assistant", plain(assistant))]
            news = [
                new for role, text in said for new in self._make(role, text, session, names if role == "user" else {})
            ]
            for new in news:
                self._turns.setdefault(str(new.id), turn)  # what was said before stays of that turn
            self._store(news)

    def keep_missing(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Store of a history what is not stored yet, such as turns that were interrupted; return how many."""
        with self._lock:
            found = {key: (role, text) for role, text in spoken(messages) for key in [_key(role, text)]}
            memory = self._reached()
            known: set[str] = set()
            if memory is not None and found:
                where = Condition("_said", "in", tuple(found))
                stored = memory.scoped(self._scope).records(where=where, limit=len(found) * 4)
                known = {str(one.metadata["_said"]) for one in stored}
            news = [
                new
                for key, (role, text) in found.items()
                if key not in known
                for new in self._make(role, text, self.session, {})
            ]
            self._store(news)
            return len(news)

    def keep_delegation(self, task: str, result: str, about: Mapping[str, Any]) -> None:
        """Store what was given to another agent, and what came of it."""
        text = f"{plain(task)}\n→ {plain(result)}".strip()
        if text == "→":
            return
        facts = {key: str(value) for key, value in about.items() if isinstance(value, str | int) and value != ""}
        with self._lock:
            news = self._make("assistant", text, self.session, facts, kind=DELEGATION)
            self._turns.update({str(new.id): None for new in news})
            self._store(news)

    def store_waiting(self, *, at_once: bool = True) -> None:
        """Store what could not be stored before, and what agents that have ended could not; with `at_once` even if that
        has failed just now.
        """
        with self._lock:
            if at_once:
                self._pauses_until = 0.0
            self._store([])

    def keep_waiting(self) -> None:
        """Let what waits, or is being stored at this moment, survive the end of the process; waits for nothing."""
        if self._kept is not None and self._waiting:
            self._kept.keep(list(self._waiting))

    def forget(self, record: Record) -> None:
        """Never store this again: it was forgotten on purpose, while the history still has it."""
        said = record.metadata.get("_said")
        with self._lock:
            self._forgotten.add(str(said))
            self._waiting = [new for new in self._waiting if said is None or (new.metadata or {}).get("_said") != said]

    def _find_withdrawn(self, turn: int | None) -> list[str]:
        """Return the records of turns that the user took back: those that this one stands in the place of."""
        if not self._rewound or turn is None:
            return []
        self._rewound = False
        gone = [id for id, of in self._turns.items() if of is not None and of >= turn]
        for id in gone:
            del self._turns[id]
        return gone

    def _make(
        self, role: str, text: str, session: str, metadata: Mapping[str, Any], *, kind: str = MESSAGE
    ) -> list[NewRecord]:
        key = _key(role, text)
        if not text or key in self._forgotten:
            return []
        return [
            NewRecord(
                text=part,
                id=derive_id(SOURCE, kind, self._scope, session, role, text, str(number)),
                scope=self._scope,
                session=derive_name(session) if session else None,
                role=role,
                kind=kind,
                metadata={**metadata, "_said": key},
                source=SOURCE,
                created_at=self._next_time(),
                redact=self._redact,
            )
            for number, part in enumerate(parts(text))
        ]

    def _next_time(self) -> float:
        """Return a time after that of all before, so that the order of what is said is kept."""
        self._last_time = max(time.time(), self._last_time + MICROSECOND)
        return self._last_time

    def _store(self, news: Iterable[NewRecord]) -> None:
        """Store records behind those that wait. Raises StoreError if that is not possible now; then they wait, too."""
        self._hold(news)
        if time.monotonic() < self._pauses_until:
            self.keep_waiting()
            return
        memory = self._reached()
        if memory is not None and self._kept is not None:
            self._hold(self._kept.take_over())
        try:
            self._empty(memory)
        except StoreError:
            self._pauses_until = 0.0 if memory is None else time.monotonic() + PAUSE
            self.keep_waiting()
            raise
        finally:
            if self._kept is not None and not self._waiting:
                self._kept.clear()

    def _hold(self, news: Iterable[NewRecord]) -> None:
        held = {new.id for new in self._waiting}
        self._waiting += [new for new in {new.id: new for new in news}.values() if new.id not in held]
        del self._waiting[:-MOST_WAITING]

    def _reached(self) -> View | None:
        if self._reach is not None:
            self._reach()
        return self._memory

    def _empty(self, memory: View | None) -> None:
        """Store all that waits, and delete what was taken back."""
        if memory is None:
            if self._waiting:
                raise StoreError(f"the memory file is not open; {len(self._waiting)} records wait to be stored")
            return
        if self._waiting:
            try:
                memory.change(self._waiting, if_taken="skip")
                self._waiting = []
            except StoreError:
                raise
            except RecallError:
                self._store_singly(memory)
            self.last_stored = time.time()
        if self._withdrawn:
            memory.delete([id for id in self._withdrawn if id not in self._turns])
            self._withdrawn = []

    def _store_singly(self, view: View) -> None:
        """Store what can be stored: a record that never can must keep no other out. Raises what that one raised."""
        refused: RecallError | None = None
        while self._waiting:
            try:
                view.change(self._waiting[:1], if_taken="skip")
            except StoreError:
                raise
            except RecallError as error:
                refused = error
            del self._waiting[0]
        if refused is not None:
            raise refused


def _key(role: str, text: str) -> str:
    return derive_id(role, text)
