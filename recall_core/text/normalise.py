"""Brings different spellings of the same text together: width, case, diacritics, Traditional and Simplified."""

from __future__ import annotations

import unicodedata
from functools import cache

from ..patterns import compile_late
from .characters import DIACRITICS, HAN, IGNORABLE, LATIN, codes_in

_IGNORABLE = compile_late(f"[{IGNORABLE}]+")
_HAN = compile_late(f"[{HAN}]")
_MAY_HAVE_DIACRITICS = compile_late(f"[\u00c0-\u024f\u1e00-\u1eff{DIACRITICS}]")
_DIACRITICS = compile_late(f"([{LATIN}])[{DIACRITICS}]+")
_TYPEWRITER = (("\u2018", "'"), ("\u2019", "'"), ("\u201b", "'"), ("\u2010", "-"), ("\u2212", "-"))


def fold(text: str) -> str:
    """Return any string as the keyword index compares it; folding twice changes nothing more.

    NFKC, case folded, invisible characters dropped, typographic apostrophes and hyphens as on a typewriter, Latin
    diacritics stripped (other scripts keep theirs), Traditional Chinese characters as Simplified ones. The result may
    be longer or shorter than `text`: offsets are not kept.
    """
    if text.isascii():
        return text.lower()
    folded = strip_diacritics(unify(text).casefold())
    return simplify(unify(folded))


def prepare(text: str) -> str:
    """Return `text` folded in all but case, which cutting getUserById into words still needs."""
    return text if text.isascii() else simplify(strip_diacritics(unify(text)))


def unify(text: str) -> str:
    """Return `text` in NFKC with a typewriter's apostrophes and hyphens and no invisible characters; case is kept."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text))
    for fancy, plain in _TYPEWRITER:
        text = text.replace(fancy, plain)
    return text


def strip_diacritics(text: str) -> str:
    """Return `text` with the marks of Latin letters dropped: naïve as naive, but й stays й."""
    if not _MAY_HAVE_DIACRITICS.search(text):
        return text
    bare = _DIACRITICS.sub(r"\1", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare)


def simplify(text: str) -> str:
    """Return `text` with each Traditional Chinese character replaced by its Simplified form; the length stays."""
    if not _HAN.search(text):
        return text
    return text.translate(_simplified_forms())


@cache
def _simplified_forms() -> dict[int, str]:
    # One conversion of all characters takes 40 ms; the separators keep OpenCC's phrase rules from seeing phrases.
    from opencc import OpenCC

    characters = [chr(code) for code in codes_in(HAN)]
    simplified = OpenCC("t2s").convert("\n".join(characters)).split("\n")
    forms = {a: b for a, b in zip(characters, simplified, strict=True) if a != b and len(b) == 1}
    return {ord(a): forms.get(b, b) for a, b in forms.items()}  # a few forms are themselves Traditional
