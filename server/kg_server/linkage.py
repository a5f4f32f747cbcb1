"""GetPath: how two entities are linked."""

from collections.abc import Sequence
from dataclasses import dataclass

from kg_adapters.embedding.lexical import lexical_scores
from kg_adapters.models import Path, PathRequest, PathsFound
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_server.intermediates import Opened, ends_of, with_intermediates
from kg_server.lines import Line, Over, Piece, fitted_lines
from kg_server.names import Names, names_of, terms_of
from kg_server.path_search import search_paths
from kg_server.resolve import require_entity
from kg_server.results import Answer, PathsResult, Status
from kg_server.settings import Settings

POOL = 500
SHOWN_HUBS = 5
SHARED_IN_LINE = 20
"""How many nodes that both ends share over a relation stand in one line."""


async def linkage(
    graph: KGAdapter,
    settings: Settings,
    *,
    source: str,
    target: str,
    max_hops: int,
    limit: int,
    question: str | None,
    avoid_hubs: bool,
    max_tokens: int,
) -> Answer:
    """Answer GetPath.

    With a question, the best `POOL` paths by length are ranked by the likeness of their relations and inner nodes to
    it.

    Raises:
        InvalidRequest: An id is not one, or source and target are the same.
        UnknownEntity: The graph does not mention one of them.
    """
    start, end = await require_entity(graph, source), await require_entity(graph, target)
    request = PathRequest(
        start,
        end,
        max_hops=max_hops,
        limit=limit if question is None else max(limit, POOL),
        avoid_hubs=avoid_hubs,
        hub_degree=settings.hub_degree,
        max_expansions=settings.max_expansions,
        timeout_s=settings.timeout_s * 0.9,
    )
    found = await search_paths(graph, request)
    shown_hubs = found.skipped_hubs[:SHOWN_HUBS]
    walked = [triple for path in found.paths for triple in path.triples]
    names = await names_of(graph, (start, end, *shown_hubs, *terms_of(walked)), max_tokens=max_tokens)
    ranked = found.paths if question is None else _by_question(found.paths, question, names)
    shown = ranked[:limit]
    opened = await with_intermediates(graph, [each for path in shown for each in path.triples], names, (start, end))
    return fitted_lines(_lines(shown), opened.names, lambda here: _answer(request, found, here, opened), max_tokens)


def _by_question(paths: Sequence[Path], question: str, names: Names) -> Sequence[Path]:
    scores = lexical_scores(question, [_wording(path, names) for path in paths]).tolist()
    order = sorted(range(len(paths)), key=lambda index: (-scores[index], index))
    return [paths[index] for index in order]


def _wording(path: Path, names: Names) -> str:
    words: list[Node] = [triple.relation for triple in path.triples]
    words.extend(path.nodes[1:-1])
    return " ".join(names.labels.get(word, word.local_part) for word in words)


@dataclass(frozen=True, slots=True)
class _PathLine(Line):
    """One path, or those by what both ends share over a relation."""

    paths: tuple[Path, ...]


def _answer(request: PathRequest, found: PathsFound, here: Sequence[_PathLine], opened: Opened) -> Answer:
    names = opened.names
    paths = [[names.row(triple) for triple in path.triples] for line in here for path in line.paths]
    walked = [triple for line in here for path in line.paths for triple in path.triples]
    held = opened.held(walked)
    result = PathsResult(
        status=_status(found, len(paths)),
        knowledge="stated" if here else "unknown",
        summary=_summary(request, found, names) + _left_out(found, len(paths)),
        paths=paths,
        held=[names.row(fact) for fact in held] or None,
        labels=names.entity_labels(dict.fromkeys(ends_of((*walked, *held)))),
        relations=names.relation_labels(dict.fromkeys(fact.relation for fact in (*walked, *held))),
        total=found.total.value,
        exhaustive=found.exhaustive,
        skipped_hubs=[names.entity_id(hub) for hub in found.skipped_hubs],
    )
    return Answer(result, tuple(line.shown(names) for line in here))


def _lines(paths: Sequence[Path]) -> list[_PathLine]:
    """Return a line for each path; what source and target share over a relation stands in one, where the first does."""
    groups: dict[object, list[Path]] = {}
    for path in paths:
        groups.setdefault(_shared(path) or path, []).append(path)
    parts = (
        members[first : first + SHARED_IN_LINE]
        for members in groups.values()
        for first in range(0, len(members), SHARED_IN_LINE)
    )
    return [_line(members[0]) if len(members) == 1 else _shared_line(members) for members in parts]


def _line(path: Path) -> _PathLine:
    text: list[Piece] = [path.nodes[0]]
    for here, there, triple in zip(path.nodes, path.nodes[1:], path.triples, strict=False):
        over = Over(triple.relation)
        text += [" -[", over, "]-> ", there] if triple.head == here else [" <-[", over, "]- ", there]
    return _PathLine(tuple(text), (), (path,))


def _shared_line(paths: Sequence[Path]) -> _PathLine:
    """Return `both | occupation (P106) | writer (Q36180), film producer (Q3282637)`."""
    shared = _shared(paths[0])
    text: list[Piece] = ["both | ", *((shared,) if shared is not None else ()), " | "]
    for number, path in enumerate(paths):
        text += [", " if number else "", path.nodes[1]]
    return _PathLine(tuple(text), (), tuple(paths))


def _shared(path: Path) -> Over | None:
    """Return the relation by which both ends of a path lead to its middle, or it to both; None for any other path."""
    if len(path.triples) != 2 or path.triples[0].relation != path.triples[1].relation:
        return None
    first, last = path.triples
    if first.tail == last.tail == path.nodes[1]:
        return Over(first.relation)
    return Over(first.relation, backwards=True) if first.head == last.head == path.nodes[1] else None


def _status(found: PathsFound, shown: int) -> Status:
    if found.stopped is not None:
        return "timeout" if found.stopped == "time" else "truncated"
    if found.total.value == 0:
        return "empty"
    return "truncated" if shown < found.total.value else "ok"


def _summary(request: PathRequest, found: PathsFound, names: Names) -> str:
    pair = f"{names.entity(request.source)} and {names.entity(request.target)}"
    within = f"within {request.max_hops} hop{'s' if request.max_hops > 1 else ''}"
    if found.total.value == 0 and found.stopped is None:
        summary = f"No path links {pair} {within}."
    else:
        noun = "path links" if found.total.value == 1 else "paths link"
        summary = f"{found.total} {noun} {pair} {within}."
    return f"{summary} {_extent(request, found, names)}"


def _extent(request: PathRequest, found: PathsFound, names: Names) -> str:
    if found.stopped == "expansions":
        return "The search stopped early, after looking at as many edges as it may: fewer hops need less."
    if found.stopped == "time":
        return "The search stopped early, at its deadline: fewer hops need less."
    if found.skipped_hubs:
        hubs = ", ".join(names.entity(hub) for hub in found.skipped_hubs[:SHOWN_HUBS])
        more = len(found.skipped_hubs) - SHOWN_HUBS
        others = f" and {more} others" if more > 0 else ""
        return f"Not passed through: the hubs {hubs}{others} (avoid_hubs=false walks them and type relations)."
    if found.unnamed:
        return "Nodes without a name (_:…) cannot be passed through here; a Sparql query can go through them."
    if request.avoid_hubs:
        return "That is exhaustive, type relations aside."
    return "That is exhaustive."


def _left_out(found: PathsFound, shown: int) -> str:
    if shown == 0 or shown >= found.total.value:
        return ""
    return f" The best {shown} are here; a larger limit, max_tokens or a question shows others."
