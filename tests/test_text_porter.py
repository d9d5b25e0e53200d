from concurrent.futures import ThreadPoolExecutor

import pytest

from recall_core.text.porter import stem


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


def test_threads_stem_side_by_side():
    words = [f"{start}connections" for start in ("re", "inter", "dis", "un", "pre", "over")] * 500
    expected = [stem(word) for word in words]
    stem.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(stem, words)) == expected
