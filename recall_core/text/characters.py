"""Character classes that the rest of the package builds its patterns from; each goes between `[` and `]`."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, the extensions and compatibility forms included."""

HAN_COMMON = "\u4e00-\u9fd5"
"""The characters that the segmenters' dictionary is about; outside it they would differ."""

_KANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"
_HANGUL = "\u1100-\u115e\u1161-\u11ff\u3131-\u3163\u3165-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
_BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
_HALF_WIDTH = "\uff66-\uff9f\uffa1-\uffdc"

CJK = HAN + _KANA + _HANGUL + _BOPOMOFO + _HALF_WIDTH
"""What is written without spaces between words, or with endings glued on: indexed by character and pair."""

LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab64"

DIACRITICS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f"
"""The combining marks of the Latin script."""

# Unicode's Default_Ignorable_Code_Point: joiners, direction marks, variation selectors, fillers, soft hyphen.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

SURROGATES = "\ud800-\udfff"

MARK_BLOCKS = (
    "\u0300-\u036f\u0483-\u1dff\u20d0-\u20f0\u2cef-\u2cf1\u2d7f-\u2dff\u302a-\u302f\ua66f-\uabff\ufb1e-\ufb1e"
    "\ufe20-\ufe2f\U00010000-\U00011fff\U00016a00-\U00016fff\U0001d000-\U0001efff"
)
"""Where the marks of all scripts are, among much else: a quick look whether a text may have any."""


@cache
def word_marks() -> str:
    """Return the marks inside words (vowel signs, points, diacritics), which no pattern takes for letters."""
    marks = [code for code in codes_in(MARK_BLOCKS) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    return "".join(map(chr, marks))


def codes_in(ranges: str) -> list[int]:
    """Return the code points of the ranges (not of the single characters) of a character class, in order."""
    return [code for first, last in re.findall("(.)-(.)", ranges) for code in range(ord(first), ord(last) + 1)]


@cache
def is_symbol(character: str) -> bool:
    """Tell whether a character is an emoji or another symbol that means something alone (Unicode category So)."""
    code = ord(character)
    if 0x1F000 <= code <= 0x1FBFF:  # by block, so that an emoji younger than Python's tables counts too
        return not 0x1F3FB <= code <= 0x1F3FF
    return unicodedata.category(character) == "So"
