"""Corpus, embedding and helpers shared by the checks."""

from __future__ import annotations

import zlib
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

C, M, O = FilterCondition, VectorStoreQueryMode, FilterOperator  # noqa: E741


class BigramEmbedding(BaseEmbedding):
    """Deterministic, offline: hashed character bigrams, 64 dimensions."""

    calls: int = 0

    def _vec(self, s: str) -> list[float]:
        self.calls += 1
        v = [0.01] * 64
        s = s.lower()
        for i in range(len(s) - 1):
            v[zlib.crc32(s[i : i + 2].encode()) % 64] += 1.0
        return v

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vec(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vec(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vec(text)


ROWS = [
    # id, source doc, vector, text, metadata
    (
        "n1",
        "docA",
        [1.0, 0.0, 0.0, 0.0],
        "The red kettle whistles at dawn",
        {
            "author": "alice",
            "year": 2020,
            "score": 0.5,
            "tags": ["red", "blue"],
            "nums": [1, 2],
            "title": "Alpha Report",
            "lang": "en",
            "mixed": 5,
        },
    ),
    (
        "n2",
        "docA",
        [0.9, 0.1, 0.0, 0.0],
        "A blue bicycle leans on the fence",
        {
            "author": "bob",
            "year": 2021,
            "score": 1.5,
            "tags": ["red"],
            "nums": [2, 3],
            "title": "beta report",
            "lang": "en",
            "mixed": "five",
        },
    ),
    (
        "n3",
        "docA",
        [0.0, 1.0, 0.0, 0.0],
        "北京的冬天很冷，需要穿羽绒服",
        {
            "author": "carol",
            "year": 2022,
            "score": 2.5,
            "tags": [],
            "nums": [3],
            "title": "Gamma Note",
            "lang": "zh",
            "extra": "",
        },
    ),
    (
        "n4",
        "docB",
        [0.0, 0.0, 1.0, 0.0],
        "数据库支持全文检索与向量检索",
        {
            "author": "alice",
            "year": 2023,
            "score": 3.5,
            "tags": ["green", "blue"],
            "nums": [],
            "title": "ALPHA appendix",
            "lang": "zh",
            "extra": "yes",
        },
    ),
    (
        "n5",
        "docB",
        [0.0, 0.0, 0.0, 1.0],
        "Kettle maintenance: descale every month",
        {"author": "dave", "year": 2024, "score": 4.5, "title": "Omega", "lang": "en"},
    ),
    (
        "n6",
        None,
        [0.5, 0.5, 0.5, 0.5],
        "Loose note without a source document",
        {"author": 'o\'brien "q"', "year": 2025, "lang": "en", "k.dot": "v1", "k'quote": "v2", "路径": "甲"},
    ),
]
ALL = {r[0] for r in ROWS}


def make_nodes() -> list[TextNode]:
    return [
        TextNode(
            id_=i,
            text=t,
            embedding=list(v),
            metadata=dict(md),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=d)} if d else {},
        )
        for i, d, v, t, md in ROWS
    ]


def q(vec=(1.0, 0.0, 0.0, 0.0), k: int = 10, **kw: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_embedding=None if vec is None else list(vec), similarity_top_k=k, **kw)


def f(key: str, op: O, value: Any) -> MetadataFilter:
    return MetadataFilter(key=key, operator=op, value=value)


def fs(*items: Any, cond: C = C.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(items), condition=cond)


