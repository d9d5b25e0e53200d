"""What becomes of a text behind `add`: chunks, terms and vectors, at once or later, whatever the embedder does."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from support import HashedEmbedder

from recall_core import Memory, Settings
from recall_core.chunking import estimate_tokens
from recall_core.embedding import load_bundled
from recall_core.errors import InvalidInputError


class Moody(HashedEmbedder):
    """Fails as it is told to: on every text, or on those that hold a word."""

    down = False
    poison: str | None = None
    wrong: object = None

    def embed_passages(self, texts):
        if self.down or (self.poison and any(self.poison in text for text in texts)):
            raise ConnectionError("the model is away")
        if self.wrong is not None:
            return np.full((len(texts), self.dimensions), self.wrong, dtype=np.float32)
        return super().embed_passages(texts)


class Slow(HashedEmbedder):
    """Waits until it is let go."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.threads = set()

    def embed_passages(self, texts):
        self.threads.add(threading.get_ident())
        assert self.gate.wait(20)
        return super().embed_passages(texts)


class Sentences:
    """A user's chunker."""

    def chunk(self, text):
        ends = [place + 1 for place, character in enumerate(text) if character == "."]
        return list(zip([0, *ends[:-1]], ends, strict=True))


@pytest.fixture
def moody(clock):
    embedder = Moody()
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield memory, embedder


def found(memory, query, **arguments):
    return [hit.record.text for hit in memory.search(query, **arguments)]


# Once per file


def test_the_same_text_is_embedded_once_however_many_records_hold_it(db_path):
    embedder = HashedEmbedder()
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("the same text", scope="a")
        memory.add("the same text", scope="b")
        memory.add_many({"text": "the same text"} for _ in range(5))
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add("the same text", scope="c")
        assert memory.stats().spaces[0].vectors == 8
    assert embedder.passages == ["the same text"]


def test_who_said_it_is_part_of_what_is_embedded(moody):
    memory, embedder = moody
    memory.add("I like tea", role="Alice")
    memory.add("I like tea", role="user")
    assert embedder.passages == ["Alice: I like tea", "I like tea"]


# Failures


def test_a_text_is_kept_and_found_by_keyword_while_the_model_is_away(moody):
    memory, embedder = moody
    embedder.down = True
    memory.add("docker deploys the services")
    assert found(memory, "docker") == ["docker deploys the services"]
    assert (memory.stats().pending, memory.stats().failed) == (1, 1)


def test_flush_tries_again_what_has_failed(moody):
    memory, embedder = moody
    embedder.down = True
    memory.add("docker deploys the services")
    assert memory.flush() == 1
    embedder.down = False
    assert memory.flush() == 0
    assert found(memory, "docker", mode="semantic") == ["docker deploys the services"]


def test_one_refused_text_does_not_keep_the_others_waiting(moody):
    memory, embedder = moody
    embedder.poison = "poison"
    memory.add_many({"text": text} for text in ("first", "the poison", "second", "third"))
    assert (memory.stats().pending, memory.stats().spaces[0].vectors) == (1, 3)


@pytest.mark.parametrize("wrong", [0.0, float("nan"), float("inf")])
def test_vectors_that_can_not_be_compared_are_refused(moody, wrong):
    memory, embedder = moody
    embedder.wrong = wrong
    memory.add("docker deploys the services")
    assert memory.stats().pending == 1
    embedder.wrong = None
    assert memory.flush() == 0


def test_vectors_of_another_size_than_promised_are_refused(clock):
    embedder = HashedEmbedder(8)
    embedder.dimensions = 16
    embedder._embed = lambda texts: np.ones((len(texts), 8), dtype=np.float32)
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        memory.add("docker deploys the services")
        assert (memory.stats().pending, memory.flush()) == (1, 1)


# In the background


def test_in_the_background_add_returns_before_the_vector_is_made():
    embedder = Slow()
    with Memory.open(":memory:", embedder=embedder, settings=Settings(embedding="background")) as memory:
        memory.add("docker deploys the services")
        assert (found(memory, "docker", mode="keyword"), memory.stats().pending) == (["docker deploys the services"], 1)
        embedder.gate.set()
        assert memory.flush(20) == 0


