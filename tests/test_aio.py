"""The asyncio classes: the same methods as the sync ones, awaited, and never in the way of the event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest
from support import LIMIT, NOW, HashedEmbedder

from recall_core import AsyncMemory, Memory, NewRecord, Session, View
from recall_core.aio import DIFFERENCES, AsyncSession, AsyncView
from recall_core.errors import ClosedError, InvalidInputError, RecordNotFoundError

PAIRS = [(Memory, AsyncMemory), (View, AsyncView), (Session, AsyncSession)]


def own_names(of: type) -> list[str]:
    """Return the public names of a sync class, those that it has from another one of PAIRS left out."""
    others = [sync for sync, _ in PAIRS if sync is not of and issubclass(of, sync)]
    return sorted(public_names(of) - {name for other in others for name in public_names(other)})


def public_names(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


MEMBERS = [(sync, other, name) for sync, other in PAIRS for name in own_names(sync)]
METHODS = [
    (sync, other, name)
    for sync, other, name in MEMBERS
    if not isinstance(getattr(sync, name), property) and f"{sync.__name__}.{name}" not in DIFFERENCES
]


class ThreadNotingEmbedder(HashedEmbedder):
    """Notes the threads that it is called in."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def _embed(self, texts):
        self.threads.add(threading.get_ident())
        return super()._embed(texts)


def member(value) -> str:
    return value.__qualname__ if inspect.isclass(value) else str(value)


# Parity


@pytest.mark.parametrize(("sync", "other"), PAIRS, ids=member)
def test_an_async_class_has_the_public_names_of_its_sync_class_and_no_others(sync, other):
    assert public_names(other) == public_names(sync)


@pytest.mark.parametrize(("sync", "other", "name"), METHODS, ids=member)
def test_a_method_has_the_same_signature_in_both_classes(sync, other, name):
    assert parameters(getattr(other, name)) == parameters(getattr(sync, name))


@pytest.mark.parametrize(("sync", "other", "name"), METHODS, ids=member)
def test_a_method_returns_the_async_counterpart_of_what_the_sync_one_does(sync, other, name):
    returned = inspect.signature(getattr(sync, name)).return_annotation
    for sync_class, async_class in PAIRS:
        returned = returned.replace(sync_class.__name__, async_class.__name__)
    assert inspect.signature(getattr(other, name)).return_annotation == returned


@pytest.mark.parametrize(("sync", "other", "name"), METHODS, ids=member)
def test_a_method_is_awaited(sync, other, name):
    assert inspect.iscoroutinefunction(getattr(other, name))


def test_the_listed_differences_are_all_there_are():
    different = {
        f"{sync.__name__}.{name}"
        for sync, other, name in MEMBERS
        if isinstance(getattr(sync, name), property) or not inspect.iscoroutinefunction(getattr(other, name))
    }
    assert set(DIFFERENCES) == different


def test_scoped_has_the_same_signature_though_it_is_not_awaited():
    assert parameters(AsyncView.scoped) == parameters(View.scoped)


@pytest.mark.parametrize(("sync", "other", "name"), MEMBERS, ids=member)
def test_every_async_method_says_what_it_does(sync, other, name):
    assert inspect.getdoc(getattr(other, name))


def parameters(method) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())


# Both give the same


def remember_sync(path, clock) -> list[object]:
    with Memory.open(path, embedder=HashedEmbedder(), clock=clock) as memory:
        memory.add("Deployments use Docker Compose", id="1", scope="user/1", tags=["deploy"])
        memory.add_many([{"text": "数据库在五号机", "id": "2", "scope": "user/1"}, NewRecord(text="other", id="3")])
        memory.update("2", text="数据库在六号机")
        view = memory.scoped("user/1")
        session = view.session("talk", title="Databases")
        session.append("user", "Where is the database?", turn=1, id="4")
        seen: list[object] = [
            view.scope,
            view.get(["1", "2", "3"]),
            ids(view.search("数据库")),
            view.context("Docker Compose"),
            view.count(),
            view.records(limit=2, after="1"),
            (session.id, session.scope, session.title, session.created_at, session.updated_at),
            session.messages(),
            [(found.id, found.title) for found in memory.sessions()],
            session.delete(),
            memory.delete(["1", "3"]),
            memory.count(),
            memory.flush(),
            memory.stats().records,
        ]
    return seen


