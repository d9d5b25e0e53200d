import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recall_core.text.normalise import fold, simplify

ANY_TEXT = st.text(st.one_of(st.characters(), st.characters(categories=["Cs", "Mn", "Lu", "Lt", "Lm", "So"])))


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("ＡＰＩ", "api"),
        ("Docker", "docker"),
        ("naïve", "naive"),
        ("nai\u0308ve", "naive"),
        ("Müller", "muller"),
        ("Straße", "strasse"),
        ("數據庫", "数据库"),
        ("後來乾麵", "后来干面"),
        ("Ёлка", "ёлка"),
        ("й", "й"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("ﬁle ①", "file 1"),
        ("ｶﾞ", "ガ"),
        ("co\u00adoperate\u200b", "cooperate"),
        ("it’s", "it's"),
        ("well‐known", "well-known"),
        ("❤️", "❤"),
    ],
)
def test_spellings_come_together(written, folded):
    assert fold(written) == folded


@given(ANY_TEXT)
@example("\ud800\0")
@example("a\u05b0\u0301")
@example("ΐﬀß")
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


def test_lone_surrogates_and_nul_pass_through():
    assert fold("A\ud800\0B") == "a\ud800\0b"


def test_simplified_forms_are_final():
    han = "".join(map(chr, [*range(0x3400, 0x4DC0), *range(0x4E00, 0xA000), *range(0x20000, 0x2A6E0)]))
    assert simplify(simplify(han)) == simplify(han)
    assert len(simplify(han)) == len(han)


def test_simplified_text_stays_as_it_is():
    text = "项目部署统一使用容器，数据库每天备份。"
    assert simplify(text) == text
