"""Compares texts word by word: what they share, what only one has, and what stands against each other.

Two texts that share nearly all of their words may still say opposite things: numbers, negations and words in the same
place are therefore looked at one by one, and only what is left is called the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache

from ..patterns import compile_late
from ..text.characters import CJK, is_symbol
from ..text.latin import stem as stem_word
from ..text.normalise import fold, prepare

MASK = "#"  # stands for a value among the tokens
THRESHOLD = 0.85  # of the shorter text's words and pairs of words, that the longer one has too
MEANING = 0.82  # whitened cosine; benchmarks/insight.py: most paraphrases lie above, one other word gives up to 0.77
ASIDE = 0.4  # whitened cosine; below, what is part of a longer text is an aside there, and not what that is about
LEAST_SHARED = 0.4  # of the shorter text's tokens, for texts that mean the same
IN_ORDER = 0.75  # of the shared tokens: "Anna asks Bob" is not "Bob asks Anna"
LEAST_SIZE = 3.0  # tokens; a shorter text is not said to be part of a longer one
CJK_SIZE = 0.6  # of a word that one character counts
SHOWN = 3  # differences that a reason names
LONG = 1_000  # tokens, from which on frequent ones are no landmarks when texts are aligned

_NUMERALS = "零〇一二两三四五六七八九十百千万亿"
_TOKEN = compile_late(
    rf"""
    (?P<number>(?<![\w.])-(?=\d))?(?P<digits>\d+(?:[.,:]\d+)*)
    | (?P<numeral>[{_NUMERALS}]+)
    | (?P<cjk>[美欧日港]元|[{CJK}])
    | (?P<word>(?:(?![{CJK}\d_])\w)+(?:'(?:(?![{CJK}\d_])\w)+)?(?:\+\+|\#(?!\w))?)
    | (?P<sign>[<>]=?|!=|[≤≥≠%‰$€£¥°])
    | (?P<symbol>[^\w\s\x00-\x7f\u2000-\u206f\u3001-\u3011])
    """,
    re.VERBOSE,
)
_ASKS = compile_late(r"[?？]\W*\Z|[吗嗎呢][。.!！\s]*\Z")
_THOUSANDS = compile_late(r"-?\d{1,3}(?:,\d{3})+")


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_DROPPED = _split("a an the is are am be been being do does did have has had please just also really very")
_DROPPED_CJK = frozenset("的了着吗呢吧啊呀嘛请")
_NEGATIONS = _split("not no never none nor neither without cannot nothing nobody")
_NEGATIONS_CJK = frozenset("不没无未勿别莫非")
# Where these characters deny nothing.
_AFFIRMING = compile_late(
    "不错|不过|不仅|不但|不同|不断|不久|不管|不如|差不多|是不是|无线|无论|非常|除非|别人|别名|特别|区别|级别|类别|性别|分别|识别|告别|个别|鉴别|未来|未必不|"
    "没关系|莫名"
)
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTHS = ["january", "february", "april", "june", "july", "august", "september", "october", "november", "december"]
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_VALUES = {
    **{word: str(number) for number, word in enumerate(_NUMBER_WORDS)},
    **{name + ending: name for name in (*_DAYS, *_MONTHS) for ending in ("", "s")},
}
# Words on the sides of a stroke stand in the same place, and say what can't both hold.
_OPPOSITES = (
    "on/off|before/after|up/down|in/out|over/under|above/below|more/less|first/last|left/right|open/close|start/stop|"
    "enable/disable|allow permit/deny forbid|increase/decrease|include/exclude|import/export|add/remove|"
    "upload/download|true/false|success/failure|succeed/fail|like love/hate dislike|buy/sell|accept/reject|"
    "internal/external|minimum min/maximum max|public/private|online/offline|always/rarely|启 允/禁|开/关|增/减|升/降|"
    "上/下|前/后|早/晚|左/右|买/卖|进/出|多/少|高/低|大/小|快/慢|内/外|新/旧|长/短|男/女|是/否"
    # What is measured in other units is another amount, and what holds in one environment need not hold in another.
    "|second/minute/hour hourly/day daily/week weekly/month monthly/quarter quarterly/year yearly annually"
    "|bit/byte/kb/mb/gb/tb/pb|kib/mib/gib/tib|usd dollar/eur euro/gbp pound/cny rmb yuan/jpy yen"
    "|production prod/staging/development dev|秒/分/时/天/周/月/年|元/美元/欧元/日元/港元"
)
_UNITS = {"十": 10, "百": 100, "千": 1000}
_LARGE_UNITS = {"万": 10_000, "亿": 100_000_000}
_DIGITS = {numeral: digit for digit, numeral in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_BEFORE_ONE, _AFTER_ONE = frozenset("周期拜第"), frozenset("月号日点楼年天周个次位人只条件本台小")


@dataclass(frozen=True, slots=True)
class Wording:
    """A text as it is compared: folded, without what says nothing, values masked. `said` has for each token what it
    stands for: a value such as 8080 (also days, months, single letters and emoji), itself, or that with "not " before.
    """

    tokens: tuple[str, ...]
    said: tuple[str, ...]
    asks: bool
    size: float  # in words

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The neighbouring tokens, by which texts are found that may share most of their words."""
        if len(self.tokens) == 1:
            return ((self.tokens[0], ""),)
        return tuple(zip(self.tokens, self.tokens[1:], strict=False))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two texts have to do with each other: how alike they are, 0 to 1, whether they stand against each other,
    why, in words, and whether it was their vectors that told so.
    """

    similarity: float
    conflict: bool
    reason: str
    by_meaning: bool = False


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which tokens of two texts are the same, by their places, and which words stand in each other's place."""

    same: tuple[tuple[int, int], ...]
    replaced: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def read_wording(text: str) -> Wording:
    """Return a text as it is compared."""
    simple = prepare(text)  # in its own case: "plan A" is no article
    affirming = {place for match in _AFFIRMING.finditer(simple) for place in range(*match.span())}
    tokens: list[str] = []
    said: list[str] = []
    size, denies = 0.0, False
    for match in _TOKEN.finditer(simple):
        if _denies(match.group().lower(), match.start() in affirming):
            denies = True
            continue
        found = _read_token(match, simple)
        if found is None:
            continue
        tokens.append(found[0])
        said.append(f"not {found[1]}" if denies else found[1])
        size += CJK_SIZE if match["cjk"] else 1.0
        denies = False
    if denies and said:
        said[-1] = f"not {said[-1]}"
    elif not tokens and simple.strip():  # "No.", "Please!", "…"
        tokens, said = [fold(simple).strip()], [fold(simple).strip()]
    return Wording(tuple(tokens), tuple(said), asks(text), size)


def asks(text: str) -> bool:
    """Tell whether a text ends with a question."""
    return _ASKS.search(text) is not None


def compare(one: Wording, other: Wording, threshold: float, meaning: float | None = None) -> Comparison | None:
    """Return what two texts have to do with each other, None if they are not alike.

    `threshold` is how much of the shorter text's words, and pairs of words, in order, the longer one has; `meaning` the
    whitened cosine of their vectors, by which other words for the same are recognised.
    """
    if one.asks != other.asks:
        return None
    short, long = sorted((one, other), key=lambda wording: (len(wording.tokens), wording.tokens, wording.said))
    if short.tokens == long.tokens:
        if short.said != long.said and {*short.tokens} == {MASK}:  # two numbers, and nothing that they are about
            return None
        return _judge(short, long, 1.0, "the same words")
    if short.size < LEAST_SIZE:
        return None
    common = count_in_order(short.tokens, long.tokens)
    similarity = (common / len(short.tokens) + _share_pairs(short, long)) / 2
    if similarity >= threshold and (meaning is None or meaning >= ASIDE):
        reason = "part of what the other says" if common == len(short.tokens) else f"{similarity:.0%} of its words"
        return _judge(short, long, similarity, reason)
    if meaning is None or meaning < least_meaning(threshold) or not _may_mean_the_same(short, long, common):
        return None
    return _judge(short, long, meaning, "the same in other words", by_meaning=True)


def least_meaning(threshold: float) -> float:
    """Return the whitened cosine from which texts mean the same; a higher threshold than usual raises it as much."""
    return MEANING + max(threshold - THRESHOLD, 0.0)


def covers(long: Wording, short: Wording, threshold: float) -> bool:
    """Tell whether one text says all that another does."""
    found = compare(long, short, threshold) if len(short.tokens) <= len(long.tokens) else None
    return found is not None and not found.conflict


def count_in_order(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    Hyyrö, "Bit-parallel LCS-length computation revisited", 2004: a row of the table is the bits of one number.
    """
    places: dict[str, int] = {}
    for place, token in enumerate(one):
        places[token] = places.get(token, 0) | (1 << place)
    every = (1 << len(one)) - 1
    row = every
    for token in other:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(one) - row.bit_count()


def align(one: Sequence[str], other: Sequence[str]) -> Alignment:
    """Return how two token sequences lie beside each other."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    left, right = one[start:], other[start:]
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) > LONG)
    same = [(place, place) for place in range(start)]
    replaced = []
    for what, first, stop, other_first, other_stop in matcher.get_opcodes():
        if what == "equal":
            same += [(start + first + step, start + other_first + step) for step in range(stop - first)]
        elif what == "replace":
            replaced.append((tuple(left[first:stop]), tuple(right[other_first:other_stop])))
    return Alignment(tuple(same), tuple(replaced))


def _judge(short: Wording, long: Wording, similarity: float, reason: str, *, by_meaning: bool = False) -> Comparison:
    """Return what alike texts have to do with each other by what differs.

    Words in each other's place stand against each other, unless the texts were found `by_meaning`: then only values do,
    and what one denies, and those that not both have.
    """
    alignment = align(short.tokens, long.tokens)
    against = [f"{short.said[i]} against {long.said[j]}" for i, j in alignment.same if short.said[i] != long.said[j]]
    against += [f"{_join(ones)} against {_join(others)}" for ones, others in (() if by_meaning else alignment.replaced)]
    if by_meaning and not against and _weighty(short) != _weighty(long):
        ones, others = _weighty(short), _weighty(long)
        missing = [*(ones - others).elements(), *(others - ones).elements()]
        against.append(f"only one says {', '.join(missing[:SHOWN])}")
    if against:
        return Comparison(similarity, True, "; ".join(against[:SHOWN]), by_meaning)
    return Comparison(similarity, False, reason, by_meaning)


def _weighty(wording: Wording) -> Counter[str]:
    """Return the values of a text, and how many of its words are denied."""
    values = (said for token, said in zip(wording.tokens, wording.said, strict=True) if token == MASK)
    denied = ("not" for said in wording.said if said.startswith("not "))
    return Counter([*values, *denied])


def _may_mean_the_same(short: Wording, long: Wording, common: int) -> bool:
    shared = (Counter(short.tokens) & Counter(long.tokens)).total()
    return shared >= LEAST_SHARED * len(short.tokens) and common >= IN_ORDER * shared


def _share_pairs(short: Wording, long: Wording) -> float:
    pairs = set(short.pairs)
    return len(pairs & set(long.pairs)) / len(pairs) if pairs else 1.0


@cache
def _find_opposites() -> dict[str, tuple[str, str]]:
    """Return for each word with an opposite the token that stands for both, and what this one says."""
    found = {}
    for pair in _OPPOSITES.split("|"):
        sides = [side.split() for side in pair.split("/")]
        for side in sides:
            found.update({stem_word(word): (sides[0][0], side[0]) for word in side})
    return found


def _join(tokens: Sequence[str]) -> str:
    return (" " if all(token.isascii() for token in tokens) else "").join(tokens)


def _denies(token: str, is_inside_affirming: bool) -> bool:
    if token in _NEGATIONS_CJK:
        return not is_inside_affirming
    return token in _NEGATIONS or token.endswith("n't")


def _read_token(match: re.Match[str], text: str) -> tuple[str, str] | None:
    """Return a token as it is compared and what it says, None if that is nothing."""
    token = match.group()
    if match["digits"]:
        return MASK, _normalise_number(token)
    if match["numeral"]:
        value = _read_numeral(token, text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1])
        return (token, token) if value is None else (MASK, value)
    if match["cjk"]:
        return None if token in _DROPPED_CJK else _find_opposites().get(token, (token, token))
    if match["word"]:
        if token.lower() in ("am", "pm") and text[max(match.start() - 2, 0) : match.start()].strip()[-1:].isdigit():
            return MASK, token.lower()
        return (MASK, "a") if token == "A" and match.start() else _read_word(fold(token))
    if match["symbol"]:
        return (MASK, token) if is_symbol(token) else None
    return token, token


@lru_cache(maxsize=32_768)
def _read_word(word: str) -> tuple[str, str] | None:
    if word in _DROPPED:
        return None
    if word in _VALUES or (len(word) == 1 and word.isascii() and word != "i"):
        return MASK, _VALUES.get(word, word)
    stem = stem_word(word.replace("'s", "").replace("'", ""))
    return _find_opposites().get(stem, (stem, stem))


def _normalise_number(number: str) -> str:
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    return (number.lstrip("0") or "0") if number.isdigit() else number


def _read_numeral(numeral: str, before: str, after: str) -> str | None:
    """Return the value of Chinese numerals, None where 一 is no number (一起, 一下)."""
    if numeral == "一" and before not in _BEFORE_ONE and after not in _AFTER_ONE:
        return None
    if not set(numeral) & (_UNITS.keys() | _LARGE_UNITS.keys()):
        return "".join(str(_DIGITS[character]) for character in numeral).lstrip("0") or "0"
    total = section = digit = 0
    for character in numeral:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _UNITS:
            section, digit = section + (digit or 1) * _UNITS[character], 0
        else:
            total, section, digit = (total + section + digit) * _LARGE_UNITS[character], 0, 0
    return str(total + section + digit)