async def remember_async(path, clock) -> list[object]:
    async with await AsyncMemory.open(path, embedder=HashedEmbedder(), clock=clock) as memory:
        await memory.add("Deployments use Docker Compose", id="1", scope="user/1", tags=["deploy"])
        await memory.add_many(
            [{"text": "数据库在五号机", "id": "2", "scope": "user/1"}, NewRecord(text="other", id="3")]
        )
        await memory.update("2", text="数据库在六号机")
        view = memory.scoped("user/1")
        session = await view.session("talk", title="Databases")
        await session.append("user", "Where is the database?", turn=1, id="4")
        times = (await session.created_at(), await session.updated_at())
        seen: list[object] = [
            view.scope,
            await view.get(["1", "2", "3"]),
            ids(await view.search("数据库")),
            await view.context("Docker Compose"),
            await view.count(),
            await view.records(limit=2, after="1"),
            (session.id, session.scope, await session.title(), *times),
            await session.messages(),
            [(found.id, await found.title()) for found in await memory.sessions()],
            await session.delete(),
            await memory.delete(["1", "3"]),
            await memory.count(),
            await memory.flush(),
            (await memory.stats()).records,
        ]
    return seen


def ids(hits) -> list[str]:
    return [hit.record.id for hit in hits]


def test_a_memory_does_the_same_awaited(tmp_path, clock):
    expected = remember_sync(tmp_path / "sync.db", clock)
    assert asyncio.run(remember_async(tmp_path / "async.db", clock)) == expected


def test_an_error_comes_out_of_the_await(clock):
    async def update_missing():
        async with await AsyncMemory.open(":memory:", embedder=None, clock=clock) as memory:
            await memory.update("missing", text="x")

    with pytest.raises(RecordNotFoundError, match="missing"):
        asyncio.run(update_missing())


def test_leaving_the_context_closes_the_memory(clock):
    async def use_closed():
        async with await AsyncMemory.open(":memory:", embedder=None, clock=clock) as memory:
            pass
        await memory.count()

    with pytest.raises(ClosedError):
        asyncio.run(use_closed())


def test_a_scoped_view_checks_its_scope_at_once(clock):
    async def scope_wrongly():
        async with await AsyncMemory.open(":memory:", embedder=None, clock=clock) as memory:
            memory.scoped("user/../admin")

    with pytest.raises(InvalidInputError, match=r"\.\."):
        asyncio.run(scope_wrongly())


def test_an_async_memory_and_its_sessions_show_what_they_are():
    async def show():
        async with await AsyncMemory.open(":memory:", embedder=None) as memory:
            return repr(memory), repr(await memory.session("talk", scope="a"))

    assert asyncio.run(show()) == ("AsyncMemory.open(':memory:')", "AsyncSession('talk', scope='a')")


# Concurrency


def test_fifty_adds_and_searches_at_once_lose_nothing(db_path):
    async def work():
        async with await AsyncMemory.open(db_path, embedder=HashedEmbedder()) as memory:
            adds = [memory.add(f"note number {number} on rockets", id=f"{number:02}") for number in range(50)]
            searches = [memory.search("rockets", limit=50) for _ in range(50)]
            await asyncio.gather(*adds, *searches)
            return ids(await memory.search("rockets", limit=100)), await memory.count()

    found, count = asyncio.run(work())
    assert (sorted(found), count) == ([f"{number:02}" for number in range(50)], 50)