# (case id, filters, expected ids)
FILTER_CASES = [
    ("none-list", fs(), ALL),
    ("eq-str", fs(f("author", O.EQ, "alice")), {"n1", "n4"}),
    ("eq-int", fs(f("year", O.EQ, 2021)), {"n2"}),
    ("eq-float", fs(f("score", O.EQ, 2.5)), {"n3"}),
    ("eq-int-as-float", fs(f("year", O.EQ, 2021.0)), {"n2"}),
    ("eq-str-is-not-int", fs(f("year", O.EQ, "2021")), set()),
    ("eq-missing-key", fs(f("nope", O.EQ, "x")), set()),
    ("eq-quotes-in-value", fs(f("author", O.EQ, 'o\'brien "q"')), {"n6"}),
    ("eq-dot-in-key", fs(f("k.dot", O.EQ, "v1")), {"n6"}),
    ("eq-quote-in-key", fs(f("k'quote", O.EQ, "v2")), {"n6"}),
    ("eq-unicode-key", fs(f("路径", O.EQ, "甲")), {"n6"}),
    ("injection-in-key", fs(f("x') OR 1=1 --", O.EQ, "y")), set()),
    ("injection-in-value", fs(f("author", O.EQ, "x' OR '1'='1")), set()),
    ("ne-str", fs(f("author", O.NE, "alice")), {"n2", "n3", "n5", "n6"}),
    ("ne-missing-key-matches", fs(f("extra", O.NE, "yes")), {"n1", "n2", "n3", "n5", "n6"}),
    ("gt", fs(f("year", O.GT, 2022)), {"n4", "n5", "n6"}),
    ("gte", fs(f("year", O.GTE, 2022)), {"n3", "n4", "n5", "n6"}),
    ("lt", fs(f("score", O.LT, 1.5)), {"n1"}),
    ("lte", fs(f("score", O.LTE, 1.5)), {"n1", "n2"}),
    ("gt-string-order", fs(f("author", O.GT, "carol")), {"n5", "n6"}),
    ("gt-mixed-types", fs(f("mixed", O.GT, 1)), {"n1"}),
    ("lt-mixed-types", fs(f("mixed", O.LT, "g")), {"n2"}),
    ("in-str", fs(f("author", O.IN, ["alice", "dave"])), {"n1", "n4", "n5"}),
    ("in-int", fs(f("year", O.IN, [2020, 2024])), {"n1", "n5"}),
    ("in-empty-list", fs(f("author", O.IN, [])), set()),
    ("nin-str", fs(f("author", O.NIN, ["alice", "dave"])), {"n2", "n3", "n6"}),
    ("nin-missing-key-matches", fs(f("extra", O.NIN, ["yes"])), {"n1", "n2", "n3", "n5", "n6"}),
    ("any", fs(f("tags", O.ANY, ["green", "red"])), {"n1", "n2", "n4"}),
    ("all", fs(f("tags", O.ALL, ["red", "blue"])), {"n1"}),
    ("any-on-scalar-int", fs(f("mixed", O.ANY, ["five"])), set()),
    ("contains-str", fs(f("tags", O.CONTAINS, "blue")), {"n1", "n4"}),
    ("contains-int", fs(f("nums", O.CONTAINS, 3)), {"n2", "n3"}),
    ("contains-on-scalar-int", fs(f("year", O.CONTAINS, 2)), set()),
    ("contains-string-is-not-substring", fs(f("title", O.CONTAINS, "Report")), set()),
    ("text_match", fs(f("title", O.TEXT_MATCH, "Alpha")), {"n1"}),
    ("text_match_insensitive", fs(f("title", O.TEXT_MATCH_INSENSITIVE, "alpha")), {"n1", "n4"}),
    ("text_match-wildcards-are-literal", fs(f("title", O.TEXT_MATCH, "%")), set()),
    ("text_match-on-int", fs(f("year", O.TEXT_MATCH, "202")), set()),
    ("is_empty", fs(f("tags", O.IS_EMPTY, None)), {"n3", "n5", "n6"}),
    ("is_empty-blank-string", fs(f("extra", O.IS_EMPTY, None)), {"n1", "n2", "n3", "n5", "n6"}),
    ("and", fs(f("author", O.EQ, "alice"), f("lang", O.EQ, "zh")), {"n4"}),
    ("or", fs(f("author", O.EQ, "dave"), f("lang", O.EQ, "zh"), cond=C.OR), {"n3", "n4", "n5"}),
    ("not-one", fs(f("author", O.EQ, "alice"), cond=C.NOT), {"n2", "n3", "n5", "n6"}),
    ("not-means-none-of", fs(f("author", O.EQ, "alice"), f("lang", O.EQ, "zh"), cond=C.NOT), {"n2", "n5", "n6"}),
    (
        "condition-none-is-and",
        MetadataFilters(filters=[f("author", O.EQ, "alice"), f("year", O.EQ, 2020)], condition=None),
        {"n1"},
    ),
    (
        "nested-and-or",
        fs(f("lang", O.EQ, "en"), fs(f("year", O.EQ, 2020), f("year", O.EQ, 2024), cond=C.OR)),
        {"n1", "n5"},
    ),
    (
        "nested-or-and",
        fs(fs(f("lang", O.EQ, "zh"), f("year", O.EQ, 2022)), fs(f("author", O.EQ, "bob")), cond=C.OR),
        {"n2", "n3"},
    ),
    ("nested-not", fs(f("lang", O.EQ, "en"), fs(f("author", O.EQ, "alice"), cond=C.NOT)), {"n2", "n5", "n6"}),
    (
        "nested-three-deep",
        fs(
            fs(fs(f("year", O.GT, 2021), f("year", O.LT, 2024)), f("author", O.EQ, "bob"), cond=C.OR),
            f("lang", O.EQ, "zh"),
        ),
        {"n3", "n4"},
    ),
    ("reserved-ref_doc_id", fs(f("ref_doc_id", O.EQ, "docB")), {"n4", "n5"}),
    ("reserved-doc_id", fs(f("doc_id", O.EQ, "docA")), {"n1", "n2", "n3"}),
]

__all__ = [
    "ALL",
    "FILTER_CASES",
    "ROWS",
    "BigramEmbedding",
    "C",
    "M",
    "O",
    "VectorStoreQuery",
    "f",
    "fs",
    "make_nodes",
    "q",
]
