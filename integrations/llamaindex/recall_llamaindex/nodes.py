"""Nodes as records, and back.

The text and the metadata of a node are the record's; all else of it is the record's payload. So what changes the text
of a record, or blots something out of it, changes the node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, ImageNode, IndexNode, MetadataMode, Node, NodeWithScore, TextNode
from llama_index.core.vector_stores.utils import node_to_metadata_dict

from recall_core import Hit, NewRecord, Record, derive_id, derive_name

NODE = "node"  # the kind of these records
_CLASSES = {kind.class_name(): kind for kind in (Node, IndexNode, ImageNode)}


def record_id(scope: str, node_id: str) -> str:
    """Return the id of a node's record. It differs from scope to scope, so that two stores may have the same node."""
    return derive_id("llamaindex", NODE, scope, node_id)


def to_record(node: BaseNode, scope: str, space: str) -> NewRecord:
    """Return the record of a node that has an embedding; it replaces the one stored before. The node stays as it is."""
    if node.embedding is None:
        raise ValueError(f"the node {node.node_id!r} has no embedding; index it with an embed_model")
    content: dict[str, Any] = json.loads(node_to_metadata_dict(node)["_node_content"])
    metadata = content.pop("metadata", {})
    if "text" in content:
        content["text"] = ""
    elif content.get("text_resource"):
        content["text_resource"]["text"] = None
    return NewRecord(
        id=record_id(scope, node.node_id),
        text=node.get_content(metadata_mode=MetadataMode.NONE),
        kind=NODE,
        metadata=metadata,
        payload={"class": node.class_name(), "node": content},
        source=None if node.ref_doc_id is None else derive_name(node.ref_doc_id),
        vector=node.embedding,
        space=space,
        on_duplicate="replace",
    )


def to_node(record: Record) -> BaseNode:
    """Return the node of a record; a memory that was no node becomes a TextNode."""
    if record.kind != NODE or not isinstance(record.payload, dict) or "node" not in record.payload:
        return _describe(record)
    content = {**record.payload["node"], "metadata": dict(record.metadata)}
    if "text" in content:
        content["text"] = record.text
    elif content.get("text_resource"):
        content["text_resource"] = {**content["text_resource"], "text": record.text}
    made: BaseNode = _CLASSES.get(record.payload["class"], TextNode).from_dict(content)
    return made


def to_nodes(records: Iterable[Record], scope: str | None = None) -> list[BaseNode]:
    """Return the nodes of records. Those of several scopes may have one id, and LlamaIndex would keep the first alone:
    then all but that of `scope` are called by the id of their record.
    """
    listed = list(records)
    nodes = [to_node(record) for record in listed]
    counts = Counter(node.node_id for node in nodes)
    for record, node in zip(listed, nodes, strict=True):
        if counts[node.node_id] > 1 and record.scope != scope:
            node.id_ = record.id
    return nodes


def to_scored(hits: Sequence[Hit]) -> list[NodeWithScore]:
    """Return hits as LlamaIndex's retrievers give them, scored by their relevance from 0 to 1."""
    nodes = to_nodes(hit.record for hit in hits)
    return [NodeWithScore(node=node, score=hit.relevance) for node, hit in zip(nodes, hits, strict=True)]


def _describe(record: Record) -> TextNode:
    """Return a memory as a node: what is known of it beside its text stands in the metadata, for the reader alone."""
    facts = {
        "created_at": record.created_at.isoformat(),
        "role": record.role,
        "session": record.session,
        "source": record.source,
        "tags": list(record.tags),
    }
    added = {name: value for name, value in facts.items() if value and name not in record.metadata}
    hidden = [name for name in added if name not in ("created_at", "role")]
    return TextNode(
        id_=record.id,
        text=record.text,
        metadata={**record.metadata, **added},
        excluded_embed_metadata_keys=list(added),
        excluded_llm_metadata_keys=hidden,
    )
