"""Nothing that was stored is lost with an embedding call, and no text is embedded twice, by however many processes."""

from __future__ import annotations

import math
import sys
import threading
from dataclasses import replace

import pytest
from indexer_support import MoodyEmbedder, SlowEmbedder
from queue_support import CHUNKS, KILLED_AT, NotingEmbedder, RemoteEmbedder, count_notes, fill, start
from store_support import faults, vector_faults
from support import LIMIT, FixedClock, HashedEmbedder, wait_until

from recall_core import CHAT_HISTORY, Memory, Settings
from recall_core.errors import EmbedderMismatchError, EmbedderUnavailableError, InvalidInputError
from recall_core.store.pending import LEASE

BACKGROUND = Settings(embedding="background")
ALONE = Settings(backfill_interval=math.inf)


@pytest.fixture
def embedder():
    return HashedEmbedder(16)


def queue(memory):
    return memory._engine.indexer._queue


def claim(memory, owner, limit=10, **arguments):
    now = memory._engine.now()
    return memory._engine.store.pending.claim(owner, limit, now, most_failures=3, **arguments)


def read(memory, sql):
    with memory._engine.store.database.read() as connection:
        return connection.execute(sql).fetchall()


# Processes


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_what_a_killed_process_left_is_finished_by_the_next_one(db_path, tmp_path):
    notes, others = tmp_path / "killed", tmp_path / "next"
    worker = start("add", db_path, notes)
    wait_until(lambda: len(count_notes(notes)) >= KILLED_AT)
    worker.kill()
    worker.communicate()
    assert worker.returncode == -9
    assert faults(db_path) == []
    clock = FixedClock()
    clock.seconds = 4e9  # its leases have run out
    with Memory.open(db_path, embedder=NotingEmbedder(others), clock=clock, settings=ALONE) as memory:
        stored = memory.count()
        assert stored >= KILLED_AT
        assert memory.stats().pending > 0
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert faults(db_path) == []
    counts = count_notes(notes, others)
    assert len(counts) == stored
    # What its two threads were at when they died was made again.
    assert sum(counts.values()) <= stored + 2 * NotingEmbedder.call_size


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_process_killed_with_five_thousand_chunks_pending_loses_none(db_path, tmp_path):
    fill(db_path, CHUNKS)
    worker = start("flush", db_path, tmp_path / "killed")
    wait_until(lambda: len(count_notes(tmp_path / "killed")) >= KILLED_AT)
    worker.kill()
    worker.communicate()
    with Memory.open(db_path, embedder=NotingEmbedder(tmp_path / "next"), clock=lambda: 4e9) as memory:
        assert (memory.flush(), vector_faults(memory)) == (0, [])
        assert memory.stats().spaces[0].vectors == CHUNKS


def test_processes_share_the_work_without_doubles(db_path, tmp_path):
    fill(db_path, 1_500)
    folder = tmp_path / "notes"
    folder.mkdir()
    notes = [folder / "one", folder / "two", folder / "three"]
    workers = [start("share", db_path, file) for file in notes]
    assert [worker.communicate() for worker in workers] == [("0", "")] * 3
    assert set(count_notes(*notes).values()) == {1}
    assert len(count_notes(*notes)) == 1_500
    assert sum(len(count_notes(file)) > 0 for file in notes) > 1  # the first one waits until a second one takes part
    assert faults(db_path) == []


# Leases


def test_what_somebody_is_embedding_nobody_else_gets(db_path, embedder, clock):
    fill(db_path, 10)
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        assert len(claim(memory, "other", 6)) == 6
        assert [chunk.text for chunk in claim(memory, "one")] == [f"text {number}" for number in range(6, 10)]
        assert claim(memory, "two") == []
        assert memory.stats().leased == 10


