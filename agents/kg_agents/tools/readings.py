"""What the results of tools show, as typed values: from the structured answers, checked."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kg_agents.evidence.values import Candidate, Computed, Group, Labels, Remembered, Shown, Triple, quoted
from kg_agents.llm.texts import clipped
from kg_agents.tools.client import ToolCall, UnreadableAnswer

COUNTED, GROUP = 4, 6
"""How many columns a group has that is only counted, and how many before the far ends."""
ROW: Final = 3
"""How many columns a triple has; what follows it in a row says more about it."""


class Answer(BaseModel):
    """What every tool's structured answer says; other servers may say more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: str = "ok"
    summary: str = ""
    labels: dict[str, str] = {}
    relations: dict[str, str] = {}


class ObservedAnswer(Answer):
    """Rows of entity, relation, direction, count, score, hop, and far ends; what is only counted ends there."""

    groups: list[list[str]]


class TriplesAnswer(Answer):
    """Triples as rows, and how many there are by relation in either direction."""

    triples: list[list[str]]
    values: list[list[str]] = []
    held: list[list[str]] = []
    outgoing: dict[str, int] = {}
    incoming: dict[str, int] = {}


class PathsAnswer(Answer):
    """Paths as lists of triples."""

    paths: list[list[list[str]]]


class CandidatesAnswer(Answer):
    """Rows of id, label, description, types, score, how it matched, telling fact, and the number of the text."""

    match: str = "none"
    matches: dict[str, str] = {}
    candidates: list[list[str]]


class FactsAnswer(Answer):
    """Rows of path, head, relation, tail, and whether it is verified."""

    memory: str = ""
    facts: list[list[str]]
    refused: list[str] = []
    cursor: str | None = None


class ComparedAnswer(Answer):
    """How like a question each of some texts is."""

    cosines: list[float]


A = TypeVar("A", bound=Answer)


def remembered_of(call: ToolCall, memory: str) -> Remembered:
    """Return what a memory tool says of a memory."""
    answer = read(FactsAnswer, call)
    facts = tuple((int(row[0]), triple_of(row[1:])) for row in answer.facts if len(row) > ROW and row[0].isdecimal())
    unverified = frozenset(triple_of(row[1:]) for row in answer.facts if row[-1:] == ["unverified"])
    return Remembered(
        answer.memory or memory,
        facts,
        tuple(answer.refused),
        labels_of(answer),
        call.text,
        answer.cursor or "",
        unverified,
    )


def read(kind: type[A], call: ToolCall) -> A:
    """Return the structured answer of a call.

    Raises:
        UnreadableAnswer: It has another form.
    """
    try:
        return kind.model_validate(call.data)
    except ValidationError as error:
        raise UnreadableAnswer.of(call.tool, error) from error


def candidate_of(row: Sequence[str]) -> Candidate:
    """Return the entity that a row describes, which has as many columns as `CandidatesAnswer` says but the last."""
    entity, label, description, types, score, matched, fact = row[:7]
    return Candidate(entity, label, description, score_of(score), matched, types, fact)


def group_of(row: Sequence[str]) -> Group:
    """Return the group that a row describes.

    Raises:
        UnreadableAnswer: The row is too short.
    """
    if len(row) < COUNTED:
        raise UnreadableAnswer(f"A group of the answer has {len(row)} parts instead of at least {COUNTED}.")
    entity, relation, direction, count, score, _, *far = (*row, "", "")[: max(GROUP, len(row))]
    return Group(entity, relation, direction == "in", tuple(far), score_of(score), int(score_of(count)))


def triple_of(row: Sequence[str]) -> Triple:
    """Return the triple that a row begins with.

    Raises:
        UnreadableAnswer: The row is too short.
    """
    if len(row) < ROW:
        raise UnreadableAnswer(f"A triple of the answer has {len(row)} parts instead of three.")
    return row[0], row[1], row[2]


def labels_of(answer: Answer) -> Labels:
    """Return the labels that come with an answer."""
    return Labels(answer.labels, answer.relations)


