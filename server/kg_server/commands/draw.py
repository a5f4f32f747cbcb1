"""`kg-sextant draw`: entities, the evidence of a run, a memory or the result of an expression as a picture."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_boundary.drawing import CannotDraw, Picture, Triple, png_of, svg_of
from kg_boundary.drawing.picture import is_value
from kg_boundary.shown import clipped, counted, in_quotes, json_text, one_line
from kg_server.commands import options
from kg_server.commands.invocation import invocation
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.tools.knowledge import KnowledgeGraph

ENDINGS: Final = (".svg", ".png", ".html")
_ALONE: Final = 24
_AMONG: Final = 5
"""How many neighbours are drawn of one entity, and of each of several."""
_PATHS: Final = 3
_PAIRS: Final = 3
"""Up to how many entities each is linked with each; of more, each with the next."""
_MOST: Final = 100
_NAMED: Final = 8
_TOKENS: Final = 20_000


def draw(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write, .svg, .png or .html; - prints SVG on standard output.",
        ),
    ],
    entities: Annotated[
        list[str] | None,
        typer.Argument(metavar="ENTITY…", help="Entities to draw with their neighbours, and the paths between them."),
    ] = None,
    graph: options.Graphs = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the answer of a recorded run, and what it rests on.")
    ] = None,
    memory: Annotated[str | None, typer.Option(metavar="ID", help="Draw a memory.")] = None,
    compose: Annotated[
        str | None, typer.Option(metavar="EXPR", help="Draw the result of an expression, and what shows it.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The title, in place of the usual one.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=0, max=60, metavar="N", help="How many neighbours of each entity to draw.")
    ] = None,
    dark: Annotated[
        bool, typer.Option("--dark", help="Draw in dark colours; an SVG otherwise follows its reader.")
    ] = False,
    scale: Annotated[float, typer.Option(min=0.5, max=8, help="How large a PNG is, in sizes of the SVG.")] = 2.0,
) -> None:
    """Draw a part of a graph as a file for slides and pages.

    Needs the extra draw: without it, this prints the command that installs it.
    """
    ending = ".svg" if out == "-" else Path(out).suffix.lower()
    if ending not in ENDINGS:
        raise InvalidRequest(
            f"--out {in_quotes(out)}: the name must end with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}."
        )
    if sum(map(bool, (entities, trace, memory, compose))) != 1:
        raise InvalidRequest("Name what to draw: entities, or one of --trace, --memory and --compose.")
    import anyio

    if trace is not None and not graph:
        picture = _cut(_of_trace(trace))
    else:
        settings = invocation(context).load_for_any(graph=graph).settings
        picture = anyio.run(_read, settings, entities or [], trace, memory, compose, limit)
    if not (picture.facts or picture.roots):
        raise InvalidRequest("There is nothing to draw: what was asked for holds no facts.")
    picture = picture if title is None else replace(picture, title=title)
    try:
        _write(out, _written(picture, ending, dark=dark, scale=scale))
    except CannotDraw as error:
        raise InvalidRequest(str(error)) from error


def _written(picture: Picture, ending: str, *, dark: bool, scale: float) -> bytes:
    """Return a picture in the form that an ending stands for.

    Raises:
        CannotDraw: A library is missing.
    """
    if ending == ".html":
        return _page(picture)
    svg = svg_of(picture, "dark" if dark else "light" if ending == ".png" else "both")
    return png_of(svg, scale) if ending == ".png" else svg.encode()


def _page(picture: Picture) -> bytes:
    """Return the page that draws graphs with the facts of a picture in it, which needs no server."""
    from kg_server.view import view_html

    nodes = [each for each in picture.nodes() if not is_value(each) or each in picture.answers]
    stated = [fact for fact in picture.facts if fact[2] in nodes]
    kinds = {name: f"{name} (c{place})" for place, name in enumerate(dict.fromkeys(picture.classes.values()))}
    left = sum(picture.more.values())
    summary = [picture.caption, f"{left:,} more facts are not in this file." if left else ""]
    kept = {
        "title": picture.title,
        "answer": {
            # Of an answer with paths, these stand out.
            "paths": [[fact for fact in stated if fact in picture.evidence]],
            "held": [fact for fact in stated if fact not in picture.evidence],
            "labels": {each: picture.name(each) for each in nodes},
            "relations": {each: picture.relation_name(each) for _, each, _ in picture.facts},
            "summary": " · ".join(filter(None, summary)),
        },
        "candidates": [[each, picture.name(each), "", kinds.get(picture.classes.get(each, ""), "")] for each in nodes],
        "values": [[head, relation, picture.name(tail)] for head, relation, tail in picture.facts if is_value(tail)],
    }
    # No label can end the element that holds it, nor begin another.
    text = json_text(kept, ascii_only=True).replace("<", "\\u003c")
    data = f'<script type="application/json" id="kept">{text}</script>'
    before, mark, after = view_html().partition("<noscript>")
    return f"{before}{data}\n{mark}{after}".encode()


def _write(out: str, written: bytes) -> None:
    """Write a picture.

    Raises:
        InvalidRequest: The file cannot be written.
    """
    if out == "-":
        # Whatever encoding the terminal has, the text stays XML.
        sys.stdout.write(written.decode().encode("ascii", "xmlcharrefreplace").decode())
        return
    try:
        Path(out).write_bytes(written)
    except OSError as error:
        raise InvalidRequest(f"--out {in_quotes(out)} cannot be written: {error.strerror}.") from error


async def _read(
    settings: Settings,
    entities: Sequence[str],
    trace: Path | None,
    memory: str | None,
    compose: str | None,
    limit: int | None,
) -> Picture:
    """Return the picture of entities, a run, a memory or an expression, by what the tools answer.

    Raises:
        BackendError: A tool refused a call; the message is the reason that it gave.
    """
    from kg_agents.llm import AgentError
    from kg_agents.tools.knowledge import connect
    from kg_server.app import build_server
    from kg_server.commands.graphs import served

    try:
        async with served(settings) as graphs, connect(build_server(graphs, settings)) as graph:
            if trace is not None:
                picture = _of_trace(trace)
            elif memory is not None:
                held = await graph.recall(memory)
                picture = replace(held.picture, title="Memory", caption=counted(len(held.facts), "fact"))
            elif compose is not None:
                picture = await _of_expression(graph, compose)
            else:
                picture = await _of_entities(graph, entities, limit)
            return await _with_classes(graph, _cut(picture))
    except AgentError as error:
        # On one line, the mark below an expression points at nothing.
        raise BackendError(one_line(str(error).rstrip(" ^"))) from error


def _of_trace(path: Path) -> Picture:
    """Return the answer of a recorded run, and what it rests on.

    Raises:
        InvalidRequest: The file is no record of a run, or its answer rests on no facts.
    """
    from kg_agents.evidence.answers import picture_of
    from kg_agents.evidence.values import IdLabels
    from kg_agents.tools.client import ToolCall
    from kg_agents.tools.readings import shown_by
    from kg_agents.trace import AnswerLine, InvalidTrace, RunLine, ToolLine, read_trace

    try:
        lines = read_trace(path)
    except InvalidTrace as error:
        raise InvalidRequest(one_line(str(error))) from error
    run = next(line for line in lines if isinstance(line, RunLine))
    answers = [each for line in lines if isinstance(line, AnswerLine) for each in line.answers]
    labels = IdLabels()
    for line in lines:
        if isinstance(line, ToolLine) and not line.error:
            call = ToolCall(line.tool, line.arguments, line.text, line.data, line.failed)
            labels = labels.merged(shown_by(call, run.graphs).labels)
    facts = tuple(dict.fromkeys(fact for each in answers for fact in each.facts))
    if not facts:
        raise InvalidRequest(
            f"The answer of {path} rests on no facts, so there is nothing to draw. "
            f"kg-sextant explore --trace {path} shows what the run found."
        )
    return picture_of(run.question, answers, labels, facts)


async def _of_expression(graph: "KnowledgeGraph", expression: str) -> Picture:
    """Return the results of an expression, and the facts that show them."""
    from kg_agents.evidence.values import names_in, valued

    found = await graph.compose(expression, evidence="all", max_tokens=_TOKENS)
    stated = tuple(dict.fromkeys((*found.facts, *(fact for each in found.computed for fact in each.facts))))
    nodes = {*found.labels.nodes, *(head for head, _, _ in stated)}
    # Its rows write values like ids; what has neither a label nor facts is taken for one, but for blank nodes.
    facts = tuple(fact if fact[2] in nodes or fact[2].startswith("_:") else valued(fact) for fact in stated)
    drawn = found.labels.picture(facts)
    results = found.listed or tuple(each.result for each in found.computed)
    given = {*found.named.values(), *names_in(expression)}
    if not (facts or found.labels.nodes.keys() & found.listed):
        told = clipped(one_line(found.text), 300)
        raise InvalidRequest(f"There is nothing to draw, as the answer names neither facts nor nodes: {told}")
    return replace(
        drawn,
        title=" ".join(expression.split()),
        caption=_listed([drawn.name(each) for each in results]),
        roots=tuple(each for each in drawn.nodes() if given & {each, drawn.name(each)})
        if facts
        else found.listed[:_MOST],
        evidence=frozenset(facts),
        answers=frozenset(results) - given,
    )


def _cut(picture: Picture) -> Picture:
    """Return a picture of as many facts as can be read; its caption has their number."""
    facts = sorted(picture.facts, key=lambda fact: fact not in picture.evidence)
    if len(facts) <= _MOST:
        return picture
    told = filter(None, (picture.caption, f"{_MOST} of {len(facts):,} facts are drawn"))
    return replace(picture, facts=tuple(facts[:_MOST]), caption=" · ".join(told))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


async def _of_entities(graph: "KnowledgeGraph", entities: Sequence[str], limit: int | None) -> Picture:
    """Return entities with their neighbours and, where they are several, the paths between them."""
    from kg_agents.evidence.values import Shown, valued

    most = limit if limit is not None else _ALONE if len(entities) == 1 else _AMONG
    shown, roots, near = Shown(), list[str](), list[Triple]()
    more: dict[tuple[str, str, bool], int] = {}
    if graph.graphs:
        # Only this asks all graphs.
        matches = await graph.identify(entities, limit=1)
        entities = [match.meant[0].id if match.meant else match.text for match in matches]
    for entity in entities:
        found = await graph.neighbors(entity, limit=max(most, 1), max_tokens=_TOKENS)
        root = found.shown.named.get(entity, entity)
        facts = [*found.triples, *map(valued, found.values)][:most]
        more |= _left_out(root, facts, found.totals) if most else {}
        ends = {end for fact in facts for end in fact}
        near += [*facts, *(fact for fact in found.held if fact[0] in ends)]
        shown = shown.joined(found.shown)
        roots.append(root)
    pairs = combinations(roots, 2) if len(roots) <= _PAIRS else pairwise(roots)
    linked: list[Triple] = []
    for source, target in pairs:
        found = await graph.paths(source, target, limit=_PATHS, max_tokens=_TOKENS)
        shown = shown.joined(found.shown)
        linked += found.triples
    drawn = shown.labels.picture(tuple(dict.fromkeys((*linked, *near))))
    return replace(
        drawn,
        title=_listed(list(map(drawn.name, roots))),
        roots=tuple(dict.fromkeys(roots)),
        evidence=frozenset(linked),
        more=more,
        both_sides=len(roots) == 1,
    )


def _left_out(
    root: str, facts: Iterable[Triple], totals: Mapping[tuple[str, bool], int]
) -> dict[tuple[str, str, bool], int]:
    """Return how many facts of an entity are not drawn, by relation; those of relations not drawn at all as one."""
    drawn = Counter((relation, head != root) for head, relation, _ in facts)
    more = {(root, *key): count - drawn[key] for key, count in totals.items() if 0 < drawn[key] < count}
    others = sum(count for key, count in totals.items() if key not in drawn)
    return {**more, (root, "", False): others} if others else more


async def _with_classes(graph: "KnowledgeGraph", picture: Picture) -> Picture:
    """Return a picture whose nodes are coloured by class, without the facts that state these classes."""
    from kg_agents.evidence.values import split_graph

    nodes = [each for each in picture.nodes() if not each.startswith(('"', "_:"))]
    ids, classes, labels = dict[str, str](), dict[str, str](), dict(picture.labels)
    for match in await graph.identify(nodes, limit=1):
        known = next((each for each in match.candidates if each.id == match.text), None)
        if known is not None and known.types:
            named = known.types.partition(", ")[0]
            label, _, short = named.rpartition(" (")
            classes[known.id], ids[known.id] = label or named, short.removesuffix(")")
            if known.id not in labels:
                # A class says more about a node without a name than its id.
                labels[known.id] = classes[known.id]
    kept = tuple(
        fact for fact in picture.facts if ids.get(fact[0]) != split_graph(fact[2])[0] or fact in picture.evidence
    )
    return replace(picture, facts=kept, classes=classes, labels=labels)
