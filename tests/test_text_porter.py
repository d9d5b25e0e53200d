import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from snowballstemmer import stemmer

from recall_core.text.porter import stem

SUFFIXES = """
s ed ing eed ies sses y ational tional enci anci izer abli alli entli eli ousli ization ation ator alism iveness
fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment
ent ion sion tion ou ism ate iti ous ive ize e ll
"""
WORDS = st.tuples(
    st.text("abcdefghijklmnopqrstuvwxyzaeiouy", min_size=1, max_size=7),
    st.sampled_from(SUFFIXES.split()),
    st.sampled_from(["", *SUFFIXES.split()]),
).map("".join)


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("digitizer", "digit"),
        ("triplicate", "triplic"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("rate", "rate"),
        ("controlling", "control"),
        ("connections", "connect"),
        ("us", "us"),
    ],
)
def test_the_examples_of_the_paper(word, stemmed):
    assert stem(word) == stemmed


@given(WORDS)
def test_stems_are_those_of_snowball(word):
    # Snowball does not undouble letters that English never doubles; the paper has no such exception.
    assume(len(word) > 2 and not any(letter * 2 in word for letter in "chjkqvwxy"))
    assert stem(word) == stemmer("porter").stemWord(word)
