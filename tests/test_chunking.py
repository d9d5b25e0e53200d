import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall_core.chunking import TextChunker, estimate_tokens, fit_spans
from recall_core.errors import InvalidInputError
from recall_core.models import Chunker

ALPHABET = [*"ab1 \n\t。，.!?,;#-*`“”數据库😀\u2028", "\n\n", "word ", "- item\n", "```\n", "数据库的配置。", "Hello. "]
TEXTS = st.lists(st.one_of(st.sampled_from(ALPHABET), st.characters()), max_size=150).map("".join)
CHUNKERS = st.builds(
    lambda size, share, unit: TextChunker(size, int(size * share), unit),
    st.integers(1, 40),
    st.floats(0, 0.5),
    st.sampled_from(["tokens", "characters"]),
)

HANDBOOK = """# 部署说明

项目部署统一使用 Docker Compose，不再使用虚拟机。首先拉取镜像，然后启动服务。

- 第一步：登录服务器
- 第二步：执行命令
  并检查输出
- 第三步：通知值班

```bash
docker compose pull

docker compose up -d
```

The gateway runs on port 8080. If it fails, see the log and restart it."""


def count_tokens(text: str) -> int:
    return len(estimate_tokens(text))


def parts(chunker, text):
    return [text[start:end] for start, end in chunker.chunk(text)]


def uncovered(text, spans):
    covered = set()
    for start, end in spans:
        covered.update(range(start, end))
    return "".join(c for offset, c in enumerate(text) if offset not in covered and not c.isspace())


def byte_tokens(text):
    """The tokens of a model that has one for each byte, as byte fallback makes them."""
    return [(i, i + 1) for i, c in enumerate(text) if not c.isspace() for _ in c.encode("utf-8", "surrogatepass")]


def test_it_is_a_chunker():
    assert isinstance(TextChunker(), Chunker)


def test_text_that_fits_is_one_chunk():
    assert TextChunker(256, 32).chunk(" 表妹的电话。 \n") == [(0, 9)]


@pytest.mark.parametrize("text", ["", " ", "\n" * 1000])
def test_blank_text_is_one_chunk(text):
    assert TextChunker(8, 2, "characters").chunk(text) == [(0, len(text))]


@given(TEXTS, CHUNKERS)
@example("a" * 50, TextChunker(8, 4))
@example(" " * 50 + "a" + " " * 50 + "b", TextChunker(8, 4, "characters"))
def test_chunks_cover_the_text(text, chunker):
    assert uncovered(text, chunker.chunk(text)) == ""


@given(TEXTS, CHUNKERS)
def test_chunks_are_ordered_and_hold_text(text, chunker):
    spans = chunker.chunk(text)
    starts = [start for start, _ in spans]
    assert starts == sorted(set(starts))
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(text[start:end].strip() for start, end in spans) or not text.strip()


@given(TEXTS.filter(str.strip), CHUNKERS)
def test_no_chunk_is_larger_than_the_size(text, chunker):
    measure = len if chunker.unit == "characters" else count_tokens
    assert all(measure(part) <= chunker.size for part in parts(chunker, text))


