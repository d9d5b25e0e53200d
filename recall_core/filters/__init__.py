"""Filters say which memories count, by their metadata and their fields; a selection says all that a read may see.

A condition names a field, an operator and a value. `"@role"` is a field of the record (`RECORD_FIELDS` lists them);
any other name is a top-level metadata key, taken verbatim: a dot or a quote in it means nothing. A key that itself
starts with "@" is written with "@@". Values are JSON scalars or lists of them, and compare strictly by type:
true is not 1, "1" is not 1, but 1 is 1.0; null equals only null, and a missing key equals nothing.

| operator         | mapping      | holds for the stored value v and the given value g                       | missing |
|------------------|--------------|--------------------------------------------------------------------------|---------|
| eq               | $eq          | v is the scalar g; a list or an object is equal to nothing               | no      |
| ne               | $ne          | eq does not hold                                                         | yes     |
| gt, gte, lt, lte | $gt $gte …   | both numbers, or both strings (by code point), and v > g, v >= g …       | no      |
| in               | $in          | v is one of the list g                                                   | no      |
| not_in           | $nin         | in does not hold                                                         | yes     |
| any              | $any         | an item of v is in the list g; a scalar v is its own only item           | no      |
| all              | $all         | every item of the list g is an item of v, so [] holds for whatever v     | if []   |
| contains         | $contains    | the list v has the item g, or the string v has g in it, case counts      | no      |
| text_match       | $text        | the string v has g in it, both NFKC-normalised and case-folded           | no      |
| is_empty         | $empty       | v is null, "", [] or {}; with false for g: v is none of these            | yes; no |

Record fields are never missing: one without a value is null. Values for them are checked: times take all that
`created_at` does, `@turn` and `@importance` take numbers, the others strings; `@tags` is a list. Integers beyond
64 bits compare as floats.
"""

from .conditions import (
    MAX_CONDITIONS,
    MAX_DEPTH,
    OPERATORS,
    OPPOSITES,
    RECORD_FIELDS,
    And,
    Condition,
    FieldKind,
    Filter,
    Not,
    Operator,
    Or,
    holds_always,
    resolve_field,
)
from .predicate import fold_text, matches
from .selection import Selection, make_selection, restricts_records, selection_filters, selects
from .where import parse_where

__all__ = [
    "MAX_CONDITIONS",
    "MAX_DEPTH",
    "OPERATORS",
    "OPPOSITES",
    "RECORD_FIELDS",
    "And",
    "Condition",
    "FieldKind",
    "Filter",
    "Not",
    "Operator",
    "Or",
    "Selection",
    "fold_text",
    "holds_always",
    "make_selection",
    "matches",
    "parse_where",
    "resolve_field",
    "restricts_records",
    "selection_filters",
    "selects",
]
