"""Copies, pickled ones and those of forked processes: hosts copy chains, retrievers and stores, and servers fork."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cases import ALICE, CASES, QUESTION, TEA, converse
from fakes import CharEmbeddings
from langchain_core.runnables import RunnableLambda

from recall_core import Memory
from recall_langchain import RecallEmbeddings, RecallMiddleware, RecallRetriever, RecallStore, RecallVectorStore

each_class = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


class Unlike(CharEmbeddings):
    """A model of LangChain that can be neither copied nor pickled, as those with a connection."""

    def __init__(self):
        super().__init__()
        self.connection = threading.Lock()


COPIES = [
    pytest.param(copy.deepcopy, id="copied"),
    pytest.param(lambda thing: pickle.loads(pickle.dumps(thing)), id="pickled"),
]


@pytest.mark.parametrize("copied", COPIES)
@each_class
def test_a_copy_of_what_was_opened_by_a_path_works_on_the_same_file(tmp_path, case, copied):
    with case.make(tmp_path / "memory.db") as original:
        case.fill(original)
        twin = copied(original)
    with twin:
        assert "oolong" in case.find(twin)
        case.fill(twin)


@each_class
def test_a_copy_of_what_was_given_a_memory_shares_it_and_can_not_be_pickled(tmp_path, case):
    with Memory.open(tmp_path / "memory.db") as memory:
        original = case.make(memory)
        twin = copy.deepcopy(original)
        case.fill(twin)
        twin.close()
        assert "oolong" in case.find(original)
        with pytest.raises(TypeError, match="pickled"):
            pickle.dumps(original)


@pytest.mark.parametrize("make", [
    lambda path, model: RecallVectorStore(path, model),
    lambda path, model: RecallStore(path, index={"dims": 64, "embed": model}),
], ids=["vectorstore", "store"])  # fmt: skip
def test_a_copy_has_the_same_model_of_langchain(tmp_path, make):
    with make(tmp_path / "memory.db", Unlike()) as original, copy.deepcopy(original) as twin:
        assert twin._embeddings is original._embeddings if isinstance(twin, RecallStore) else twin.embeddings


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_the_embeddings_embeds_the_same(copied):
    embeddings = RecallEmbeddings()
    assert copied(embeddings).embed_query("tea") == embeddings.embed_query("tea")


def test_a_copy_of_a_chain_has_its_retriever(tmp_path):
    with RecallRetriever(memory=tmp_path / "memory.db") as retriever:
        retriever._opened.view.add(TEA)
        chain = copy.deepcopy(RunnableLambda(str.strip) | retriever)
    assert [document.page_content for document in chain.invoke(QUESTION)] == [TEA]
    chain.last.close()


def test_a_middleware_with_tools_is_pickled_with_them(tmp_path):
    with RecallMiddleware(tmp_path / "memory.db", tools=True) as recall, pickle.loads(pickle.dumps(recall)) as twin:
        remember = twin.tools[1]
        assert remember.invoke({"text": TEA}, {"configurable": ALICE}).startswith("Remembered")
        assert "oolong" in converse(recall, QUESTION)


# Forks


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="forks are not safe there")
def test_forked_workers_go_on_with_what_their_parent_had_opened(tmp_path):
    program = Path(__file__).with_name("forked.py")
    environment = {**os.environ, "PYTHONPATH": str(program.parent)}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert set(found) == set(CASES) | {f"{name} in the parent" for name in CASES}
    assert all(TEA in what for what in found.values())
