"""What a class does not take is refused, and what it writes of itself is taken again."""

from __future__ import annotations

import pytest

from recall_llamaindex import RecallChatStore, RecallEmbedding, RecallMemoryBlock, RecallRetriever, RecallVectorStore

OF_A_FILE = [RecallVectorStore, RecallChatStore, RecallMemoryBlock, RecallRetriever]


@pytest.mark.parametrize("kind", OF_A_FILE, ids=lambda kind: kind.__name__)
def test_an_argument_that_is_mistyped_is_refused_and_no_file_is_made(tmp_path, kind):
    with pytest.raises(TypeError, match="takes no 'scop'"):
        kind(tmp_path / "memory.db", scop="user/alice")
    assert list(tmp_path.iterdir()) == []


def test_an_argument_of_the_model_that_is_mistyped_is_refused():
    with pytest.raises(TypeError, match="takes no 'modl'"):
        RecallEmbedding(modl="other")


@pytest.mark.parametrize("kind", OF_A_FILE[:-1], ids=lambda kind: kind.__name__)
def test_what_a_class_writes_of_itself_is_taken_again(tmp_path, opened, kind):
    opened.append(kind(tmp_path / "memory.db", scope="user/alice"))
    opened.append(kind.model_validate(opened[0].model_dump()))
    assert (opened[1].path, opened[1].scope) == (opened[0].path, "user/alice")


def test_what_the_model_writes_of_itself_is_taken_again():
    model = RecallEmbedding(embed_batch_size=7)
    assert RecallEmbedding.model_validate(model.model_dump()).embed_batch_size == 7