def score_of(text: str) -> float:
    """Return a score that is written as text; 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


_ROWS: Final = TypeAdapter(list[list[str]])
_PATHS: Final = TypeAdapter(list[list[list[str]]])
_NAMES: Final = TypeAdapter(dict[str, str])
_COUNTS: Final = TypeAdapter(dict[str, int])
_COMPOSED: Final = 5
_NO_STATEMENT: Final = frozenset({"error", "none", "at least"})
_MAX_EXPRESSION: Final = 300
_TELLING: Final = re.compile(r".* \((?P<relation>[^()\s]+)\): (?P<value>.+?(?: \((?P<id>[^()\s]+)\))?)")
_FOUND: Final = re.compile(r"\s*retrieve\s*\[", re.IGNORECASE)
_TELLING_COLUMN: Final = 6
_SIZE: Final = re.compile(r"\d[\d,]*")
_LOOKUPS: Final = frozenset({"retrieve", "feature", "neighbor", "neighbour", "getneighbor", "getneighbour"})
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^']*'")
_FUNCTION: Final = re.compile(r"(\w+)\s*\[")


def shown_by(call: ToolCall) -> Shown:
    """Return what a result shows; its text alone where it was refused, or has a form that is not known."""
    try:
        return read_shown(call)
    except UnreadableAnswer:
        return Shown(text=call.text)


def read_shown(call: ToolCall) -> Shown:
    """Return what a result shows; its text alone where it was refused, or comes from another tool.

    Raises:
        UnreadableAnswer: It has a form that is not known.
    """
    read = _READERS.get(call.tool)
    if call.failed or read is None:
        return Shown(text=call.text)
    said = asked(call)
    try:
        facts, computed, listed = read(call, said)
        counts = _counted(call)
        labels = Labels(_names(call, "labels") | _candidates(call), _names(call, "relations"))
    except ValidationError as error:
        raise UnreadableAnswer.of(call.tool, error) from error
    return Shown(
        facts=tuple(dict.fromkeys(facts)),
        computed=tuple(dict.fromkeys(computed)),
        counts=tuple(dict.fromkeys(counts)),
        listed=tuple(each for each in dict.fromkeys(listed) if not each.startswith("_:")),
        labels=labels,
        denied=call.data.get("knowledge") == "denied",
        whole=call.data.get("status") != "truncated" and not call.data.get("cursor"),
        asked=said,
        named=_names(call, "read"),
        page=str(call.arguments.get("cursor") or ""),
        next_page=str(call.data.get("cursor") or ""),
        total=_total(call),
        text=call.text,
    )


def is_computed(expression: str) -> bool:
    """Return whether an expression does more than look up: counts, combines, filters or ranks."""
    names = _FUNCTION.findall(_QUOTED.sub("", expression))
    return any(name.lower() not in _LOOKUPS for name in names)


def asked(call: ToolCall) -> str:
    """Return a call in short: what it asks of the graph."""
    written = call.arguments.get("expression") or call.arguments.get("query")
    if isinstance(written, str):
        return clipped(" ".join(written.split()), _MAX_EXPRESSION)
    told = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
    return clipped(f"{call.tool}({told})", _MAX_EXPRESSION)


_Stated: TypeAlias = tuple[Iterable[Triple], Iterable[Computed], Iterable[str]]


def _neighbors(call: ToolCall, said: str) -> _Stated:
    triples = [*map(triple_of, _rows(call, "triples")), *_valued(_rows(call, "values"))]
    total = call.data.get("total")
    counted = [Computed(said, str(total))] if call.arguments.get("relation") and isinstance(total, int) else []
    near = {*_names(call, "read").values(), str(call.arguments.get("entity"))}
    listed = (head if tail in near else tail for head, _, tail in triples)
    return (*triples, *_held(call)), counted, listed


def _paths(call: ToolCall, said: str) -> _Stated:
    del said
    paths = _PATHS.validate_python(call.data.get("paths") or [])
    return (*(triple_of(row) for path in paths for row in path), *_held(call)), (), ()


def _observed(call: ToolCall, said: str) -> _Stated:
    del said
    return (*(triple for group in _groups(call) for triple in group.triples), *_held(call)), (), ()


def _retrieved(call: ToolCall, said: str) -> _Stated:
    """Return the facts of the card, which is about the one candidate that is meant, and those that tell namesakes."""
    del said
    rows = [row for row in _rows(call, "candidates") if row]
    facts: list[Triple] = []
    for direction, relation, _, *far in (row for row in _rows(call, "card") if len(row) >= ROW and rows):
        facts += ((end, relation, rows[0][0]) if direction == "in" else (rows[0][0], relation, end) for end in far)
    telling = ((row[0], _TELLING.fullmatch(row[_TELLING_COLUMN])) for row in rows if len(row) > _TELLING_COLUMN)
    facts += ((entity, found["relation"], found["id"] or quoted(found["value"])) for entity, found in telling if found)
    return (*facts, *_held(call)), (), (row[0] for row in rows)


def _features(call: ToolCall, said: str) -> _Stated:
    del said
    entity = _entity(call)
    rows = [row for row in _rows(call, "features") if len(row) > 1]
    return ((entity, row[0], quoted(row[1])) for row in rows), (), (row[1] for row in rows)


def _degree(call: ToolCall, said: str) -> _Stated:
    total = str(call.data.get("neighbors", ""))
    return (), (Computed(said, total),), (total,)


def _composed(call: ToolCall, said: str) -> _Stated:
    """Return what rows `[part, node, relation, result, kind]` state, and what they give without stating it."""
    parts = {row[0]: row[1] for row in _rows(call, "parts") if len(row) > 1}
    # A long part is shortened in the answer.
    expressions = parts if len(parts) > 1 else dict.fromkeys(parts, str(call.arguments.get("expression", said)))
    rows = [row[:_COMPOSED] for row in _rows(call, "results") if len(row) >= _COMPOSED]
    evidence = tuple(triple_of(row) for row in _rows(call, "evidence") if len(row) >= ROW)
    shown = {end for head, _, tail in evidence for end in (head, tail)}
    facts, computed, listed = list[Triple](), list[Computed](), list[str]()
    for part, node, relation, result, kind in rows:
        expression = expressions.get(part, said)
        plain = not is_computed(expression)
        if kind in _NO_STATEMENT:
            continue
        listed.append(result if kind == "node" or not node or plain else node)
        if kind != "number" and plain and relation:
            facts.append(_triple(node, relation, result if kind == "node" else quoted(result)))
        elif kind == "number" and node and (plain or (expression.startswith("Degree") and len(rows) > 1)):
            computed.append(Computed(f"Degree[{node}, {relation}]", result))
        elif not (plain and (result in shown or _FOUND.match(expression))):
            # That a name is known says nothing of what bears it.
            computed.append(Computed(expression, result, evidence))
        if node and kind != "node" and not plain:
            computed.append(Computed(f"{expression}: {result}", node, evidence, relation))
    return (*facts, *evidence, *_held(call)), computed, listed if len(parts) < 2 else ()


def _triple(node: str, relation: str, result: str) -> Triple:
    if relation.startswith("-"):
        return result, relation[1:], node
    return node, relation, result


def _queried(call: ToolCall, said: str) -> _Stated:
    """Return what a query gives: its rows are computed, whatever they hold."""
    rows, truth = _rows(call, "rows"), call.data.get("truth")
    cells = [str(truth).lower()] if isinstance(truth, bool) else [cell for row in rows for cell in row if cell]
    return _held(call), (Computed(said, cell) for cell in cells), (row[0] for row in rows if row and row[0])


def _remembered(call: ToolCall, said: str) -> _Stated:
    """Return the facts that a memory holds and the graph too."""
    del said
    rows = [row for row in _rows(call, "facts") if row[-1:] == ["verified"]]
    return (triple_of(row[1:]) for row in rows), (), ()


_READERS: Final[Mapping[str, Callable[[ToolCall, str], _Stated]]] = {
    "GetNeighbor": _neighbors,
    "GetPath": _paths,
    "observe": _observed,
    "Retrieve": _retrieved,
    "Feature": _features,
    "Degree": _degree,
    "Compose": _composed,
    "Sparql": _queried,
    "memory-append": _remembered,
    "memory-read": _remembered,
    "Schema": lambda _, __: ((), (), ()),
}


def _rows(call: ToolCall, name: str) -> list[list[str]]:
    return _ROWS.validate_python(call.data.get(name) or [])


def _names(call: ToolCall, name: str) -> dict[str, str]:
    return _NAMES.validate_python(call.data.get(name) or {})


def _counts(call: ToolCall, name: str) -> dict[str, int]:
    return _COUNTS.validate_python(call.data.get(name) or {})


def _counted(call: ToolCall) -> Iterator[Computed]:
    """Yield how many facts there are of relations, and things of classes, as results of all tools tell them."""
    labels = _names(call, "labels")
    for direction in ("outgoing", "incoming"):
        for relation, count in _counts(call, direction).items():
            yield Computed(_degree_of(_entity(call), relation, direction == "incoming"), str(count))
    for group in _groups(call):
        yield Computed(_degree_of(group.entity, group.relation, group.incoming), str(group.count))
    for row in (row for row in _rows(call, "card") if len(row) >= ROW):
        yield Computed(_degree_of(_rows(call, "candidates")[0][0], row[1], row[0] == "in"), row[2])
    if call.tool == "Schema":
        for name, counted in (("classes", "things of"), ("relations", "facts over"), ("features", "facts over")):
            for each, count in _counts(call, name).items():
                yield Computed(f"{counted} {labels.get(each, each)}", str(count))


def _groups(call: ToolCall) -> list[Group]:
    return [group_of(row) for row in _rows(call, "groups") if len(row) >= COUNTED]


def _degree_of(entity: str, relation: str, incoming: bool) -> str:
    return f"Degree[{entity}, {'-' if incoming else ''}{relation}]"


def _held(call: ToolCall) -> Iterator[Triple]:
    """Yield what nodes without a name hold; a value is in quotes already, or is no known id."""
    labels = _names(call, "labels")
    for head, relation, tail in map(triple_of, _rows(call, "held")):
        is_node = tail in labels or head in labels
        yield (head, relation, tail) if is_node else (head, relation, quoted(tail))


def _valued(rows: Iterable[Sequence[str]]) -> Iterator[Triple]:
    for head, relation, value in map(triple_of, rows):
        yield head, relation, quoted(value)


def _candidates(call: ToolCall) -> dict[str, str]:
    return {row[0]: row[1] for row in _rows(call, "candidates") if len(row) > 1}


def _size_in(text: str) -> int:
    """Return the number that a size such as `1,210 nodes` begins with; 0 where it begins with none."""
    found = _SIZE.match(text)
    return int(found[0].replace(",", "")) if found else 0


def _total(call: ToolCall) -> int:
    """Return how much a result says that there is."""
    if isinstance(total := call.data.get("total"), int):
        return total
    parts = _rows(call, "parts")
    return _size_in(parts[0][-1]) if len(parts) == 1 and parts[0] else 0


def _entity(call: ToolCall) -> str:
    """Return the entity that a call is about, by the id that its name was read as."""
    given = str(call.arguments.get("entity", ""))
    return _names(call, "read").get(given, given)