def test_a_lease_of_who_is_gone_runs_out(db_path, embedder, clock):
    fill(db_path, 10)
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        claim(memory, "gone")
        assert memory.flush(timeout=0.05) == 10
        clock.advance(LEASE / 1e6 + 1)
        assert (memory.stats().leased, memory.flush()) == (0, 0)


def test_a_lease_by_a_clock_that_was_wrong_binds_nobody(db_path, embedder, clock):
    fill(db_path, 10)
    with Memory.open(db_path, embedder=embedder, clock=lambda: 4e9, settings=ALONE) as memory:
        claim(memory, "of the future")
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        assert memory.flush() == 0


def test_a_delay_by_a_clock_that_was_wrong_delays_nothing(db_path, clock):
    embedder = MoodyEmbedder("text")
    fill(db_path, 1)
    with Memory.open(db_path, embedder=embedder, clock=lambda: 4e9, settings=ALONE) as memory:
        assert memory.flush() == 1
    embedder.poison.clear()
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        assert queue(memory).run(10).settled == 1


def test_leases_are_renewed_while_an_embedder_takes_long(db_path, clock, monkeypatch):
    monkeypatch.setattr("recall_core.leases.RENEW_EVERY", 0.01)
    embedder = SlowEmbedder()
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=BACKGROUND) as memory:
        memory.add("Rockets fly")
        assert embedder.begun.wait(LIMIT)
        clock.advance(8)
        until = int((clock() * 1e6) + LEASE)
        wait_until(lambda: read(memory, "SELECT leased_until FROM pending") == [(until,)])
        clock.advance(8)
        assert claim(memory, "other") == []
        embedder.may.set()
        assert memory.flush() == 0


def test_a_memory_that_is_closed_gives_its_leases_back(db_path, embedder, clock):
    slow = SlowEmbedder()
    settings = replace(BACKGROUND, close_timeout=0.05)
    memory = Memory.open(db_path, embedder=slow, clock=clock, settings=settings)
    memory.add("Rockets fly")
    assert slow.begun.wait(LIMIT)
    memory.close()
    with Memory.open(db_path, embedder=embedder, clock=clock) as other:
        assert other.flush() == 0
    slow.may.set()


def test_an_interrupt_gives_the_leases_back(db_path, clock):
    class Interrupted(HashedEmbedder):
        def embed_passages(self, texts):
            raise KeyboardInterrupt

    fill(db_path, 300)
    with Memory.open(db_path, embedder=Interrupted(16), clock=clock, settings=ALONE) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.flush()
        assert (memory.stats().pending, memory.stats().leased, memory.stats().failed) == (300, 0, 0)


def test_a_text_that_is_being_embedded_is_not_embedded_for_another_record(db_path, clock):
    embedder = SlowEmbedder()
    with Memory.open(db_path, embedder=embedder, clock=clock) as memory:
        threads = [threading.Thread(target=memory.add, args=("Rockets fly",)) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert embedder.begun.wait(LIMIT)
        wait_until(lambda: memory.count() == 4)
        embedder.may.set()
        for thread in threads:
            thread.join()
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert embedder.passages == ["Rockets fly"]


def test_adding_inline_takes_two_transactions(embedder):
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.add("Rockets fly")
        database, begun = memory._engine.store.database, []
        write = database._connections._transaction
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(database._connections, "_transaction", lambda: begun.append(1) or write())
            memory.add("Turtles swim")
        assert len(begun) == 2


# Failures


def test_after_more_than_three_failures_a_chunk_rests_until_asked_for(db_path, clock):
    embedder = MoodyEmbedder("poison")
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        memory.add("poison")
        for _ in range(3):
            assert memory.stats().resting == 0
            memory.flush()
        calls = embedder.calls
        stats = memory.stats()
        assert (stats.pending, stats.failed, stats.resting) == (1, 1, 1)
        clock.advance(days=30)
        assert (memory.flush(), embedder.calls) == (1, calls)
        embedder.poison.clear()
        assert memory.flush(retry_failed=True) == 0


def test_a_text_that_rests_degrades_no_search(db_path, clock):
    embedder = MoodyEmbedder("poison")
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=replace(ALONE, embed_failures=0)) as memory:
        memory.add_many([{"text": "Rockets fly"}, {"text": "poison"}])
        assert memory.stats().resting == 1
        assert memory.search("rockets").degraded is None