@given(TEXTS, st.integers(4, 30))
def test_tokens_that_share_a_character_are_counted(text, size):
    chunker = TextChunker(size, size // 4, token_spans=byte_tokens)
    spans = chunker.chunk(text)
    assert uncovered(text, spans) == ""
    assert all(len(byte_tokens(part)) <= size for part in parts(chunker, text))


def test_paragraphs_stay_whole():
    text = "One two three. Four five.\n\nSix seven eight. Nine ten.\n\nEleven."
    assert parts(TextChunker(30, 0, "characters"), text) == [
        "One two three. Four five.",
        "Six seven eight. Nine ten.",
        "Eleven.",
    ]


def test_sentences_stay_whole_where_paragraphs_do_not_fit():
    text = "今天下雨了。你带伞了吗？没有就等等。好的。"
    assert parts(TextChunker(12, 0, "characters"), text) == ["今天下雨了。你带伞了吗？", "没有就等等。好的。"]


def test_clauses_stay_whole_where_sentences_do_not_fit():
    text = "首先拉取最新镜像，然后启动全部服务，最后通知值班"
    assert parts(TextChunker(12, 0), text) == ["首先拉取最新镜像，", "然后启动全部服务，", "最后通知值班"]


def test_words_stay_whole_where_clauses_do_not_fit():
    assert parts(TextChunker(12, 0, "characters"), "alpha beta gamma delta") == ["alpha beta", "gamma delta"]


def test_text_without_any_boundary_is_cut_anyway():
    assert parts(TextChunker(8, 0, "characters"), "x" * 20) == ["x" * 8, "x" * 8, "x" * 4]


def test_a_code_block_stays_whole_with_its_blank_line():
    code = HANDBOOK[HANDBOOK.index("```bash") : HANDBOOK.rindex("```") + 3]
    assert any(code in part for part in parts(TextChunker(60, 10, "characters"), HANDBOOK))


def test_list_items_stay_whole():
    chunks = parts(TextChunker(24, 4), HANDBOOK)
    for item in ("- 第一步：登录服务器", "- 第二步：执行命令\n  并检查输出", "- 第三步：通知值班"):
        assert any(item in chunk for chunk in chunks)


def test_a_list_that_fits_is_kept_together():
    items = HANDBOOK[HANDBOOK.index("- 第一步") : HANDBOOK.index("```") - 2]
    assert any(items in chunk for chunk in parts(TextChunker(48, 0), HANDBOOK))


def test_a_fence_that_never_closes_loses_nothing():
    text = "before\n```\n" + "code line\n" * 20
    assert uncovered(text, TextChunker(30, 5, "characters").chunk(text)) == ""


def test_the_overlap_is_whole_sentences():
    text = "One two. Three four. Five six. Seven eight. Nine ten."
    assert parts(TextChunker(24, 13, "characters"), text) == [
        "One two. Three four.",
        "Three four. Five six.",
        "Five six. Seven eight.",
        "Seven eight. Nine ten.",
    ]


def test_the_overlap_is_words_where_the_sentence_is_too_long():
    first, second, *_ = parts(TextChunker(30, 12, "characters"), "alpha beta gamma delta epsilon zeta eta theta iota")
    assert first == "alpha beta gamma delta epsilon"
    assert second.startswith("epsilon zeta")


@given(TEXTS, CHUNKERS)
def test_the_overlap_is_at_most_what_was_asked(text, chunker):
    measure = len if chunker.unit == "characters" else count_tokens
    spans = chunker.chunk(text)
    for (_, end), (start, _) in pairwise(spans):
        assert start >= end or measure(text[start:end]) <= chunker.overlap


@pytest.mark.parametrize(
    "arguments", [{"size": 0}, {"size": 8, "overlap": 8}, {"overlap": -1}, {"unit": "words"}], ids=str
)
def test_settings_that_make_no_sense_are_refused(arguments):
    with pytest.raises(InvalidInputError):
        TextChunker(**arguments)


@pytest.mark.parametrize(
    "unit", ["x", "数据", "word ", "a\n", "Hello, world. ", "数据库，配置。\n\n", "- a\n", "```\n"]
)
def test_long_texts_take_time_in_proportion(unit):
    text = unit * (300_000 // len(unit.encode()))
    start = time.thread_time()
    chunks = TextChunker().chunk(text)
    assert time.thread_time() - start < 30  # twenty times what it takes, for a machine that is busy
    assert chunks[-1][1] >= len(text) - 2


def test_tokens_are_estimated_by_script():
    assert count_tokens("数据库，Docker v1!") == 3 + 1 + 2 + 1 + 1
    assert estimate_tokens("数 hello!") == [(0, 1), (2, 6), (6, 7), (7, 8)]


def test_chunks_that_fit_are_left_alone():
    text = "One two. Three four."
    assert fit_spans(text, [(0, 8), (4, 20)], 10, estimate_tokens) == [(0, 8), (4, 20)]


def test_gaps_become_chunks():
    assert fit_spans("aa bb cc dd", [(3, 5)], 10, estimate_tokens) == [(0, 2), (3, 5), (6, 11)]


def test_gaps_of_white_space_stay_gaps():
    assert fit_spans("aa \n bb", [(0, 2), (5, 7)], 10, estimate_tokens) == [(0, 2), (5, 7)]


def test_blank_chunks_are_dropped():
    assert fit_spans("aa   bb", [(0, 2), (2, 5), (5, 7)], 10, estimate_tokens) == [(0, 2), (5, 7)]


@pytest.mark.parametrize("spans", [[], [(0, 3)]])
def test_blank_text_stays_one_chunk(spans):
    assert fit_spans("   ", spans, 10, estimate_tokens) == [(0, 3)]


@given(TEXTS.filter(str.strip), st.data(), st.integers(4, 20))
def test_whatever_the_chunker_gives_nothing_is_lost_and_all_fits(text, data, window):
    offsets = st.integers(0, len(text))
    pairs = st.tuples(offsets, offsets).filter(lambda pair: pair[0] < pair[1])
    spans = sorted(data.draw(st.lists(pairs, max_size=5)))
    fitted = fit_spans(text, spans, window, byte_tokens)
    assert uncovered(text, fitted) == ""
    assert fitted == sorted(fitted)
    assert all(len(byte_tokens(text[start:end])) <= window for start, end in fitted)
    assert all(text[start:end].strip() for start, end in fitted)


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 99)],
        [(-1, 2)],
        [(2, 2)],
        [(3, 1)],
        [(4, 6), (0, 2)],
        [(0.0, 2)],
        [(False, 2)],
        [(0, 1, 2)],
        ["ab"],
        [5],
        [None],
    ],
    ids=str,
)
def test_a_faulty_chunker_is_named(spans):
    with pytest.raises(InvalidInputError, match="the chunker's chunk"):
        fit_spans("some text here", spans, 10, estimate_tokens)


def test_a_window_without_room_is_refused():
    with pytest.raises(InvalidInputError, match="window"):
        fit_spans("some text", [], 0, estimate_tokens)
