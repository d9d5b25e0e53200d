"""A forked process, such as a worker that a server has made, goes on with the memory of its parent."""

from __future__ import annotations

from crews import make_record
from fork_support import forks, in_child

from recall_core import Memory
from recall_core.errors import ClosedError
from recall_crewai import RecallStorage, recall_memory

pytestmark = forks


def test_a_storage_is_used_in_a_forked_child_and_in_its_parent(tmp_path, opened):
    storage = RecallStorage(tmp_path / "memory.db")
    opened.append(storage)
    storage.save([make_record("before")])

    def work():
        storage.save([make_record("in the child")])
        found = sorted(record.content for record in storage.list_records())
        storage.close()
        return found

    assert in_child(work) == ["before", "in the child"]
    storage.save([make_record("after")])
    assert storage.count() == 3


def test_a_memory_that_has_saved_saves_and_recalls_in_a_forked_child(tmp_path, opened):
    memory = recall_memory(tmp_path / "memory.db")
    opened.append(memory)
    memory.remember("The boiler is in the cellar.")
    memory.remember_many(["The ladder is in the attic."])

    def work():
        memory.remember("The bicycle is in the shed.")
        memory.remember_many(["The saw is in the garage."])
        return [memory.recall(f"Where is the {thing}?")[0].record.content for thing in ("boiler", "bicycle", "saw")]

    said = ["The boiler is in the cellar.", "The bicycle is in the shed.", "The saw is in the garage."]
    assert in_child(work) == said
    assert "attic" in memory.recall("Where is the ladder?")[0].record.content
    assert "garage" in memory.recall("Where is the saw?")[0].record.content


def test_a_memory_that_its_user_opened_is_theirs_to_open_again(tmp_path):
    with Memory.open(tmp_path / "memory.db") as own:
        storage = RecallStorage(own)

        def work():
            try:
                return storage.count()
            except ClosedError as error:
                return str(error)

        assert "open it again" in in_child(work)