def test_what_arrived_is_stored_and_only_the_refused_fail(db_path, clock):
    embedder = RemoteEmbedder()
    embedder.refused = {"text 3", "text 7"}
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(10))
        assert (memory.stats().pending, memory.stats().failed, embedder.calls) == (2, 2, 1)
        assert [error for (error,) in read(memory, "SELECT DISTINCT error FROM pending")] == ["the content filter"]
        embedder.refused.clear()
        assert memory.flush() == 0
    assert sorted(embedder.passages) == sorted(f"text {number}" for number in range(10))


def test_what_did_not_arrive_is_asked_for_again_and_nothing_else(db_path, clock):
    embedder = RemoteEmbedder()
    embedder.most = 4
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(10))
        assert memory.stats().pending == 6
        assert read(memory, "SELECT DISTINCT attempts FROM pending") == [(0,)]
        assert memory.flush() == 2
        assert (memory.flush(), vector_faults(memory)) == (0, [])
    assert sorted(embedder.passages) == sorted(f"text {number}" for number in range(10))


def test_an_outage_brings_no_chunk_to_rest(db_path, clock):
    embedder = RemoteEmbedder()
    embedder.outage = EmbedderUnavailableError("the network is down")
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        memory.add("Rockets fly")
        for _ in range(10):
            clock.advance(3600)
            assert memory.flush() == 1
        stats = memory.stats()
        assert (stats.failed, stats.resting) == (1, 0)
        embedder.outage = None
        assert memory.flush() == 0


def test_during_an_outage_adding_asks_the_embedder_once(db_path, caplog):
    embedder = RemoteEmbedder()
    embedder.outage = EmbedderUnavailableError("the network is down")
    with Memory.open(db_path, embedder=embedder, settings=ALONE) as memory:
        for number in range(20):
            memory.add(f"text {number}")
        assert embedder.calls == 1
        assert len([line for line in caplog.messages if "could not be embedded" in line]) == 1
        embedder.outage = None
        assert memory.flush() == 0
        memory.add("inline again")
        assert memory.stats().pending == 0


def test_a_provider_s_wish_to_be_left_alone_is_heeded(db_path, clock):
    embedder = RemoteEmbedder()
    embedder.outage = EmbedderUnavailableError("come back later", retry_after=600)
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=ALONE) as memory:
        memory.add("Rockets fly")
        embedder.outage = None
        clock.advance(599)
        assert queue(memory).run(10).settled == 0
        clock.advance(1)
        assert queue(memory).run(10).settled == 1


def test_vectors_of_a_model_that_the_file_has_left_are_not_stored(db_path, clock):
    class Overtaken(HashedEmbedder):
        def embed_passages(self, texts):
            with memory._engine.store.database.write() as connection:
                connection.execute("UPDATE space SET model = 'another' WHERE name = 'memory'")
            return super().embed_passages(texts)

    fill(db_path, 1)
    with Memory.open(db_path, embedder=Overtaken(16), clock=clock, settings=ALONE) as memory:
        with pytest.raises(EmbedderMismatchError):
            memory.flush()
        assert (memory.stats().pending, memory.stats().leased) == (1, 0)
        assert read(memory, "SELECT count(*) FROM embedding") == [(0,)]


# Flush


def test_flush_stops_at_its_limit_and_tells_how_far_it_is(db_path, embedder):
    fill(db_path, 600)
    told = []
    with Memory.open(db_path, embedder=embedder, settings=ALONE) as memory:
        assert memory.flush(limit=300, progress=told.append) == 300
        assert memory.flush(progress=told.append) == 0
    assert told == [256, 300, 256, 300]


