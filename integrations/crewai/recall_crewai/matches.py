"""What is recalled, as CrewAI shows it to an agent: a quotation, whatever it says."""

from __future__ import annotations

from typing import Any

from crewai.memory.types import MemoryMatch
from pydantic import Field

from recall_core import Hit
from recall_core.context import LABELS, quote_line, quote_memory
from recall_core.text import detect_language

from .records import to_memory_record

LONGEST = 1000  # characters; of a longer memory the passage that answers is shown
MOST_VALUE = 200


class RecallMatch(MemoryMatch):
    """A recalled record, with what of it is shown to an agent."""

    excerpt: str = Field(default="", exclude=True, repr=False)
    note: str = Field(default="", exclude=True, repr=False)

    def format(self) -> str:
        """Return the lines for a prompt: how relevant it is, when it was stored, and its text as quoted lines."""
        record = self.record
        lines = [f"- (score={self.score:.2f}) {record.created_at:%Y-%m-%d}"]
        lines.append(quote_memory(self.excerpt or record.content, LONGEST + len(self.excerpt) // 10))
        if record.categories:
            lines.append(f"  categories: {', '.join(map(quote_line, record.categories))}")
        for key, value in record.metadata.items():
            if value is not None:
                lines.append(f"  {quote_line(key)}: {quote_line(str(value), MOST_VALUE)}")
        return "\n".join([self.note, *lines] if self.note else lines)


def to_match(hit: Hit, base: str) -> RecallMatch:
    """Return a hit as a match whose score is its relevance from 0 to 1."""
    legs = {"semantic": hit.why.vector_rank, "keyword": hit.why.keyword_rank}
    return RecallMatch(
        record=to_memory_record(hit.record, base),
        score=hit.relevance,
        match_reasons=[leg for leg, rank in legs.items() if rank is not None],
        excerpt=hit.record.text if len(hit.record.text) <= LONGEST else hit.chunk.text,
    )


def add_note(matches: list[Any], query: str) -> None:
    """Let the first match say that all of them are quoted, in the language of the query."""
    if matches:
        matches[0].note = LABELS[detect_language(query)].note
