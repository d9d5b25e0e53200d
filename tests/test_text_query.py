import subprocess
import sys
import time

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall_core.text.query import analyse_query, match_expression, term_spans
from recall_core.text.segment import TOKENIZER, analyse

ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cs", "Cc", "Cf", "Mn", "So"]),
        st.sampled_from(list("\"'*()^-+:{}[]|&~ \0aN数")),
    )
)
HOSTILE = ['"', "", " ", "\0", "a\0b", "\ud800", "AND OR NOT", "NEAR(a b)", "foo*", "a:b", "-x", "🚀", "(((", "'); --"]


class Index:
    def __init__(self):
        self.connection = apsw.Connection(":memory:")
        self.connection.execute(f'CREATE VIRTUAL TABLE f USING fts5(latin, grams, words, tokenize="{TOKENIZER}")')

    def add(self, text, words=()):
        terms = analyse(text, words)
        row = [" ".join(column) for column in (terms.latin, terms.grams, terms.words)]
        self.connection.execute("INSERT INTO f VALUES (?, ?, ?)", row)

    def finds(self, question, words=()):
        expression = match_expression(analyse_query(question, words).terms)
        if expression is None:
            return False
        return bool(self.connection.execute("SELECT rowid FROM f WHERE f MATCH ?", (expression,)).fetchall())


@pytest.fixture(scope="module")
def index():
    index = Index()
    index.add("an unrelated row about nothing, 无关")
    yield index
    index.connection.close()


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("upgraded to v1.2.3 yesterday", "v1.2.3"),
        ("upgraded to v1.2.3 yesterday", "V1"),
        ("see a/b.py for details", "a/b.py"),
        ("see src/a/b.py for details", "b.py"),
        ("written in C++", "c++"),
        ("written in C++17", "C++"),
        ("Error 503 处理：重启网关", "Error 503"),
        ("Error 503 处理：重启网关", "503 是什么错误？"),
        ("call getUserById()", "getUserById"),
        ("call getUserById()", "getuserbyid"),
        ("call getUserById()", "user"),
        ("call getUserNames()", "getusernames"),
        ("get_user_by_id returns None", "get_user_by_id"),
        ("ticket POL-358 is open", "POL-358"),
        ("ticket POL-358 is open", "pol 358"),
        ("run it with --force", "--force"),
        ("mail user@example.com", "example.com"),
        ("表妹的电话是 13812345678", "表妹的电话"),
        ("表妹的电话是 13812345678", "13812345678"),
        ("我喜欢喝茶", "茶"),
        ("數據庫備份", "数据库"),
        ("数据库备份", "數據庫"),
        ("the ＡＰＩ is down", "api"),
        ("a naïve idea", "naive"),
        ("a naive idea", "naïve"),
        ("Herr Müller", "muller"),
        ("it costs 1,000 euros", "1000"),
        ("the connections dropped", "connect"),
        ("launch 🚀", "🚀"),
        ("Привет", "ПРИВЕТ"),
    ],
)
def test_what_was_stored_is_found(text, question):
    index = Index()
    index.add(text)
    assert index.finds(question)
    index.connection.close()


def test_a_user_word_is_found_as_a_whole():
    index = Index()
    index.add("用会话记忆存储", ["话记"])
    assert analyse_query("话记", ["话记"]).terms[0] == "话记"
    assert index.finds("话记", ["话记"])
    index.connection.close()


@given(ANY_TEXT)
@example('"')
@example("\0")
@example("\ud800")
def test_no_question_makes_fts5_raise(index, question):
    index.finds(question)


@pytest.mark.parametrize("question", HOSTILE, ids=ascii)
def test_a_hostile_question_is_text_and_no_syntax(index, question):
    assert index.finds(question) in (True, False)


def test_a_quote_in_a_term_is_doubled():
    assert match_expression(['a"b', "c"]) == '"a""b" OR "c"'


def test_no_terms_have_no_expression():
    assert match_expression([]) is None


