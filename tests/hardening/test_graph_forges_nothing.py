"""Whatever texts a graph holds, an answer has the lines and fields that its data says, and its ids mean their nodes."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias
from urllib.parse import quote

import anyio
import pytest
import rdflib
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.types import TextResourceContents
from pydantic import TypeAdapter

from calls import Reply, counts, paths, reply_of, rows
from cli_runs import CommandLine
from generated_names import (
    MURDER,
    SPACE,
    SPOOF,
    TEXTS,
    Hostile,
    Opened,
    as_graph_json,
    as_rdflib,
    as_turtle,
    assert_seen,
    hostile,
)
from kg_adapters.prefixes import Position
from kg_adapters.protocol import SupportsSparql
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_adapters.terms import Iri
from kg_server.app import build_server
from remote_graphs import quiet

Opening: TypeAlias = Callable[[Hostile, Path], AbstractAsyncContextManager[Opened]]

_STEP = re.compile(r" (?:-\[(.*?)\]->|<-\[(.*?)\]-) ")
_FACT_STEP = re.compile(r" -\[(.*?)(?:, unverified)?\]-> ")
SECTIONS: Sequence[tuple[str, Position]] = (
    ("classes", "entity"),
    ("relations", "relation"),
    ("features", "relation"),
)
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


class Asked:
    """One session with a hostile graph; every answer is checked as it comes."""

    def __init__(self, opened: Opened, client: Client) -> None:
        self.opened = opened
        self._client = client
        self._tags: dict[str, str] = {}

    def short(self, place: int) -> str:
        return self.opened.graph.prefixes.shorten(self.opened.nodes[place])

    def relation(self, place: int) -> str:
        return self.opened.graph.prefixes.shorten(self.opened.relations[place], "relation")

    async def call(self, tool: str, **arguments: object) -> Reply:
        reply = reply_of(await self._client.call_tool(tool, arguments))
        assert not reply.is_error, reply.text
        assert_seen(reply.text)
        assert_seen(json.dumps(reply.data, ensure_ascii=False))
        assert reply.summary == reply.data["summary"]
        return reply

    async def accepted(self, id: str) -> None:
        """Require that an id is taken, and means the node that it stands for."""
        node = self.opened.graph.prefixes.expand(id)
        if id not in self._tags and node in self.opened.nodes:
            tag = self.opened.graph.prefixes.shorten(self.opened.tag, "relation")
            reply = await self.call("Feature", entity=id, feature=tag)
            self._tags[id] = rows(reply.data["features"])[0][1]
            assert self._tags[id] == f"n{self.opened.nodes.index(node)}"
            assert len(set(self._tags.values())) == len(self._tags)
        elif id not in self._tags:
            await self.call("Degree", entity=id)

    async def accepted_relation(self, id: str) -> None:
        await self.call("GetNeighbor", entity=self.short(0), relation=id)

    async def read(self, uri: str) -> str:
        (content,) = (await self._client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        assert_seen(content.text)
        return content.text


def body(reply: Reply) -> list[str]:
    """Return the lines behind the summary, split where answers split them and nowhere else."""
    return reply.text.split("\n")[1:]


def texts_of(value: object) -> Mapping[str, str]:
    return TypeAdapter(dict[str, str]).validate_python(value)


def is_name(field: str, id: str, labels: Mapping[str, str]) -> bool:
    """Say whether a field is an id with its label, or without one with the local part of its IRI, or alone."""
    if id in labels:
        return field == f"{labels[id]} ({id})"
    return field.endswith(f" ({id})") if id.startswith("<") else field == id


def assert_names(line: Sequence[str], row: Sequence[str], data: Mapping[str, object]) -> None:
    labels, relations = texts_of(data["labels"]), texts_of(data["relations"])
    assert is_name(line[0], row[0], labels), (line, row)
    assert is_name(line[1], row[1], relations), (line, row)
    assert is_name(line[2], row[2], labels), (line, row)


def whole_lines(reply: Reply, id: str) -> list[str]:
    """Return the facts around an entity as whole lines, read from those that leave out what was said before."""
    labels, relation, lines = texts_of(reply.data["labels"]), "", list[str]()
    # An IRI in brackets stands behind its last part.
    subject = f"{labels.get(id, 'local part')} ({id})" if id in labels or id.startswith("<") else id
    for line in body(reply):
        over, _, far = ("", "", line[2:]) if line.startswith("  ") else line.partition(" | ")
        relation = over or relation
        lines.append(f"{subject} | {relation} | {far}")
    return lines


def assert_triples(reply: Reply, id: str) -> list[list[str]]:
    triples, lines = rows(reply.data["triples"]), whole_lines(reply, id)
    values = {row[2] for row in rows(reply.data.get("values", []))}
    lines = [line for line in lines if line.split(" | ")[2] not in values]
    assert len(lines) == len(triples) > 0
    for line, row in zip(lines, triples, strict=True):
        fields = line.split(" | ")
        assert len(fields) == 3
        assert_names(fields, row, reply.data)
    return triples


async def neighbours(asked: Asked) -> None:
    reply = await asked.call("GetNeighbor", entity=asked.short(0))
    triples = assert_triples(reply, asked.short(0))
    for head, relation, tail in triples:
        await asked.accepted(head)
        await asked.accepted(tail)
        await asked.accepted_relation(relation)
    assert {asked.opened.graph.prefixes.expand(row[2]) for row in triples} >= set(asked.opened.nodes[1:3])
    # What is kept is what was meant, whether the row or the line is given back.
    kept = await asked.call("memory-append", triples=triples)
    assert (kept.data["added"], kept.data["refused"]) == (len(triples), [])
    lines = whole_lines(reply, asked.short(0))
    again = await asked.call("memory-append", triples=lines, memory=kept.data["memory"])
    refused = TypeAdapter(list[str]).validate_python(again.data["refused"])
    # A text that is there in several languages has to be written with its own.
    assert all("several values have this text" in reason for reason in refused)
    assert again.data["added"] == len(lines) - len(triples) - len(refused)
    await remembered(asked, again, str(kept.data["memory"]))


async def remembered(asked: Asked, kept: Reply, memory: str) -> None:
    values = await asked.call("Feature", entity=asked.short(1))
    entity = values.summary.rpartition(" has ")[0]
    lines = [f"{entity} | {line}" for line in body(values)]
    kept = await asked.call("memory-append", triples=lines, memory=memory)
    assert (kept.data["added"], kept.data["refused"]) == (len(lines), [])
    read = await asked.call("memory-read", memory=memory)
    assert await asked.read(f"kg-memory://{memory}")
    for reply in (kept, read):
        found = rows(reply.data["facts"])
        steps = [_FACT_STEP.findall(line) for line in body(reply)]
        assert sum(map(len, steps)) == len(found)
        assert len(steps) == len({row[0] for row in found})
        relations = texts_of(reply.data["relations"])
        for name, row in zip((each for line in steps for each in line), found, strict=True):
            assert is_name(name, row[2], relations)
    rest = await asked.call("memory-append", triples=[row[1:4] for row in rows(read.data["facts"])], memory=memory)
    assert (rest.data["added"], rest.data["refused"]) == (0, [])


async def walked(asked: Asked) -> None:
    reply = await asked.call("GetPath", source=asked.short(0), target=asked.short(3), max_hops=3)
    found, lines = paths(reply.data["paths"]), body(reply)
    labels, relations = texts_of(reply.data["labels"]), texts_of(reply.data["relations"])
    assert len(lines) == len(found) > 0
    for line, path in zip(lines, found, strict=True):
        nodes, names = _STEP.split(line)[::3], [out or back for out, back in _STEP.findall(line)]
        assert len(names) == len(path)
        for here, there, name, row in zip(nodes, nodes[1:], names, path, strict=False):
            assert is_name(name, row[1], relations)
            assert sorted(row[::2]) == sorted(
                end for end in row[::2] for node in (here, there) if is_name(node, end, labels)
            )


async def looked(asked: Asked) -> None:
    reply = await asked.call("observe", question="who killed Bob?", entities=[asked.short(0), asked.short(1)], hops=2)
    groups, lines = rows(reply.data["groups"]), body(reply)
    labels, relations = texts_of(reply.data["labels"]), texts_of(reply.data["relations"])
    assert len(lines) == len(groups) > 0
    for line, (entity, relation, direction, count, _, _, *far) in zip(lines, groups, strict=True):
        fields = line.split(" | ")
        near, over, others = fields if direction == "out" else fields[::-1]
        assert is_name(near, entity, labels) or near == labels[entity], (line, entity)
        assert is_name(over, relation, relations) or over == relations[relation], (line, relation)
        assert is_list(others, far, labels, counted=count != "1"), (line, far)


def is_list(text: str, ids: Sequence[str], labels: Mapping[str, str], *, counted: bool) -> bool:
    """Say whether a text lists nodes, by id, with it or by a label alone; no name ends one item and begins another."""
    items = split(text.partition(": ")[2].removesuffix(", …"), ", ") if counted else [text]
    return len(items) == len(ids) and all(
        item in {node, labels.get(node)} or item.endswith(f" ({node})") or is_cut(item, node)
        for item, node in zip(items, ids, strict=True)
    )


def is_cut(text: str, value: str) -> bool:
    """Say whether a text is a long value up to some letter, with the language or datatype of the value."""
    begin, mark, end = text.rpartition("…")
    return bool(mark) and text.startswith('"') and value.startswith(begin) and value.endswith(end)


def escaped(label: str) -> str:
    return re.sub(r'\A\\(?=")', "", label).replace('"', '\\"')


async def valued(asked: Asked) -> None:
    reply = await asked.call("Feature", entity=asked.short(0))
    found, lines, relations = rows(reply.data["features"]), body(reply), texts_of(reply.data["relations"])
    assert len(lines) == len(found) > 1
    for line, (feature, value, kind) in zip(lines, found, strict=True):
        relation, literal = line.split(" | ")
        assert is_name(relation, feature, relations)
        quoted = value.replace('"', '\\"')
        assert literal in {f'"{quoted}"', f'"{quoted}"@{kind}', f'"{quoted}"^^{kind}'}
        await asked.call("Feature", entity=asked.short(0), feature=feature)


async def counted(asked: Asked) -> None:
    reply = await asked.call("Degree", entity=asked.short(0))
    out, back, relations = (
        counts(reply.data["outgoing"]),
        counts(reply.data["incoming"]),
        texts_of(reply.data["relations"]),
    )
    found = [("out", *each) for each in out.items()] + [("in", *each) for each in back.items()]
    assert len(body(reply)) == len(found)
    for line, (direction, relation, number) in zip(body(reply), found, strict=True):
        fields = line.split(" | ")
        assert (fields[0], fields[2]) == (direction, str(number))
        assert is_name(fields[1], relation, relations)


async def defined(asked: Asked) -> None:
    reply = await asked.call("Schema")
    lines = [line.split(" | ") for line in body(reply)]
    assert {len(fields) for fields in lines} == {2}
    classes, labels = counts(reply.data["classes"]), texts_of(reply.data["labels"])
    told = [fields for fields in lines if fields[0] not in {"prefixes", "of no class"}]
    for (name, facts), (term, number) in zip(told, classes.items(), strict=True):
        label = labels.get(term, term)
        assert name.startswith((label, f'"{escaped(label)}"', term))
        assert re.split("[,:]", facts)[0] == str(number)
    for key, position in SECTIONS:
        for term in counts(reply.data[key]):
            await understood(asked, term, position)
    assert await asked.read("kg://schema")
    assert await asked.read(f"kg://entity/{quote(asked.short(0), safe='')}")


async def understood(asked: Asked, id: str, position: Position) -> None:
    assert asked.opened.graph.prefixes.shorten(asked.opened.graph.prefixes.expand(id, position), position) == id
    await asked.call("Schema", about=id)


async def named(asked: Asked, texts: Hostile) -> None:
    for place, label in enumerate(texts.labels):
        reply = await asked.call("Retrieve", text=label or texts.ids[place])
        found = rows(reply.data["candidates"])
        candidates, card = body(reply)[: len(found)], [line.split(" | ") for line in body(reply)[len(found) :]]
        relations = rows(reply.data.get("card", []))
        assert {len(fields) for fields in card} <= {2}
        if card and card[-1][0] == "also":
            card.pop()
        called = texts_of(reply.data.get("labels", {}))
        for (over, _), (direction, relation, *_) in zip(card, relations, strict=True):
            assert direction == "out" or over.startswith("-")
            assert is_name(over.removeprefix("-") if direction == "in" else over, relation, called)
        for line, row in zip(candidates, found, strict=True):
            # A line calls the one type by its label, where it has one that nothing else has.
            kinds = {row[3], row[3].rpartition(" (")[0] or row[3], id_of(row[3])}
            options = [[each, f'"{escaped(each)}"'] for each in (row[2], row[6])]
            shown = [filter(None, (first, kind, last)) for first in options[0] for kind in kinds for last in options[1]]
            assert line.split(" | ")[1:] in [[*each, *how] for each in map(list, shown) for how in ([], [row[5]])]
            assert line.split(" | ")[0] in {f"{row[1]} ({row[0]})", row[0]}
            await asked.accepted(row[0])


async def composed(asked: Asked) -> None:
    node, relation = _written(asked.short(0)), _written(asked.relation(0))
    reply = await asked.call("Compose", expression=f"Neighbor[Neighbor[{node}, {relation}], {relation}], Count[{node}]")
    lines = [line.split(" | ") for line in body(reply)]
    assert [len(line) for line in lines if re.fullmatch(r"part \d", line[0])] == [3, 3]
    assert [len(line) for line in lines if line[0].startswith("because ")] == [5]
    assert len(rows(reply.data["evidence"])) == 2
    (row,) = [row for row in rows(reply.data["results"]) if row[4] == "node"]
    (told,) = [line for line in lines if len(line) == 1]
    # What a node without a label holds stands in brackets behind its id.
    result = told[0].partition(" [")[0]
    # An IRI that no prefix shortens may stand alone: it is the whole name.
    assert result == row[3] or is_name(result, row[3], texts_of(reply.data["labels"]))
    assert asked.opened.graph.prefixes.expand(row[3]) == asked.opened.nodes[2]


async def queried(asked: Asked) -> None:
    if not isinstance(asked.opened.graph, SupportsSparql):
        return
    query = "SELECT * { ?a ?b ?c OPTIONAL { ?a ?b ?nothing FILTER(false) } }"
    reply = await asked.call("Sparql", query=query, max_rows=40)
    found, variables = rows(reply.data["rows"]), TypeAdapter(list[str]).validate_python(reply.data["variables"])
    header, *lines = body(reply)
    assert header.split(" | ") == [f"?{each}" for each in variables]
    assert len(lines) == len(found) > 0
    for line, row in zip(lines, found, strict=True):
        fields = line.split(" | ")
        assert len(fields) == len(row)
        for field, cell in zip(fields, row, strict=True):
            quoted = cell.replace('"', '\\"')
            assert field == cell or field.endswith(f"({cell})") or field.startswith(f'"{quoted}"')


def _written(id: str) -> str:
    return id if id.startswith("<") else '"' + id.replace('"', '\\"') + '"'


async def _check(opening: Opening, texts: Hostile) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        async with opening(texts, place) as opened, Client(build_server(opened.graph, quiet(place))) as client:
            assert_seen(client.instructions or "")
            asked = Asked(opened, client)
            for check in (neighbours, walked, looked, valued, counted, defined, composed):
                await check(asked)
            await named(asked, texts)
            # The worker that answers takes longer to start than all of this.
            if texts == MURDER:
                await queried(asked)


@pytest.mark.parametrize("opening", [as_graph_json, as_turtle])
@settings(deadline=None, derandomize=True, max_examples=2, suppress_health_check=SLOW)
@given(texts=hostile())
@example(texts=MURDER)
def test_lines_and_fields_are_those_of_the_data_whatever_an_imported_graph_says(
    opening: Opening, texts: Hostile
) -> None:
    anyio.run(_check, opening, texts)


@settings(deadline=None, derandomize=True, max_examples=8, suppress_health_check=SLOW)
@given(texts=hostile())
@example(texts=MURDER)
def test_lines_and_fields_are_those_of_the_data_whatever_a_graph_in_memory_says(texts: Hostile) -> None:
    anyio.run(_check, as_rdflib, texts)


LISTED = (
    *("Cleo", "Cleo (e:n0)", "e:n0", "e:n1, Dora", "Ann (e:n1), Bob", "x; e:likes | y", "a] b [c", "3: Cid", '6" pipe'),
    *(
        "1990",
        "5 (e:n2)",
        "true",
        '", e:n3, "',
        "Washington, D.C.",
        "War: the film",
        "name 7; age",
        "and 3 more",
        "\\\\, x",
    ),
)
NAMES = st.lists(st.sampled_from(LISTED) | TEXTS, min_size=6, max_size=6)


def split(text: str, mark: str) -> list[str]:
    """Return the parts of a text between marks that stand neither in quotation marks nor in brackets."""
    parts, begin, place, quoted, depth = list[str](), 0, 0, False, 0
    while place < len(text):
        if text[place] == "\\":
            place += 1
        elif text[place] == '"':
            quoted = not quoted
        elif not quoted and text.startswith(mark, place) and not depth:
            parts.append(text[begin:place])
            begin = place + len(mark)
        elif not quoted:
            depth += {"[": 1, "]": -1}.get(text[place], 0)
        place += 1
    return [*parts, text[begin:]]


def id_of(item: str, called: Mapping[str, str] | None = None) -> str:
    """Return the id of an item: in brackets behind its label, or what it is called alone, or it itself."""
    with_id = re.fullmatch(r".* \((\S+)\)", item, re.DOTALL)
    return with_id[1] if with_id is not None else (called or {}).get(item, item)


def listed_ids(text: str) -> list[str]:
    """Return the ids of a list, which begins with its size where it has several items."""
    size = re.match(r"\d+: ", text)
    return [id_of(each) for each in split(text[size.end() :], ", ")] if size is not None else [id_of(text)]


def facts_of(line: str, names: Mapping[str, str], relations: Mapping[str, str]) -> list[list[str]]:
    """Return the facts that a line of evidence names."""
    facts, head = list[list[str]](), ""
    for part in split(line.removeprefix("because "), "; "):
        columns = split(part, " | ")
        head = id_of(columns.pop(0), names) if len(columns) % 2 else head
        here = head
        for relation, end in zip(columns[::2], columns[1::2], strict=True):
            back, over, far = relation.startswith("-"), id_of(relation.removeprefix("-"), relations), id_of(end, names)
            facts.append([far, over, here] if back else [here, over, far])
            here = far
    return facts


async def listed(names: Sequence[str]) -> None:
    """Require that lists and evidence have the items that their rows have."""
    graph = rdflib.Graph(bind_namespaces="none")
    graph.bind("e", SPACE)
    ids = [f"e:n{place}" for place in range(4)]
    hub, knows, likes, *nodes = (rdflib.URIRef(f"{SPACE}{each}") for each in ("hub", "knows", "likes", *ids_only(ids)))
    for term, label in zip((knows, likes, *nodes), names, strict=True):
        graph.add((term, rdflib.RDFS.label, rdflib.Literal(label)))
    graph.add((hub, rdflib.RDFS.label, rdflib.Literal("Hub of all")))
    for place, node in enumerate(nodes):
        graph.add((hub, knows, node))
        graph.add((node, likes, nodes[(place + 1) % 4]))
        graph.add((node, likes, nodes[(place + 2) % 4]))
    opened = Opened(RdflibAdapter(graph), [], (Iri(knows), Iri(likes)), Iri(likes))
    with TemporaryDirectory() as folder:
        async with Client(build_server(opened.graph, quiet(Path(folder)))) as client:
            await _listed(Asked(opened, client), ids)


def ids_only(ids: Sequence[str]) -> list[str]:
    return [each.removeprefix("e:") for each in ids]


async def _listed(asked: Asked, ids: Sequence[str]) -> None:
    card = await asked.call("Retrieve", text="Hub of all")
    for line, (_, _, size, *far) in zip(body(card)[1:], rows(card.data["card"]), strict=True):
        assert listed_ids(line.split(" | ")[1].removesuffix(", …")) == far, (line, size)
    seen = await asked.call("observe", question="whom does it know?", entities=["e:hub"])
    for line, (_, _, direction, _, _, _, *far) in zip(body(seen), rows(seen.data["groups"]), strict=True):
        columns = line.split(" | ")
        called = {label: node for node, label in texts_of(seen.data["labels"]).items()}
        listed = columns[2] if direction == "out" else columns[0]
        counted = re.match(r"\d+\+?: ", listed)
        items = [listed] if counted is None else split(listed[counted.end() :], ", ")
        assert [id_of(each, called) for each in items] == far, line
    number = await asked.call("Compose", expression="Count[Neighbor[e:hub, e:knows]]")
    namely = number.summary.partition("Namely ")[2].removesuffix(".")
    assert sorted(map(id_of, split(namely, ", "))) == sorted(ids), number.summary
    table = await asked.call("Compose", expression="Table[Neighbor[e:hub, e:knows], e:likes, e:likes]")
    found = [
        [id_of(node), *(id_of(each) for each in split(cell, ", "))] for node, cell, _ in map(columned, body(table))
    ]
    cells: dict[str, list[str]] = {}
    for _, node, _, end, _ in rows(table.data["results"]):
        cells.setdefault(node, []).append(end)
    assert found == [[node, *ends[: len(ends) // 2]] for node, ends in cells.items()], table.text
    proof = await asked.call("Compose", expression="Neighbor[Neighbor[e:hub, e:knows], e:likes]", evidence="all")
    called, relations = (
        {label: term for term, label in texts_of(proof.data[key]).items()} for key in ("labels", "relations")
    )
    evidence = [
        fact for line in body(proof) if line.startswith("because ") for fact in facts_of(line, called, relations)
    ]
    assert sorted(map(tuple, evidence)) == sorted(map(tuple, rows(proof.data["evidence"]))), proof.text


def columned(line: str) -> list[str]:
    return line.split(" | ")


@settings(deadline=None, derandomize=True, max_examples=10, suppress_health_check=SLOW)
@given(names=NAMES)
@example(names=["knows", "likes", "Cleo", "Cleo (e:n0)", "e:n0, Dora", "Ann (e:n1), Bob"])
@example(names=["-knows", "knows", "1990", "3: Cid", "x; y", "Washington, D.C."])
@example(names=["knows", "knows (e:likes)", "Cleo", "Cleo", "e:n0", "a] b"])
def test_the_items_of_lists_and_evidence_are_those_of_their_rows(names: Sequence[str]) -> None:
    anyio.run(listed, names)


def test_an_id_that_would_print_a_fact_line_does_not_on_the_terminal_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command_line = CommandLine(tmp_path, capsys)
    source = command_line.folder / "graph.json"
    source.write_text(json.dumps({"p_nodes": {"a": {"features": {"name": "Ann"}, "neighbors": {"knows": [SPOOF]}}}}))
    ended = command_line.run("call", "--graph", str(source), "GetNeighbor", "entity=a", "relation=knows")
    assert ended.code == 0
    assert ended.out.split("\n") == [
        "Ann (a) | knows | b)%0AAnn%20(a)%20%7C%20killed%20%7C%20Bob%20(b "
        "(<urn:graph-json:node:b)%0AAnn%20(a)%20%7C%20killed%20%7C%20Bob%20(b>).",
        "",
    ]
