"""What adapters ask of a memory: changes as one transaction, scopes, ids of a host's own names, pages of vectors."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashedEmbedder

from recall_core import Memory, derive_id, derive_name, escape_segment, format_scope, unescape_segment
from recall_core.drafting import MAX_NAME, MAX_TEXT
from recall_core.errors import EmbeddingError, InvalidInputError, RecordExistsError, RecordNotFoundError
from recall_core.hosting import prepare_search, split_text
from recall_core.revision import Revision
from recall_core.scopes import check_scope
from recall_core.store import OWN_SPACE

EAST, NORTH, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
any_text = st.text(alphabet=st.characters(), max_size=20)


@pytest.fixture
def memory(embedder, clock):
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield memory


def texts(memory, **arguments) -> list[str]:
    return [record.text for record in memory.records(**arguments)]


# Changes


def test_what_is_added_and_what_is_deleted_are_one_change(memory):
    memory.add("old", id="1")
    (added,) = memory.change([{"text": "new", "id": "2"}], delete="1")
    assert (added.text, texts(memory)) == ("new", ["new"])
    assert [hit.record.id for hit in memory.search("new")] == ["2"]


def test_a_change_with_a_fault_in_it_changes_nothing(memory):
    memory.add("old", id="1")
    with pytest.raises(RecordExistsError):
        memory.change([{"text": "new"}, {"text": "again", "id": "2"}, {"text": "clash", "id": "2"}], delete=["1"])
    with pytest.raises(InvalidInputError, match="record 1"):
        memory.change([{"text": "new"}, {"text": 3}], delete=["1"])
    assert texts(memory) == ["old"]


def test_what_a_change_deletes_is_gone_for_good_from_the_trash_too(memory):
    memory.add("old", id="1")
    memory.delete("1")
    memory.add("older", id="2")
    memory.change(delete=["1", "2"])
    assert (memory.records(), memory.deleted(), memory.restore(["1", "2"])) == ([], [], [])


def test_a_text_that_a_change_deletes_is_not_left_in_the_file(db_path):
    with Memory.open(db_path, embedder=None) as memory:
        memory.add("zwiebelfisch", id="1")
        memory.change([{"text": "other"}], delete="1")
        for path in db_path.parent.glob(f"{db_path.name}*"):
            assert b"zwiebelfisch" not in path.read_bytes()


def test_a_deleted_id_can_be_given_again_in_the_same_change(memory):
    memory.add("old", id="1")
    memory.change([{"text": "new", "id": "1"}], delete="1")
    assert texts(memory) == ["new"]


def test_taken_ids_are_skipped_on_request_so_that_a_change_can_be_made_again(memory):
    first = memory.change([{"text": "a", "id": "1"}, {"text": "b", "id": "2"}], if_taken="skip")
    again = memory.change([{"text": "other", "id": "2"}, {"text": "c", "id": "3"}], if_taken="skip")
    assert [[record.text for record in records] for records in (first, again)] == [["a", "b"], ["c"]]
    assert texts(memory) == ["a", "b", "c"]


def test_the_same_text_under_another_id_is_not_taken(memory):
    memory.change([{"text": "ok", "id": "1"}])
    assert len(memory.change([{"text": "ok", "id": "2"}], if_taken="skip")) == 1


def test_the_id_of_an_expired_record_is_free(memory, clock):
    memory.add("old", id="1", ttl=10)
    clock.advance(11)
    memory.change([{"text": "new", "id": "1"}], if_taken="skip")
    assert texts(memory) == ["new"]


def test_what_is_added_and_what_is_updated_are_one_change(memory):
    memory.add("old", id="1", scope="a", tags=["kept"])
    change = {"1": Revision(text="newer", scope="b")}
    added, updated = memory.change([{"text": "new", "id": "2"}], update=change)
    assert (added.text, updated.text, updated.scope, updated.tags) == ("new", "newer", "b", ("kept",))
    assert [hit.record.id for hit in memory.search("newer", limit=1)] == ["1"]


@pytest.mark.parametrize(
    ("add", "update", "error"),
    [
        ([{"text": "new", "id": "3"}], {"1": {"text": "x"}, "nobody": {"text": "y"}}, RecordNotFoundError),
        ([{"text": "new", "id": "2"}], {"1": {"text": "x"}}, RecordExistsError),
        ([{"text": "new", "id": "3"}], {"1": {"text": "x"}, "2": {"importance": 7}}, InvalidInputError),
        ([], {"1": {"text": "x"}, "2": {"vector": [1.0, 0.0], "space": "other"}}, EmbeddingError),
    ],
)
def test_an_update_that_fails_leaves_nothing_of_its_change(memory, add, update, error):
    memory.add("first", id="1")
    memory.add("second", id="2", vector=EAST, space="other")
    with pytest.raises(error):
        memory.change(add, update={id: Revision(**fields) for id, fields in update.items()})
    assert texts(memory) == ["first", "second"]


def test_a_view_updates_only_what_lies_in_it(memory):
    memory.add("theirs", id="1", scope="b")
    with pytest.raises(RecordNotFoundError):
        memory.scoped("a").change(update={"1": Revision(text="mine")})
    assert texts(memory) == ["theirs"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"if_taken": "ignore"}, "raise or skip"), ({"delete": [1]}, "strings"), ({"add": 3}, "add is"),
        ({"update": {"1": {"text": "x"}}}, "Revision"),
    ],
)  # fmt: skip
def test_a_change_that_makes_no_sense_says_so(memory, arguments, said):
    with pytest.raises(InvalidInputError, match=said):
        memory.change(**arguments)


# Scopes and names


def test_scopes_are_those_that_hold_records(memory):
    for scope, kind in [("a/x", "item"), ("a/x", "item"), ("a", "memory"), ("ab", "item")]:
        memory.add("text", scope=scope, kind=kind)
    assert memory.scopes() == ["a", "a/x", "ab"]
    assert memory.scopes("a") == ["a", "a/x"]
    assert memory.scopes(where={"@kind": "item"}) == ["a/x", "ab"]
    assert memory.scoped("a").scopes() == ["", "x"]


@given(any_text)
def test_an_escaped_name_is_a_segment_and_can_be_read_again(label):
    segment = escape_segment(label)
    assert "/" not in check_scope(segment)
    assert unescape_segment(segment) == label


@given(any_text.filter(bool))
def test_each_value_of_a_template_is_one_segment(name):
    assert format_scope("user/{user_id}/notes", {"user_id": name}) == f"user/{escape_segment(name)}/notes"


def test_numbers_are_values_too_and_a_template_may_need_none():
    assert format_scope("tenant/{tenant}/user-{user}", {"tenant": 7, "user": "a/b"}) == "tenant/7/user-a%2Fb"
    assert format_scope("shared", {}) == "shared"


@pytest.mark.parametrize(
    ("template", "values", "said"),
    [
        ("user/{user_id}", {}, "needs a 'user_id'; known are no names"),
        ("user/{user_id}", {"user_id": None, "thread_id": "1"}, "known are user_id, thread_id"),
        ("user/{user_id}", {"user_id": ""}, "needs a 'user_id'"),
        ("user/{user_id", {"user_id": "1"}, "written like"),
        ("user/{}", {"user_id": "1"}, "needs a ''"),
        ("user//{user_id}", {"user_id": "1"}, "empty segment"),
        (None, {}, "written like"),
    ],
)
def test_a_scope_that_can_not_be_made_of_a_template_says_why(template, values, said):
    with pytest.raises(InvalidInputError, match=said):
        format_scope(template, values)


@given(st.lists(any_text, max_size=3), st.lists(any_text, max_size=3))
def test_an_id_is_derived_from_all_parts_and_their_order(parts, others):
    assert (derive_id(*parts) == derive_id(*others)) == (parts == others)


# Names


@given(any_text | st.text(min_size=MAX_NAME - 1, max_size=MAX_NAME + 1), any_text)
def test_any_name_of_a_host_can_be_that_of_a_record_and_different_ones_stay_different(name, other):
    with Memory.open(":memory:", embedder=None) as memory:
        stored = memory.add("hello", session=derive_name(name), source=derive_name(name))
        assert (stored.session, stored.source) == (derive_name(name),) * 2
    assert (derive_name(name) == derive_name(other)) == (name == other)


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 513, "\ud800"])
def test_what_stands_for_a_name_is_not_what_stands_for_itself(name):
    assert derive_name(name) == derive_name(name) != name
    assert derive_name(derive_name(name)) != derive_name(name)


def test_a_name_that_fits_stays_as_it_is():
    assert derive_name("群聊 7 🙂") == "群聊 7 🙂"
    with pytest.raises(InvalidInputError, match="a name is a string"):
        derive_name(7)


# Long texts


@pytest.mark.parametrize("word", ["alpha ", "alpha\n", "x", "记忆"])
def test_a_long_text_is_cut_into_parts_that_can_be_stored_and_nothing_is_lost(memory, word):
    text = word * (2 * MAX_TEXT // len(word) + 5)
    parts = split_text(memory, text)
    assert "".join(parts) == text
    assert len(parts) in (3, 4)
    assert all(MAX_TEXT / 2 < len(part) <= MAX_TEXT for part in parts[:-1])
    assert word.strip() == word or all(part.endswith(word) for part in parts)


def test_lines_are_kept_whole_rather_than_words(memory):
    text = "a b c d\n" * 200_000
    assert all(part.startswith("a") and part.endswith("d\n") for part in split_text(memory, text))


def test_a_secret_where_a_long_text_is_cut_is_taken_out(memory):
    key = "sk-proj-" + "a1B2c3D4e5" * 5
    text = "x" * (MAX_TEXT - 20) + f" my key is {key} " + "y" * 20
    assert key[-20:] not in "".join(split_text(memory, text, redact=True))
    assert key in "".join(split_text(memory, text, redact=False))


def test_a_text_that_fits_is_one_part(memory):
    assert split_text(memory, "x" * MAX_TEXT) == ["x" * MAX_TEXT]
    assert split_text(memory, "") == [""]


# Pages of records


def test_records_can_be_listed_by_their_last_change(memory, clock):
    for name in "abc":
        memory.add(name, id=name)
        clock.advance(1)
    memory.update("a", tags=["t"])
    assert texts(memory, newest_first=True) == ["a", "c", "b"]
    assert texts(memory, newest_first=True, limit=1, offset=1) == ["c"]
    assert texts(memory, offset=2) == ["c"]
    with pytest.raises(InvalidInputError, match="offset is a whole number"):
        memory.records(offset=-1)
    with pytest.raises(InvalidInputError, match='newest_first is a bool or "created_at"'):
        memory.records(newest_first="text; DROP TABLE record")


def test_records_can_be_listed_by_when_they_were_made(memory, clock):
    for name, made in (("b", 2), ("c", 3), ("a", 1)):
        memory.add(name, id=name, created_at=made)
    clock.advance(1)
    memory.update("a", tags=["t"])
    assert texts(memory, newest_first="created_at") == ["c", "b", "a"]
    assert texts(memory, newest_first="created_at", limit=1, offset=1) == ["b"]


def test_the_period_of_a_scope_is_that_of_its_records(memory):
    memory.add("b", scope="x/y", created_at=20)
    memory.add("c", scope="x", created_at=30, tags=["t"])
    memory.add("a", scope="other", created_at=10)
    first, last = memory.period("x")
    assert (first.timestamp(), last.timestamp()) == (20, 30)
    assert memory.scoped("other").period() == (memory.records(scope="other")[0].created_at,) * 2
    assert memory.period(where={"@tags": {"$any": ["t"]}}) == (last, last)
    assert memory.period("nothing") is None


# Vectors


def test_the_vectors_of_a_space_are_given_back_as_they_were_brought(memory):
    memory.add("tea", id="tea", scope="a", vector=EAST, space="host")
    memory.add("water", id="water", scope="b", vector=[0.0, 3.0, 4.0], space="host")
    memory.add("none", id="none", scope="b")
    found = memory.vectors(["tea", "water", "none", "unknown"], space="host")
    assert {id: vector.tolist() for id, vector in found.items()} == {"tea": EAST, "water": [0.0, 3.0, 4.0]}
    assert list(memory.scoped("b").vectors(["tea", "water"], space="host")) == ["water"]
    assert memory.vectors("tea", space="unknown") == {}


def test_a_space_says_how_long_its_vectors_are(memory, embedder):
    assert memory.dimensions("host") is None
    memory.add("tea", vector=EAST, space="host")
    assert (memory.dimensions("host"), memory.dimensions()) == (3, embedder.dimensions)


def test_texts_are_embedded_as_the_memory_itself_embeds_them(memory):
    memory.add("tea with milk", id="tea")
    (vector,) = memory.embed(["tea with milk"])
    assert memory.vectors("tea")["tea"].tolist() == vector.tolist()
    assert memory.embed([]) == []
    with Memory.open(":memory:", embedder=None) as wordless:
        assert wordless.embed(["tea"]) == []


# Several vectors of one record


def near(memory, vector) -> list[tuple[str, float, str]]:
    hits = memory.search("", mode="semantic", fusion="plain", vector=vector, space="host")
    return [(hit.record.id, round(hit.why.similarity, 3), hit.chunk.text) for hit in hits]


def test_each_page_of_a_text_has_a_vector_of_its_own_and_the_best_counts(memory):
    memory.add("tea\fcoffee", id="drinks", vector=[EAST, NORTH], space="host")
    memory.add("water", id="water", vector=UP, space="host")
    assert near(memory, NORTH) == [("drinks", 1.0, "coffee"), ("water", 0.0, "water")]
    assert near(memory, EAST)[0] == ("drinks", 1.0, "tea")


def test_a_page_longer_than_a_chunk_has_its_vector_with_its_first_chunk(memory):
    long = "a word and another one. " * 200
    memory.add(f"{long}\flast", id="1", vector=[EAST, NORTH], space="host")
    assert near(memory, NORTH)[0][2] == "last"
    assert near(memory, EAST)[0][2].startswith("a word")


def test_replacing_a_record_replaces_the_vectors_of_its_pages(memory):
    memory.add("tea\fcoffee", id="1", vector=[EAST, NORTH], space="host")
    memory.add("coffee\ftea", id="1", vector=[UP, EAST], space="host", on_duplicate="replace")
    assert near(memory, EAST)[0][1:] == (1.0, "tea")
    assert near(memory, NORTH)[0][1] == 0.0


def test_as_many_vectors_as_pages_are_wanted(memory):
    with pytest.raises(InvalidInputError, match="3 vectors were given for a text of 2 pages"):
        memory.add("tea\fcoffee", vector=[EAST, NORTH, UP], space="host")
    assert memory.count() == 0


def test_no_chunk_crosses_a_form_feed(memory):
    memory.add("tea\f\fcoffee\f")
    assert memory.stats().chunks == 2
    assert memory.search("coffee")[0].chunk.text == "coffee"


# What is not there to be found


def test_the_strings_of_hidden_metadata_can_be_filtered_by_but_not_found():
    with Memory.open(":memory:", embedder=None) as memory:
        memory.add("text", metadata={"_hidden": "rockets", "shown": "turtles"})
        assert len(memory.search("turtles")) == 1
        assert len(memory.search("rockets")) == 0
        assert memory.count(where={"_hidden": "rockets"}) == 1


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_waits_for_no_vector_and_is_not_found_by_meaning(blank):
    with Memory.open(":memory:", embedder=HashedEmbedder()) as memory:
        memory.add(blank, id="blank", metadata={"_key": "rockets"})
        memory.add("rockets", id="rockets")
        assert [hit.record.id for hit in memory.search("rockets")] == ["rockets"]
        assert (memory.flush(), memory.stats().pending) == (0, 0)


# Diversity among so many


def test_diversify_chooses_among_the_candidates_that_are_asked_for(memory):
    for name, vector in {"1": [1, 0.1, 0], "2": [1, 0.11, 0], "3": [1, 0.12, 0], "far": [0.1, 0, 1]}.items():
        memory.add(name, id=name, vector=vector, space="host")

    def choose(candidates):
        arguments = {"vector": EAST, "space": "host", "mode": "semantic", "fusion": "plain", "limit": 2}
        return [hit.record.id for hit in memory.search("", diversify=1, candidates=candidates, **arguments)]

    assert choose(None) == ["1", "far"]
    assert choose(3) == ["1", "3"]


def test_plain_vectors_are_diversified_by_their_plain_cosines(memory):
    for degrees in (0, 1, 2, 40, 80):
        angle = math.radians(degrees)
        memory.add(str(degrees), id=str(degrees), vector=[math.cos(angle), math.sin(angle), 0], space="host")
    plain = {"vector": EAST, "space": "host", "mode": "semantic", "fusion": "plain", "limit": 2, "diversify": 1}
    assert [hit.record.id for hit in memory.search("", **plain)] == ["0", "80"]


# Preparing


def test_what_was_prepared_is_what_a_search_makes_itself(tmp_path, embedder, clock):
    with Memory.open(tmp_path / "a.db", embedder=embedder, clock=clock) as memory:
        memory.add_many({"text": f"number {number}", "scope": "a"} for number in range(20))
        vectors = memory._engine.store.vectors
        space = vectors.find_space(OWN_SPACE)
        count, together = vectors.sample(space, "a", 10)
        counted, apart = vectors.sample(space, "a", 10, apart=True)
        assert (count, together.tolist()) == (counted, apart.tolist())
        before = [hit.score for hit in memory.search("number 7", scope="a")]
        prepare_search(memory.scoped("a"))
        assert [hit.score for hit in memory.search("number 7", scope="a")] == before


def test_the_statistics_of_a_large_scope_are_prepared(tmp_path, embedder, clock):
    with Memory.open(tmp_path / "a.db", embedder=embedder, clock=clock) as memory:
        memory.add_many({"text": f"number {number}"} for number in range(50))
        legs = memory._engine.searcher._legs
        legs._cache._most = 10
        prepare_search(memory)
        assert [known.chunks for known in legs._large._measured.values()] == [50]


def test_a_memory_without_a_model_says_that_it_can_not_be_prepared(clock):
    with Memory.open(":memory:", embedder=None, clock=clock) as memory, pytest.raises(EmbeddingError):
        prepare_search(memory)