def test_embedding_never_runs_in_the_thread_of_the_event_loop(db_path):
    embedder = ThreadNotingEmbedder()

    async def work():
        async with await AsyncMemory.open(db_path, embedder=embedder) as memory:
            record = await memory.add("Deployments use Docker Compose")
            await memory.add_many([{"text": "数据库在五号机"}])
            await memory.update(record.id, text="Deployments use Podman")
            await memory.search("Podman")
            await memory.context("数据库")
            await (await memory.session("talk")).append("user", "Hello")
            await memory.flush()
        return threading.get_ident()

    loop_thread = asyncio.run(work())
    assert embedder.passages
    assert embedder.queries
    assert loop_thread not in embedder.threads


CALLS = {
    "add": lambda memory: memory.add("text"),
    "add_many": lambda memory: memory.add_many([{"text": "text"}]),
    "search": lambda memory: memory.search("text"),
    "context": lambda memory: memory.context("text"),
    "get": lambda memory: memory.get("1"),
    "update": lambda memory: memory.update("1", text="new"),
    "delete": lambda memory: memory.delete("1"),
    "restore": lambda memory: memory.restore("1"),
    "deleted": lambda memory: memory.deleted(),
    "forget": lambda memory: memory.forget(everything=True),
    "touch": lambda memory: memory.touch("1"),
    "links": lambda memory: memory.links("1"),
    "records": lambda memory: memory.records(),
    "count": lambda memory: memory.count(),
    "session": lambda memory: memory.session("talk", title="Talk"),
    "sessions": lambda memory: memory.sessions(),
    "append": lambda memory: in_session(memory, lambda session: session.append("user", "text")),
    "messages": lambda memory: in_session(memory, lambda session: session.messages()),
    "title": lambda memory: in_session(memory, lambda session: session.title()),
    "created_at": lambda memory: in_session(memory, lambda session: session.created_at()),
    "updated_at": lambda memory: in_session(memory, lambda session: session.updated_at()),
}


async def in_session(memory, call):
    return await call(await memory.session("talk"))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_does_its_work_in_another_thread(call):
    threads: set[int] = set()

    def clock() -> float:  # every one of these calls asks for the time
        threads.add(threading.get_ident())
        return NOW.timestamp()

    async def work():
        async with await AsyncMemory.open(":memory:", embedder=None, clock=clock) as memory:
            await memory.add("text", id="1")
            threads.clear()
            await call(memory)

    asyncio.run(work())
    assert threads
    assert threading.get_ident() not in threads


def test_the_loop_goes_on_while_a_memory_works():
    started, released = threading.Event(), threading.Event()
    waited: list[bool] = []

    class WaitingEmbedder(HashedEmbedder):
        def embed_passages(self, texts):
            started.set()
            waited.append(released.wait(timeout=LIMIT))
            return super().embed_passages(texts)

    async def work():
        async with await AsyncMemory.open(":memory:", embedder=WaitingEmbedder()) as memory:
            adding = asyncio.create_task(memory.add("Deployments use Docker Compose"))
            await asyncio.to_thread(started.wait, LIMIT)
            released.set()  # a loop that is blocked gets here too late
            await adding

    asyncio.run(work())
    assert waited == [True]


def test_a_cancelled_write_is_still_completed():
    begun, released, stored = threading.Event(), threading.Event(), threading.Event()

    def texts():
        begun.set()
        released.wait(timeout=LIMIT)
        yield {"text": "written all the same", "id": "1"}

    async def work():
        async with await AsyncMemory.open(":memory:", embedder=None) as memory:
            adding = asyncio.create_task(memory.add_many(texts(), progress=lambda _: stored.set()))
            await asyncio.to_thread(begun.wait, LIMIT)
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
            released.set()
            await asyncio.to_thread(stored.wait, LIMIT)
            return [record.id for record in await memory.records()]

    assert asyncio.run(work()) == ["1"]


def test_a_memory_whose_opening_was_cancelled_is_closed_again(db_path):
    async def work():
        opening = asyncio.create_task(AsyncMemory.open(db_path, embedder=None))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(work())
    assert db_path.exists()
    assert not db_path.with_name(f"{db_path.name}-wal").exists()  # SQLite removes it when the last user closes
