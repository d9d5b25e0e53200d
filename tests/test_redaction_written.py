"""What is redacted is in no file: neither in the memory's nor in its log, whichever way it was written."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import run
from redaction_support import TOKENS
from support import HashedEmbedder

from recall_core import AsyncMemory, Memory, NewRecord, Session, Settings, View
from recall_core.errors import InvalidInputError
from recall_core.models import AddArguments

SECRETS = {name: token for name, token in TOKENS.items() if "\n" not in token}
PASSWORD = "korrekt7pferd"
EVERYTHING = "\n".join([*SECRETS.values(), f"password={PASSWORD}", TOKENS["private key"]])
PEM_LINE = TOKENS["private key"].splitlines()[1]
FIELDS = {
    "tags": [SECRETS["github token"], "deploy"],
    "metadata": {"key": SECRETS["anthropic key"], "password": PASSWORD, "deep": [{SECRETS["npm token"]: 1}]},
    "payload": {"content": EVERYTHING, "parts": [{"text": SECRETS["jwt"]}]},
    "source": f"https://anna:{PASSWORD}@wiki.example/page",
}


def write_add(memory: Memory, redact: bool | None) -> None:
    memory.add(EVERYTHING, redact=redact, **FIELDS)


def write_mappings(memory: Memory, redact: bool | None) -> None:
    memory.add_many([{"text": EVERYTHING, "redact": redact, **FIELDS}])


def write_records(memory: Memory, redact: bool | None) -> None:
    memory.add_many([NewRecord(text=EVERYTHING, redact=redact, **FIELDS)])


def write_message(memory: Memory, redact: bool | None) -> None:
    memory.session("s").append("user", EVERYTHING, turn=1, redact=redact, **FIELDS)


def write_change(memory: Memory, redact: bool | None) -> None:
    memory.change(add=[{"text": EVERYTHING, "redact": redact, **FIELDS}])


def write_title(memory: Memory, redact: bool | None) -> None:
    memory.session("s", title=EVERYTHING, redact=redact)


def write_update(memory: Memory, redact: bool | None) -> None:
    memory.add("nothing yet", id="a")
    memory.update("a", text=EVERYTHING, redact=redact, **FIELDS)


def write_replacement(memory: Memory, redact: bool | None) -> None:
    memory.add("nothing yet", id="a")
    memory.add(EVERYTHING, id="a", on_duplicate="replace", redact=redact, **FIELDS)


def write_with_a_vector(memory: Memory, redact: bool | None) -> None:
    memory.add(EVERYTHING, vector=[1.0, 0.0], space="host", redact=redact, **FIELDS)


def write_below_a_scope(memory: Memory, redact: bool | None) -> None:
    memory.scoped("a").add(EVERYTHING, scope="b", redact=redact, **FIELDS)


WRITES: dict[str, Callable[[Memory, bool | None], None]] = {
    "add": write_add,
    "add_many of mappings": write_mappings,
    "add_many of records": write_records,
    "append": write_message,
    "change": write_change,
    "session title": write_title,
    "update": write_update,
    "replace": write_replacement,
    "with a vector": write_with_a_vector,
    "view": write_below_a_scope,
}


def leaked(folder: Path) -> set[str]:
    """Return the secrets that are in some file of a folder: the memory's, its log, its shared memory, a journal."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    raw = b"".join(path.read_bytes() for path in files)
    # The keyword index has terms in lower case, and pairs of characters; a term of a secret is its longest stretch.
    lowered = raw.lower()
    searched = {**SECRETS, "password": PASSWORD, "private key": PEM_LINE}
    return {name for name, secret in searched.items() if secret.lower().encode() in lowered}


def leaked_while_open_and_after(memory: Memory, folder: Path, write: Callable[[], object]) -> set[str]:
    with memory:
        write()
        memory.flush()
        assert any(path.name.endswith("-wal") and path.stat().st_size for path in folder.iterdir())
        found = leaked(folder)
    return found | leaked(folder)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(("setting", "redact"), [(False, True), (True, None), (True, True)])
def test_no_secret_is_in_any_file(tmp_path, write, setting, redact):
    memory = Memory.open(tmp_path / "m.db", embedder=HashedEmbedder(8), settings=Settings(redact=setting))
    assert leaked_while_open_and_after(memory, tmp_path, lambda: write(memory, redact)) == set()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(("setting", "redact"), [(False, None), (True, False)])
