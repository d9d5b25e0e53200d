"""The Porter stemmer for English: connected, connecting and connection all become connect.

M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980. Words of one and two letters stay as they are,
as in its author's own implementation.
"""

from __future__ import annotations

from functools import lru_cache

_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble")),
)
_STEP_3 = (("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism"),
    *("ate", "iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a word of lower-case ASCII letters."""
    if len(word) <= 2:
        return word
    word = _strip_past(_strip_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, _STEP_2)
    word = _replace(word, _STEP_3)
    return _strip_e(_strip_suffix(word))


def _shape(word: str) -> str:
    """Return "v" for each vowel and "c" for each consonant; a y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Return m, the number of vowel-consonant sequences."""
    return _shape(word).count("vc")


def _ends_in_double_consonant(word: str) -> bool:
    return word[-1:] == word[-2:-1] and _shape(word).endswith("cc")


def _ends_short(word: str) -> bool:
    """Tell whether a word ends consonant, vowel, consonant, the last one not w, x or y: hop, but not snow."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _strip_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _strip_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = next((suffix for suffix in ("ed", "ing") if word.endswith(suffix)), "")
    if not suffix or "v" not in _shape(word[: -len(suffix)]):
        return word
    word = word[: -len(suffix)]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_in_double_consonant(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    matching = [rule for rule in rules if word.endswith(rule[0])]
    if not matching:
        return word
    suffix, replacement = max(matching, key=lambda rule: len(rule[0]))
    base = word[: -len(suffix)]
    return base + replacement if _measure(base) > 0 else word


def _strip_suffix(word: str) -> str:
    matching = [suffix for suffix in _STEP_4 if word.endswith(suffix)]
    if not matching:
        return word
    suffix = max(matching, key=len)
    if suffix in ("sion", "tion"):
        suffix = "ion"  # only after s or t, which stay
    base = word[: -len(suffix)]
    return base if _measure(base) > 1 else word


def _strip_e(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        measure = _measure(base)
        if measure > 1 or (measure == 1 and not _ends_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
