"""What is too large or too deep is refused, with what was seen and what to do; what is just within is stored."""

from __future__ import annotations

import pytest

from recall_core import Memory
from recall_core.drafting import MAX_METADATA, MAX_PAYLOAD, MAX_TAGS, MAX_TEXT
from recall_core.errors import InvalidInputError
from recall_core.text.clean import MAX_DEPTH


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add("as it was", id="r")
        yield memory


def nest(depth: int) -> dict[str, object]:
    value: object = 1
    for _ in range(depth - 1):
        value = [value]
    return {"k": value}


TOO_MUCH = {
    "text": ({"text": "字" * (MAX_TEXT + 1)}, r"text has 1,000,001 characters .*in parts"),
    "metadata": ({"metadata": {"k": "字" * MAX_METADATA}}, r"metadata has 1,000,009 characters as JSON, at most 1,0"),
    "payload": ({"payload": ["x" * MAX_PAYLOAD]}, r"payload has 16,000,004 characters as JSON, at most 16,000,000"),
    "depth of metadata": ({"metadata": nest(MAX_DEPTH + 1)}, r"nested deeper than 64 levels; store it flatter"),
    "depth of a payload": ({"payload": nest(MAX_DEPTH + 1)}, r"nested deeper than 64 levels; store it flatter"),
    "depth beyond Python's": ({"payload": nest(100_000)}, r"nested deeper than 64 levels; store it flatter"),
    "tags": ({"tags": [f"t{n}" for n in range(MAX_TAGS + 1)]}, r"there are 1,001 tags, at most 1,000"),
    "a tag": ({"tags": ["x" * 513]}, r"a tag has 513 characters"),
    "id": ({"id": "x" * 513}, r"id has 513 characters"),
    "scope": ({"scope": "x" * 1025}, r"scope"),
}  # fmt: skip
WAYS = {
    "add": lambda memory, arguments: memory.add(**{"text": "text"} | arguments),
    "add_many": lambda memory, arguments: memory.add_many([{"text": "text"} | arguments]),
    "append": lambda memory, arguments: memory.session("talk").append("user", **{"text": "text"} | arguments),
    "update": lambda memory, arguments: memory.update("r", **arguments),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", TOO_MUCH)
def test_what_is_too_large_is_refused_and_nothing_is_stored(memory, way, case):
    arguments, message = TOO_MUCH[case]
    if (way, case) in {("update", "id"), ("append", "scope")}:
        pytest.skip("it has no such argument")
    with pytest.raises(InvalidInputError, match=message) as raised:
        WAYS[way](memory, arguments)
    assert len(str(raised.value)) < 400
    assert [record.text for record in memory.records()] == ["as it was"]


WITHIN = {
    "metadata": {"metadata": {"k": "字" * (MAX_METADATA - 10)}},
    "payload": {"payload": "x" * (MAX_PAYLOAD - 2)},
    "depth": {"metadata": nest(MAX_DEPTH), "payload": nest(MAX_DEPTH)},
    "tags": {"tags": tuple(f"t{n}" for n in range(MAX_TAGS))},
}


@pytest.mark.parametrize("arguments", WITHIN.values(), ids=WITHIN)
def test_what_is_just_small_enough_is_stored(memory, arguments):
    memory.add("text", id="large", **arguments)
    (stored,) = memory.get("large")
    assert {name: getattr(stored, name) for name in arguments} == arguments


def test_the_largest_text_is_stored_and_found(memory):
    text = "word " * (MAX_TEXT // 5 - 2) + "needle at the end"
    memory.add(text[:MAX_TEXT], id="large")
    (hit,) = memory.search("needle", limit=1)
    assert (hit.record.id, hit.record.text) == ("large", text[:MAX_TEXT])