def test_what_is_not_asked_to_be_redacted_is_stored_as_it_is(tmp_path, write, setting, redact):
    memory = Memory.open(tmp_path / "m.db", embedder=HashedEmbedder(8), settings=Settings(redact=setting))
    found = leaked_while_open_and_after(memory, tmp_path, lambda: write(memory, redact))
    assert found == {*SECRETS, "password", "private key"}  # so the test above can fail


# Methods that take whole records, each with its own `redact`, and one that takes the arguments of `add`.
TAKE_RECORDS = {"View.add_many", "View.change", "Session.append"}


def test_every_method_that_takes_a_text_or_a_title_can_redact_it():
    """A new way of writing fails here until it takes `redact`, or takes records and stands in WRITES."""
    assert "redact" in AddArguments.__annotations__
    methods = {
        f"{owner.__name__}.{name}": set(inspect.signature(method).parameters)
        for owner in (View, Session)
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
    }
    writing = {name for name, taken in methods.items() if taken & {"text", "title", "records", "add", "metadata"}}
    assert {name for name in writing if "redact" not in methods[name]} == TAKE_RECORDS


def test_an_async_memory_redacts_too(tmp_path):
    async def write() -> None:
        async with await AsyncMemory.open(tmp_path / "m.db", embedder=None) as memory:
            await memory.add(EVERYTHING, redact=True, **FIELDS)
            session = await memory.session("s", title=EVERYTHING, redact=True)
            await session.append("user", EVERYTHING, redact=True, **FIELDS)

    asyncio.run(write())
    assert leaked(tmp_path) == set()


def test_the_command_line_redacts_what_it_adds_and_imports(tmp_path):
    db = tmp_path / "data" / "m.db"
    db.parent.mkdir()
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"text": EVERYTHING, **FIELDS}) + "\n", "utf-8")
    assert run(db, "add", "-", "--redact", given=EVERYTHING).exit_code == 0
    assert run(db, "import", str(lines), "--redact").exit_code == 0
    assert leaked(db.parent) == set()
    assert run(db, "add", "-", given=EVERYTHING).exit_code == 0
    assert leaked(db.parent) != set()


def test_a_record_shows_what_was_taken_out_and_is_found_by_the_rest():
    with Memory.open(":memory:", embedder=None) as memory:
        record = memory.add(f"部署用的 token 是 {SECRETS['github token']}，别外传", redact=True, tags=["deploy"])
        assert record.text == "部署用的 token 是 [redacted: github token]，别外传"
        assert [hit.record.id for hit in memory.search("部署 token")] == [record.id]


def test_names_that_records_are_asked_for_by_are_left_alone():
    token = SECRETS["npm token"]
    with Memory.open(":memory:", embedder=None, settings=Settings(redact=True)) as memory:
        memory.add("text", id=token, scope=token, session=token, role=token, kind=token)
        (record,) = memory.get(token)
        assert (record.scope, record.session, record.role, record.kind) == (token,) * 4


def test_an_update_leaves_what_it_does_not_change():
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add(f"password={PASSWORD}", id="a")
        assert memory.update("a", tags=["x"], redact=True).text == f"password={PASSWORD}"


def test_the_same_secret_twice_is_a_duplicate_by_what_is_stored():
    with Memory.open(":memory:", embedder=None, settings=Settings(redact=True)) as memory:
        first = memory.add(f"password={PASSWORD}")
        assert memory.add(f"password={PASSWORD}2", on_duplicate="skip").id == first.id


def test_a_function_of_the_settings_sees_every_text(tmp_path):
    settings = Settings(redact=lambda text: text.replace("Anna", "A."))
    memory = Memory.open(tmp_path / "m.db", embedder=None, settings=settings)

    def write() -> None:
        memory.add("Anna", tags=["Anna"], metadata={"by": "Anna", "Anna": 1}, payload=["Anna"], source="Anna")
        memory.session("s", title="Anna").append("user", "to Anna")
        memory.update(memory.records()[0].id, text="from Anna")

    with memory:
        write()
        assert all(b"Anna" not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_function_that_fails_stores_nothing():
    settings = Settings(redact=lambda text: None)
    with Memory.open(":memory:", embedder=None, settings=settings) as memory:
        with pytest.raises(InvalidInputError, match="Settings"):
            memory.add("text")
        assert memory.count() == 0


@pytest.mark.parametrize("redact", ["yes", 1, str])
def test_what_is_no_choice_is_refused(redact):
    with Memory.open(":memory:", embedder=None) as memory, pytest.raises(InvalidInputError, match="redact is"):
        memory.add("text", redact=redact)
