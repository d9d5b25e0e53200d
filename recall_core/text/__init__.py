"""Everything that is done to text before it is stored, indexed or searched. Pure: no file, no clock, no database."""

from .clean import clean_json, clean_text
from .dates import Period, find_periods
from .query import MAX_CHARACTERS, Query, analyse_query, match_expression, term_spans
from .segment import TOKENIZER, Terms, analyse, segmenter_version, user_words
from .sentences import detect_language, split_sentences

__all__ = [
    "MAX_CHARACTERS",
    "TOKENIZER",
    "Period",
    "Query",
    "Terms",
    "analyse",
    "analyse_query",
    "clean_json",
    "clean_text",
    "detect_language",
    "find_periods",
    "match_expression",
    "segmenter_version",
    "split_sentences",
    "term_spans",
    "user_words",
]