def test_what_is_not_embedded_when_a_memory_is_closed_is_embedded_after_the_next_open(db_path):
    embedder = Moody()
    embedder.down = True
    with Memory.open(db_path, embedder=embedder) as memory:
        memory.add_many({"text": f"text {number}"} for number in range(300))
        assert memory.stats().pending == 300
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        assert memory.flush() == 0
        assert memory.stats().spaces[0].vectors == 300


def test_a_memory_filled_without_a_model_gets_its_vectors_from_the_first_that_opens_it(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("docker deploys the services")
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory:
        assert memory.flush() == 0
        assert found(memory, "docker", mode="semantic") == ["docker deploys the services"]


def test_eight_threads_add_and_search_at_once(db_path):
    with Memory.open(db_path, embedder=HashedEmbedder()) as memory, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> int:
            for place in range(20):
                memory.add(f"note {number} {place}", scope=f"user/{number}")
                assert len(memory.search("note", scope=f"user/{number}", limit=50)) == place + 1
            return memory.count(f"user/{number}")

        assert list(pool.map(work, range(8))) == [20] * 8
        assert memory.flush() == 0


def test_two_handles_on_one_file_see_each_other(db_path):
    embedder = HashedEmbedder()
    with Memory.open(db_path, embedder=embedder) as one, Memory.open(db_path, embedder=embedder) as other:
        one.add("docker deploys the services")
        assert found(other, "docker", mode="semantic") == ["docker deploys the services"]
        one.close()
        assert other.count() == 1


# Chunks


def test_a_user_s_chunker_cuts_and_one_record_comes_back(clock):
    embedder = HashedEmbedder()
    settings = Settings(chunker=Sentences())
    with Memory.open(":memory:", embedder=embedder, settings=settings, clock=clock) as memory:
        memory.add("Docker deploys. Coffee is black. The cat sleeps.")
        assert embedder.passages == ["Docker deploys.", " Coffee is black.", " The cat sleeps."]
        (hit,) = memory.search("coffee")
        assert hit.record.text[hit.chunk.start : hit.chunk.end] == hit.chunk.text == " Coffee is black."


def test_a_chunker_that_answers_nonsense_is_refused_and_nothing_is_stored(clock):
    class Nonsense:
        def chunk(self, text):
            return [(5, 2)]

    with Memory.open(":memory:", embedder=None, settings=Settings(chunker=Nonsense()), clock=clock) as memory:
        with pytest.raises(InvalidInputError, match="chunker"):
            memory.add("some text")
        assert memory.count() == 0


@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_chunks_have_the_size_that_was_asked_for(clock, unit):
    settings = Settings(chunk_size=100, chunk_overlap=20, chunk_unit=unit)
    embedder = HashedEmbedder()
    with Memory.open(":memory:", embedder=embedder, settings=settings, clock=clock) as memory:
        memory.add("".join(f"数据库备份第{number}次执行。" for number in range(60)))
        assert len(embedder.passages) > 5
        measure = len if unit == "characters" else lambda passage: len(estimate_tokens(passage))
        assert all(measure(passage) <= 100 for passage in embedder.passages)


def test_every_token_of_a_long_text_is_embedded_by_the_bundled_model(db_path):
    model = load_bundled()
    text = "部署服务之前先备份数据库 and check the release notes of version v1.2.3. " * 120
    with Memory.open(db_path, embedder=model, settings=Settings(chunk_size=100_000)) as memory:
        memory.add(text)
    with closing(sqlite3.connect(db_path)) as connection:
        chunks = connection.execute("SELECT start, stop FROM chunk ORDER BY place").fetchall()
    assert all(len(model.token_spans(text[start:stop])) <= model.window for start, stop in chunks)
    covered = {place for start, stop in chunks for place in range(start, stop)}
    assert {place for place, character in enumerate(text) if not character.isspace()} <= covered