def test_flush_waits_for_what_another_thread_is_embedding(db_path, clock):
    embedder = SlowEmbedder()
    with Memory.open(db_path, embedder=embedder, settings=BACKGROUND, clock=clock) as memory:
        memory.add("Rockets fly")
        assert embedder.begun.wait(LIMIT)
        threading.Timer(0.05, embedder.may.set).start()
        assert memory.flush() == 0
    assert embedder.passages == ["Rockets fly"]


# What is embedded


def test_only_what_user_and_assistant_said_at_some_length_is_embedded(db_path, embedder, clock):
    with Memory.open(db_path, embedder=embedder, clock=clock, settings=CHAT_HISTORY) as memory:
        talk = memory.session("s")
        talk.append("user", "How do rockets fly?")
        talk.append("assistant", "By throwing mass behind them")
        talk.append("tool", "rockets.py ran for 3 seconds")
        talk.append("user", "0123456789")
        memory.add("rockets of nobody's own")
        assert memory.stats().pending <= 2
        assert (memory.flush(), memory.stats().pending) == (0, 0)
        assert sorted(embedder.passages) == ["By throwing mass behind them", "How do rockets fly?"]
        hits = memory.search("rockets.py ran")
        assert ("tool" in [hit.record.role for hit in hits], hits.degraded) == (True, None)
    assert faults(db_path) == []


def test_a_record_that_becomes_one_to_embed_waits_for_a_vector(db_path, embedder):
    settings = Settings(embed_roles=("user",))
    with Memory.open(db_path, embedder=embedder, settings=settings) as memory:
        memory.add("Rockets fly", id="r", role="tool")
        assert embedder.passages == []
        memory.update("r", role="user")
        assert embedder.passages == ["Rockets fly"]
        memory.update("r", role="tool", text="Turtles swim")
        assert (embedder.passages, memory.stats().pending) == (["Rockets fly"], 0)
        assert read(memory, "SELECT count(*) FROM embedding") == [(0,)]


def test_what_is_not_embedded_does_not_wait_when_its_space_is_deleted(db_path, embedder):
    settings = Settings(embed_roles=("user",))
    with Memory.open(db_path, embedder=embedder, settings=settings) as memory:
        memory.add_many([{"text": "Rockets fly", "role": "user"}, {"text": "Turtles swim", "role": "tool"}])
        with memory._engine.store.database.write() as connection:
            connection.execute("DELETE FROM space")
        assert memory.stats().pending == 1


def test_a_vector_can_be_given_for_what_is_not_embedded(db_path, embedder):
    with Memory.open(db_path, embedder=embedder, settings=Settings(embed_min_characters=100)) as memory:
        memory.add("Rockets fly", vector=embedder.embed_queries(["Turtles swim"])[0])
        assert memory.search("Turtles swim", mode="semantic")[0].why.similarity > 0.99
        memory.update(memory.records()[0].id, tags=["t"])
        assert (memory.stats().pending, memory.stats().spaces[0].vectors) == (0, 1)


@pytest.mark.parametrize("arguments", [{"limit": "x"}, {"limit": -1}, {"limit": 1.5}, {"limit": True}])
def test_a_flush_up_to_no_number_is_refused(memory_of_nothing, arguments):
    with pytest.raises(InvalidInputError, match="limit"):
        memory_of_nothing.flush(**arguments)


@pytest.mark.parametrize("timeout", ["x", -1, float("nan"), True])
def test_a_flush_for_no_time_is_refused(memory_of_nothing, timeout):
    with pytest.raises(InvalidInputError, match="timeout"):
        memory_of_nothing.flush(timeout)


@pytest.fixture
def memory_of_nothing(embedder):
    with Memory.open(":memory:", embedder=embedder) as memory:
        yield memory
