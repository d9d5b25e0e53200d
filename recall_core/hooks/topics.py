"""Whether a memory is about what a prompt is about. A search finds what shares any word with it; before a prompt, where
nobody has asked for memories, that is not enough: "run it again" is about nothing, and "how do I centre a div" is not
about the only word of it that the project knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ..patterns import compile_late
from ..text.lexicon import is_function_gram, is_function_word
from ..text.query import analyse_query

ENOUGH = 0.5  # of the words that a prompt is about
MOST_WORDS = 6  # of a longer prompt this share is enough
GRAMS = 0.6  # words in a pair of characters: of two words beside each other every second pair lies across both

# What people say to an agent whatever the work is about.
_COMMON = """
add again ahead answer apply ask best better blue bring bye call change check class clean close code come command
complete continue cool correct create delete describe do done edit error example execute exit explain file find fine
finish first fix folder follow function get give go good great green happen hello help hi idea implement improve
instead issue job keep last let line list look make mean method modify more move need new next nice note now ok okay
open other perfect please print problem proceed put read red redo refactor remove rename replace reply retry rewrite
right run same save say see send set short show simple something sorry start step still stop sure tell thank thanks
thing think translate try turn understand undo update use variable wait want way work write wrong yes yet
"""
_COMMON_CHINESE = compile_late(
    r"帮我|帮忙|看看|看一下|一下|请|继续|谢谢|多谢|好的|好了|可以了|没问题|再试一次|再试|试试|再来一次|运行|执行|修改|修复|改成|改一下|改个"
    r"|解释|说明|翻译|写一个|写个|加一个|加个|添加|新加|新增|删除|删掉|这个|那个|这些|那些|这段|这里|代码|函数|变量|文件|报错|错误|名字"
    r"|意思|很好|怎么办|为什么|什么|怎么|如何|哪里|多少|问题|现在|刚才|之前|一个|吗|呢|吧|了"
)


def find_topic(prompt: str) -> frozenset[str]:
    """Return the terms that a prompt is about; none if it is about nothing that could be looked up."""
    found = frozenset(analyse_query(_COMMON_CHINESE.sub(" ", prompt)).terms) - _common()
    return frozenset(term for term in found if _says_something(term))


def is_about(text: str, topic: frozenset[str]) -> bool:
    """Tell whether a text holds enough of the terms that a prompt is about."""
    shared = topic.intersection(analyse_query(text).terms)
    return bool(shared) and _count_words(shared) >= ENOUGH * min(_count_words(topic), MOST_WORDS)


def _says_something(term: str) -> bool:
    """Tell whether a term is a word: no function word, no symbol, no single character of a Chinese word cut apart."""
    if not any(map(str.isalnum, term)) or is_function_word(term):
        return False
    return term.isascii() or (len(term) > 1 and not is_function_gram(term))


def _count_words(terms: Iterable[str]) -> float:
    return sum(1.0 if term.isascii() else GRAMS for term in terms)


@cache
def _common() -> frozenset[str]:
    found = analyse_query(_COMMON)
    return frozenset((*found.terms, *found.weak))
