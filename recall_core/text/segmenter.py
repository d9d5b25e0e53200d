"""Cuts Chinese into dictionary words with jieba's algorithm, in Rust when that binding is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

from ..patterns import compile_late
from .characters import HAN_COMMON

Cut = Callable[[str], list[str]]

_RUN = compile_late(f"[{HAN_COMMON}]{{2,}}")  # one character alone is no word to cut


def cut_words(text: str) -> list[str]:
    """Return the dictionary words of two and more characters in `text`, the shorter words inside longer ones too.

    Only runs of Chinese characters are cut, since the two implementations differ elsewhere. The dictionary is loaded
    with the first run (0.1 s in Rust, 0.7 s in Python). May be called from several threads at once.
    """
    return [word for run in _RUN.findall(text) for word in load_segmenter()(run) if len(word) > 1]


@cache  # two threads that come first at once load twice, and either result serves
def load_segmenter() -> Cut:
    """Return jieba's search mode from whichever implementation is installed; both cut alike."""
    try:
        return load_rust_segmenter()
    except ImportError:
        return load_python_segmenter()


def load_rust_segmenter() -> Cut:
    """Return the Rust implementation.

    It is the one that importing the module makes: another, which nobody else could add words to, would double the time
    (0.1 s) and the memory (32 MB) of the first cut.
    """
    import rjieba

    cut: Cut = rjieba.cut_for_search
    return cut


def load_python_segmenter() -> Cut:
    """Return the Python implementation with a dictionary of its own, read without its cache file and log lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its old escape sequences, and pkg_resources
        import jieba

    tokenizer = jieba.Tokenizer()
    # As its initialize(), which would also leave a cache file at a fixed name in the shared temporary folder.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def cut(text: str) -> list[str]:
        return list(tokenizer.cut_for_search(text))

    return cut
