"""Searching: any string is a query and none is syntax, arguments are checked, and each hit says why it was found."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import NOW, HashedEmbedder

from recall_core import Memory, Settings, search
from recall_core.text import analyse, analyse_query

TEXTS = {
    "compose": "We deploy all services with docker compose, never by hand",
    "zh": "项目部署统一使用 Docker Compose，不再使用虚拟机",
    "disk": "硬盘快满的时候先清理日志，再扩容",
    "cat": "the cat sat on the mat and drank tea",
    "tea": "我喜欢喝茶，不喜欢咖啡",
    "near": "NEAR and NOT are words: OR so they say",
    "code": "call get_user_by_id in a/b.py of v1.2.3",
}
MODES = ["hybrid", "keyword", "semantic"]
FUSIONS = ["default", "rrf", "plain"]

# What FTS5 would read as syntax, words that are stored, and anything else.
operators = st.sampled_from(
    [
        '"',
        "'",
        "(",
        ")",
        "*",
        "^",
        ":",
        "-",
        "+",
        "{",
        "}",
        ",",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "NEAR(",
        "latin:",
        "\0",
        ";",
    ]
)
words = st.sampled_from(["docker", "compose", "deploy", "部署", "茶", "硬盘", "cat", "get_user_by_id", "v1.2.3"])
anything = st.text(st.characters(exclude_categories=()), max_size=12)
queries = st.lists(operators | words | anything, max_size=8).map(" ".join) | st.text(
    st.characters(exclude_categories=()), max_size=60
)


class ShortSighted(HashedEmbedder):
    """Looks at the beginning only, as models do, so that a megabyte takes no time."""

    def _embed(self, texts):
        return super()._embed([text[:500] for text in texts])


def open_filled(path=":memory:", **arguments) -> Memory:
    arguments.setdefault("embedder", ShortSighted())
    memory = Memory.open(path, clock=NOW.timestamp, **arguments)
    memory.add_many([{"text": text, "id": id} for id, text in TEXTS.items()])
    return memory


@pytest.fixture(scope="module")
def memory():
    with open_filled() as memory:
        yield memory


def ids(hits) -> list[str]:
    return [hit.record.id for hit in hits]


def everything_of(hits):
    return [(hit.record.id, hit.chunk, hit.score, hit.relevance, hit.why) for hit in hits]


# Any string


@given(queries, st.sampled_from(MODES), st.sampled_from(FUSIONS))
def test_any_string_is_a_valid_query(memory, query, mode, fusion):
    for hit in memory.search(query, mode=mode, fusion=fusion):
        assert TEXTS[hit.record.id] == hit.record.text
        assert 0 <= hit.relevance <= 1


@given(queries)
def test_keyword_search_finds_just_what_shares_a_term_with_the_query_whatever_else_it_holds(memory, query):
    asked = analyse_query(query)
    wanted, sharing = set(asked.terms), set[str]()
    for id, text in TEXTS.items():
        found = analyse(text)
        if wanted & {*found.latin, *found.grams, *found.words}:
            sharing.add(id)
    if sharing or not any(not term.isascii() for term in asked.weak):  # else Chinese function words are looked for
        assert set(ids(memory.search(query, mode="keyword"))) == sharing


@pytest.mark.parametrize(
    "query",
    [
        'docker "compose',
        "docker NOT compose",
        "docker AND unheard",
        "NEAR(docker unheard, 1)",
        "latin:docker",
        "(docker",
        "docker*",
        "^docker",
        "-docker",
        "{docker}: 1",
        "docker'; DROP TABLE record; --",
        "\0docker\0",
        "\ud800 docker",
    ],
)
def test_an_operator_in_a_query_is_no_syntax(memory, query):
    assert {"compose", "zh"} <= set(ids(memory.search(query, mode="keyword")))


def test_a_star_is_no_wildcard(memory):
    assert ids(memory.search("dock*", mode="keyword")) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "query",
    [
        "docker " * 150_000,
        "怎么部署服务？" * 150_000,
        "x" * 1_000_000,
        '"' * 1_000_000,
        "\0" * 1_000_000,
        "? " * 500_000,
    ],
    ids=["words", "questions", "one word", "quotes", "NUL", "question marks"],
)
def test_a_megabyte_is_a_valid_query(memory, query, mode):
    memory.search(query, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000"])
def test_an_empty_query_finds_nothing(memory, query, mode):
    assert ids(memory.search(query, mode=mode)) == []


def test_a_query_without_a_word_finds_nothing_by_keyword(memory):
    assert ids(memory.search("?!…", mode="keyword")) == []


# Modes and limits


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_the_best_comes_first_in_every_mode(memory, mode, fusion):
    hits = memory.search(TEXTS["disk"], mode=mode, fusion=fusion)
    assert (ids(hits)[0], hits.mode, hits.degraded) == ("disk", mode, None)


def test_keyword_search_finds_only_what_holds_a_word_and_semantic_search_everything(memory):
    assert set(ids(memory.search("docker", mode="keyword"))) == {"compose", "zh"}
    assert set(ids(memory.search("docker", mode="semantic"))) == set(TEXTS)
    assert set(ids(memory.search("docker"))) == set(TEXTS)


def test_keyword_search_embeds_nothing():
    embedder = HashedEmbedder()
    with open_filled(embedder=embedder) as memory:
        memory.search("docker", mode="keyword")
        assert embedder.queries == []


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_a_limit_cuts_the_list_and_changes_nothing_else(memory, mode, fusion):
    whole = everything_of(memory.search("docker 部署", mode=mode, fusion=fusion, limit=100))
    for limit in range(len(whole) + 1):
        found = everything_of(memory.search("docker 部署", mode=mode, fusion=fusion, limit=limit))
        assert found == whole[:limit]


def test_a_threshold_of_relevance_keeps_just_what_reaches_it(memory):
    everything = memory.search("docker compose", limit=100)
    threshold = everything[1].relevance
    kept = memory.search("docker compose", limit=100, min_relevance=threshold)
    assert ids(kept) == [hit.record.id for hit in everything if hit.relevance >= threshold]
    assert ids(memory.search("docker", min_relevance=1.0, mode="semantic")) == []


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_threshold_of_similarity_keeps_just_what_reaches_it(memory, fusion):
    everything = memory.search("docker compose", mode="semantic", fusion=fusion)
    threshold = sorted(hit.why.similarity for hit in everything)[-2]
    kept = memory.search("docker compose", mode="semantic", fusion=fusion, min_similarity=threshold)
    assert set(ids(kept)) == {hit.record.id for hit in everything if hit.why.similarity >= threshold}


def test_what_is_below_the_threshold_of_similarity_is_still_found_by_keyword(memory):
    hits = memory.search("tea", min_similarity=1.0)
    assert ids(hits) == ["cat"]
    assert hits[0].why.meaning is None


def test_fewer_candidates_than_the_limit_are_raised_to_it(memory):
    assert len(memory.search("docker", mode="semantic", candidates=1, limit=5)) == 5


# Why


@pytest.mark.parametrize("mode", MODES)
def test_every_hit_says_its_rank_and_what_each_leg_saw(memory, mode):
    hits = memory.search("docker compose 部署", mode=mode)
    assert [hit.why.rank for hit in hits] == list(range(1, len(hits) + 1))
    for hit in hits:
        why = hit.why
        seen_by_keyword, seen_by_vectors = why.keyword_rank is not None, why.vector_rank is not None
        assert (why.bm25 is not None, why.coverage is not None) == (seen_by_keyword, seen_by_keyword)
        assert (why.similarity is not None, why.meaning is not None) == (seen_by_vectors, seen_by_vectors)
        assert seen_by_keyword == (mode != "semantic" and "ocker" in hit.record.text)
        assert seen_by_vectors == (mode != "keyword")
        assert (why.context, why.decay) == (0.0, 1.0)
        assert str(why)


def test_ranks_follow_what_the_legs_scored(memory):
    found = [hit.why for hit in memory.search("docker compose 部署 日志", limit=100)]
    by_keyword = sorted((why for why in found if why.bm25 is not None), key=lambda why: why.keyword_rank)
    assert [why.keyword_rank for why in by_keyword] == list(range(1, len(by_keyword) + 1))
    assert [why.bm25 for why in by_keyword] == sorted((why.bm25 for why in by_keyword), reverse=True)
    assert all(0 < why.coverage <= 1 and why.bm25 > 0 for why in by_keyword)
    by_meaning = sorted(found, key=lambda why: why.vector_rank)
    assert [why.vector_rank for why in by_meaning] == list(range(1, len(TEXTS) + 1))
    assert [why.meaning for why in by_meaning] == sorted((why.meaning for why in by_meaning), reverse=True)


def test_the_similarity_is_the_cosine_of_the_raw_vectors(memory):
    embedder = ShortSighted()
    query = embedder.embed_queries(["docker compose"])[0]
    for hit in memory.search("docker compose"):
        assert hit.why.similarity == pytest.approx(
            float(embedder.embed_passages([hit.record.text])[0] @ query), abs=1e-6
        )


def said_by_both(why):
    return why.keyword_weight * (why.coverage or 0) + (1 - why.keyword_weight) * (why.meaning or 0)


@pytest.mark.parametrize("alpha", [None, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("mode", MODES)
def test_the_score_is_the_sum_of_the_parts_that_every_hit_tells(memory, mode, alpha):
    for hit in memory.search("docker compose 部署", mode=mode, alpha=alpha):
        why = hit.why
        assert hit.score == pytest.approx(said_by_both(why) + why.context + why.prior + why.hop, abs=1e-6)


def test_the_weight_of_the_keywords_is_the_callers_or_at_most_that_of_the_settings(memory):
    given, own = (memory.search("docker compose 部署", alpha=alpha) for alpha in (0.3, None))
    assert {hit.why.keyword_weight for hit in given} == {0.7}
    most = Settings().keyword_weight
    assert all(search.LEAST_WEIGHT * most <= hit.why.keyword_weight <= most for hit in own)


def test_what_is_like_the_best_gains_by_that_at_most_its_share_of_their_score(memory):
    hits = memory.search("docker compose 部署", limit=100)
    most = search.FOLLOWED_SHARE * max(said_by_both(hit.why) for hit in hits)
    assert hits[0].why.hop > 0
    assert all(0 <= hit.why.hop <= most + 1e-6 for hit in hits)


def test_by_keywords_alone_there_is_no_likeness(memory):
    assert {hit.why.hop for hit in memory.search("docker compose 部署", mode="keyword")} == {0}


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", ["docker compose", "怎么部署服务？硬盘满了。", "the cat drinks tea"])
def test_scores_and_relevances_fall(memory, query, mode, fusion):
    hits = memory.search(query, mode=mode, fusion=fusion)
    for values in ([hit.score for hit in hits], [hit.relevance for hit in hits]):
        assert values == sorted(values, reverse=True)


# Chunks


def test_a_record_of_many_chunks_is_one_hit_and_the_chunk_is_a_slice_of_its_text():
    # Characters beyond the BMP and combining ones: offsets count code points.
    parts = [f"第{number}章 👩‍🚀 é 部署 Docker 的第 {number} 步是检查日志。\n" for number in range(60)]
    with Memory.open(
        ":memory:", embedder=HashedEmbedder(), settings=Settings(chunk_size=40, chunk_overlap=8)
    ) as memory:
        memory.add("".join(parts), id="book")
        memory.add("一句话", id="short")
        assert memory.stats().chunks > 10
        for mode in MODES:
            hits = memory.search(parts[41], mode=mode)
            assert sorted(ids(hits)) in (["book"], ["book", "short"])
            (book,) = [hit for hit in hits if hit.record.id == "book"]
            assert book.chunk.text == book.record.text[book.chunk.start : book.chunk.end]
            assert "第41章" in book.chunk.text


@pytest.mark.parametrize("mode", MODES)
def test_a_record_of_very_many_chunks_leaves_room_for_others(mode):
    with Memory.open(":memory:", embedder=HashedEmbedder(), settings=Settings(chunk_size=8, chunk_overlap=0)) as memory:
        memory.add("docker compose up. " * 400, id="long")
        memory.add_many([{"text": f"docker is what we use in place {number}"} for number in range(20)])
        assert len(memory.search("docker compose up", mode=mode)) == 10


# The same every time


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_results_are_the_same_in_every_run_thread_and_opening(db_path, mode, fusion):
    def search(memory):
        return everything_of(memory.search("docker 部署 tea", mode=mode, fusion=fusion))

    with open_filled(db_path) as memory:
        first = search(memory)
        with ThreadPoolExecutor(8) as pool:
            assert all(found == first for found in pool.map(search, [memory] * 24))
    with Memory.open(db_path, embedder=ShortSighted(), clock=NOW.timestamp) as memory:
        assert search(memory) == first
