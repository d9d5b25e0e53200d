"""`recall search` and `recall context`: find memories by keyword and by meaning."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from recall_core.models import Hits, Mode, SearchArguments

from .opening import open_for_search
from .options import (
    db_option,
    json_option,
    limit_option,
    mode_option,
    model_option,
    parse_object,
    recency_option,
    relevance_option,
    roles_option,
    scope_option,
    session_option,
    since_option,
    tags_option,
    until_option,
    where_option,
)
from .output import NOTHING, tell, visible, write, write_json
from .printing import print_hits
from .shapes import hit_shape

if TYPE_CHECKING:
    from recall_core.text import Query

SEARCH_OPTIONS = (
    mode_option,
    limit_option,
    scope_option,
    session_option,
    roles_option,
    tags_option,
    since_option,
    until_option,
    where_option,
    relevance_option,
    recency_option,
)


def search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a search, which it gets as one value, `arguments`."""

    @functools.wraps(command)
    def collect(
        *,
        mode: Mode,
        limit: int,
        scope: str,
        session: str | None,
        roles: Sequence[str],
        tags: Sequence[str],
        since: str | None,
        until: str | None,
        where: str | None,
        min_relevance: float | None,
        recency: float | None,
        **others: Any,
    ) -> None:
        arguments = SearchArguments(
            mode=mode,
            limit=limit,
            scope=scope,
            session=session,
            roles=roles or None,
            tags=tags or None,
            since=since,
            until=until,
            where=parse_object(where, "--where"),
            min_relevance=min_relevance,
            recency=recency,
        )
        command(arguments=arguments, **others)

    for option in reversed(SEARCH_OPTIONS):
        collect = option(collect)
    return collect


@click.command()
@click.argument("query")
@search_options
@click.option("--why", is_flag=True, help="Say for each hit what found it.")
@click.option("--rerank", metavar="NAME|FOLDER", help="A cross-encoder that reads the first hits again.")
@db_option
@model_option
@json_option
def search(
    query: str,
    arguments: SearchArguments,
    why: bool,
    rerank: str | None,
    db: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Find the memories that answer QUERY, any text, the best first.

    As with grep, the exit code is 1 if there are none.
    """
    hits = _find(query, arguments, db, model, rerank)
    if as_json:
        _write_hits(query, hits)
    elif hits:
        print_hits(hits, _analyse(query), why)
    else:
        tell("nothing found")
    if not hits:
        click.get_current_context().exit(NOTHING)


@click.command()
@click.argument("query")
@click.option("--max-chars", "-c", metavar="N", type=int, default=2000, show_default=True, help="Its greatest length.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Of its labels; by default the query's.")
@search_options
@db_option
@model_option
@json_option
def context(
    query: str,
    max_chars: int,
    language: str | None,
    arguments: SearchArguments,
    db: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Print what is remembered on QUERY as a block for a prompt.

    What is less relevant than 0.3 is left out, unless --min-relevance says otherwise.
    """
    from recall_core.context import render_context
    from recall_core.settings import Settings
    from recall_core.text import detect_language

    if arguments["min_relevance"] is None:
        arguments["min_relevance"] = Settings().context_relevance
    # Memory.context would not tell whether the hits come from keywords only.
    hits = _find(query, arguments, db, model)
    block = render_context(hits, language or detect_language(query), max_chars)
    if as_json:
        write_json({"query": query, "mode": hits.mode, "degraded": hits.degraded, "context": block})
    else:
        write(visible(block))


def _find(
    query: str, arguments: SearchArguments, db: str | None, model: str | None, reranker: str | None = None
) -> Hits:
    with open_for_search(db, model, arguments["mode"], reranker) as memory:
        hits = memory.search(query, **arguments)
    if hits.degraded:
        tell(hits.degraded)
    return hits


def _analyse(query: str) -> Query:
    from recall_core.text import analyse_query

    return analyse_query(query)


def _write_hits(query: str, hits: Hits) -> None:
    from recall_core.text import term_spans

    analysed = _analyse(query)
    write_json(
        {
            "query": query,
            "mode": hits.mode,
            "degraded": hits.degraded,
            "hits": [hit_shape(hit, term_spans(hit.chunk.text, analysed)) for hit in hits],
        }
    )
