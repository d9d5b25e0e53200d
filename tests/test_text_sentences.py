import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall_core.text.sentences import detect_language, split_sentences

TEXTS = st.text(st.one_of(st.sampled_from(list('.。!?！？…；\n\r\t \u2028"”）Dra1我')), st.characters()))


def sentences(text):
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "parts",
    [
        ["It works. ", "Really! ", "Does it? ", "Yes"],
        ["今天下雨了。", "你带伞了吗？", "没有！", "那就等等；", "好吧……", "走"],
        ["Dr. Smith met Mrs. Jones at 5 p.m. sharp. ", "Then they left."],
        ["It costs 3.14 dollars in v1.2.3 of a.b.example.com. ", "Fine."],
        ["Use a cache, e.g. Redis, i.e. memory. ", "Good."],
        ["J. K. Rowling wrote it. ", "So do I. ", "End."],
        ["See No. 5 and fig. 3 there. ", "He said no. ", "We left."],
        ['She said "Stop!" and left. ', '"Why?" ', "Nobody knew."],
        ["他说：“真的吗？”", "（是的。）", "然后走了。"],
        ["1. First item\n", "2. Second. ", "More\n"],
        ["Wait... what happened? ", "OK… fine."],
        ["版本是 1.2版。", "好了"],
        ["A line\n", "another line\r\n", "\u3000the third\n\n\n", "last"],
        ["见说明.", "然后重启。", "http://a.b/c?d=e 可用"],
    ],
)
def test_sentences_end_where_a_reader_ends_them(parts):
    assert sentences("".join(parts)) == parts


def test_no_text_has_no_sentence():
    assert split_sentences("") == []


def test_white_space_alone_is_one_sentence():
    assert split_sentences(" \n\n ") == [(0, 4)]


@given(TEXTS)
@example("\n\na")
@example("a.\n \n")
def test_sentences_cover_the_text_without_gaps(text):
    assert "".join(sentences(text)) == text
    assert all(sentence.strip() for sentence in sentences(text)) or not text.strip()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("怎么部署服务", "zh"),
        ("用 Docker Compose", "en"),
        ("API 配置", "zh"),
        ("How do I deploy?", "en"),
        ("What does 茶 mean in this sentence?", "en"),
        ("", "en"),
        ("🚀 123", "en"),
        ("東京タワー", "zh"),
    ],
)
def test_the_language_goes_by_the_share_of_chinese_letters(text, language):
    assert detect_language(text) == language