@pytest.mark.parametrize(
    ("question", "terms", "weak"),
    [
        ("What did Alice's mother say about the trip?", "alic mother say trip", "what did about the"),
        ("怎么部署服务", "部署 署服 服务", "怎么 么部"),
        ("表妹的电话是多少？", "表妹 电话", "妹的 的电 话是 是多 多少"),
        ("茶", "茶", ""),
        ("喝 茶", "喝 茶", ""),
        ("茶的", "茶的", ""),
        ("3月15日", "3 15", "月 日"),
        ("IT in the US", "it us", "in the"),
        ("what is it", "what is it", ""),
        ("v1.2", "v1.2 v1", "2 v 1"),
        ("目的是什么", "目的", "的是 是什 什么"),
    ],
)
def test_function_words_are_left_out_unless_nothing_else_is_left(question, terms, weak):
    query = analyse_query(question)
    assert " ".join(query.terms) == terms
    assert " ".join(query.weak) == weak


def test_chinese_is_looked_for_by_pairs_of_characters():
    assert analyse_query("数据库备份").terms == ("数据", "据库", "库备", "备份")


def test_a_query_loads_no_dictionary():
    code = (
        "import sys; from recall_core.text import analyse_query; analyse_query('数据库备份在哪里');"
        "print({'rjieba', 'jieba', 'numpy'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "set()"


@given(ANY_TEXT)
def test_terms_are_distinct_and_at_most_64(question):
    query = analyse_query(question)
    assert len(set(query.terms)) == len(query.terms) <= 64
    assert not set(query.terms) & set(query.weak)


@given(ANY_TEXT)
def test_every_term_of_a_question_is_a_term_of_the_same_text_stored(question):
    stored = analyse(question)
    query = analyse_query(question)
    assert {*query.terms, *query.weak} <= {*stored.latin, *stored.grams, *stored.words}


def test_ten_megabytes_are_answered_at_once():
    analyse_query("数据库")  # loads the dictionary
    for question in ("数据库的配置" * 600_000, "foo_bar hello " * 700_000, "the " * 2_500_000, "a.b/" * 2_500_000):
        start = time.thread_time()
        query = analyse_query(question)
        assert time.thread_time() - start < 3  # fifty times what it takes, and less than the whole text would
        assert query.terms


def test_only_the_beginning_of_a_long_question_counts():
    assert "needle" not in analyse_query("word " * 5000 + "needle").terms


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("Where is it?", ()),
        ("I am tired. Where do I work? Thanks.", ("Where do I work?",)),
        ("今天好累。我的老板叫什么？公司在哪？", ("我的老板叫什么？", "公司在哪？")),
        ("他问：“几点？” 然后走了。", ("他问：“几点？”",)),
        ("a? b? c? d? e?", ("b?", "c?", "d?", "e?")),
        ("", ()),
    ],
)
def test_the_sentences_that_ask_are_kept_apart(text, questions):
    assert analyse_query(text).questions == questions


def test_the_language_is_that_of_the_question():
    assert analyse_query("怎么部署 Docker").language == "zh"
    assert analyse_query("deploy it").language == "en"


@pytest.mark.parametrize(
    ("text", "question", "highlighted"),
    [
        ("The connections are CONNECTED.", "connect", ["connections", "CONNECTED"]),
        ("我們的數據庫很重要", "数据库", ["數據庫"]),
        ("calls getUserById()", "user", ["User"]),
        ("the ＡＰＩ, nai\u0308ve", "api naive", ["ＡＰＩ", "nai\u0308ve"]),
        ("Error 503: 服务不可用", "error 503 服务", ["Error", "503", "服务"]),
        ("版本v1.2.3发布", "v1.2.3", ["v1.2.3"]),
        ("go 🚀", "🚀", ["🚀"]),
        ("nothing here", "else", []),
    ],
)
def test_terms_are_found_in_the_original_text(text, question, highlighted):
    assert [text[start:end] for start, end in term_spans(text, analyse_query(question))] == highlighted


def test_user_words_are_highlighted_across_spaces():
    query = analyse_query("docker compose", ["docker compose"])
    assert term_spans("a Docker  Compose", query) == [(2, 8), (10, 17)]


@given(ANY_TEXT, ANY_TEXT)
def test_spans_are_sorted_and_inside_the_text(text, question):
    spans = term_spans(text, analyse_query(question + text[:5]))
    flat = [offset for span in spans for offset in span]
    assert flat == sorted(set(flat))
    assert all(0 <= offset <= len(text) for offset in flat)
