"""Classes of adapters take a path, an open memory or a view, and close only what they opened."""

from __future__ import annotations

import copy
import os
import pickle
import traceback

import pytest
from support import HashedEmbedder

from recall_core import Condition, Memory
from recall_core.errors import ClosedError, InvalidInputError
from recall_core.opening import PAGE, Closing, Opened, find_path, read_all


class Store(Closing):
    def __init__(self, *arguments, **keywords):
        self._opened = Opened(*arguments, **keywords)

    @property
    def view(self):
        return self._opened.view


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_child(work) -> int:
    """Return the exit code of a forked process: 0 if a function raises nothing there."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_path_is_opened_and_closed(path, kind):
    with Store(kind(path), "user/1", embedder=None) as store:
        store.view.add("hello")
        assert store.view.scope == "user/1"
    with pytest.raises(ClosedError):
        store.view.add("hello")


@pytest.mark.parametrize("view", [lambda memory: memory, lambda memory: memory.scoped("user/1")])
def test_what_was_open_before_stays_open(path, view):
    with Memory.open(path, embedder=None) as memory:
        with Store(view(memory), "a") as store:
            store.view.add("hello")
        assert memory.count() == 1
        assert store.view.scope == "/".join(filter(None, [view(memory).scope, "a"]))


def test_without_a_scope_all_is_seen(path):
    with Memory.open(path, embedder=None) as memory:
        assert Opened(memory).view is memory


def test_a_file_is_closed_again_if_the_scope_can_not_be_used(path):
    with pytest.raises(InvalidInputError, match="scope"):
        Opened(path, "/", embedder=None)
    path.unlink()
    with Memory.open(path, embedder=None) as memory:
        assert memory.count() == 0


@forks
def test_a_forked_child_opens_its_own_and_leaves_its_parent_its_file(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with Store(path.name, "user/1", embedder=None) as store:
        store.view.add("before")

        def work():
            os.chdir("/")
            store.view.add("in the child")
            store.close()

        assert in_child(work) == 0
        assert [record.text for record in store.view.records()] == ["before", "in the child"]
        store.view.add("after")


@forks
@pytest.mark.parametrize("closes", [True, False])
def test_what_is_closed_or_only_in_ram_is_not_opened_in_a_child(path, closes):
    store = Store(path if closes else ":memory:", embedder=None)
    if closes:
        store.close()

    def work():
        with pytest.raises(ClosedError):
            store.view.count()

    assert in_child(work) == 0
    store.close()


def test_something_else_than_a_memory_is_refused():
    with pytest.raises(InvalidInputError, match=r"path of a file.*42"):
        Opened(42)


def test_a_path_is_told_from_what_is_open(path):
    assert find_path(path) == find_path(str(path)) == str(path)
    with Memory.open(path, embedder=None) as memory:
        assert find_path(memory) is None


# Copies


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
def test_a_copy_has_the_same_file_open_for_itself(path, monkeypatch, copied):
    monkeypatch.chdir(path.parent)
    with Store(path.name, "user/1", embedder=None) as store:
        store.view.add("hello")
        monkeypatch.chdir("/")
        twin = copied(store)
    with twin:
        assert (twin.view.scope, twin.view.count()) == ("user/1", 1)
        twin.view.add("hello again")
    with pytest.raises(ClosedError):
        twin.view.count()


def test_a_copy_keeps_the_embedder(path):
    embedder = HashedEmbedder()
    with Store(path, embedder=embedder) as store, copy.deepcopy(store) as twin:
        assert twin.view._engine.embedder is embedder


@pytest.mark.parametrize("opening", [Memory.open, lambda path, **_: path])
def test_a_copy_of_what_lies_in_ram_or_was_given_shares_it_and_leaves_it_open(opening):
    with Store(opening(":memory:", embedder=None)) as store:
        twin = copy.deepcopy(store)
        twin.view.add("hello")
        twin.close()
        assert store.view.count() == 1
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(store)


def test_a_copy_of_what_was_closed_is_closed(path):
    store = Store(path, embedder=None)
    store.close()
    with pytest.raises(ClosedError):
        copy.deepcopy(store).view.count()


def test_an_open_memory_is_copied_by_no_copy_of_what_holds_it(path):
    with Memory.open(path, embedder=None) as memory:
        held = copy.deepcopy({"memory": memory, "view": memory.scoped("a")})
        assert held["memory"] is memory
        assert held["view"].scope == "a"
        with pytest.raises(TypeError, match="open the file again"):
            pickle.dumps(memory)


def test_all_records_are_read_however_many_there_are(path):
    with Memory.open(path, embedder=None) as memory:
        memory.add_many({"text": str(number), "metadata": {"even": number % 2 == 0}} for number in range(PAGE + 3))
        assert [record.text for record in read_all(memory)] == [str(number) for number in range(PAGE + 3)]
        assert len(list(read_all(memory, Condition("even", "eq", True)))) == PAGE // 2 + 2
        memory.session("s").append("user", "hello")
        assert [record.text for record in read_all(memory, session="s")] == ["hello"]
