"""From lines as tools print them to the triples that they state, each as three texts."""

import re
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from kg_server.names import in_graph

Written: TypeAlias = Sequence[str] | str
"""A triple as it was written: `[head, relation, tail]`, or a line."""

MAX_LINE: Final = 9_000
"""How many characters a line may have."""

MAX_STATED: Final = 100
"""How many triples one line may state."""

_BAR: Final = re.compile(r"\\.|(\|)", re.DOTALL)
_ID: Final = r"\([^\s()]{1,400}\)"
_MARK: Final = r"(?: \[[a-z0-9][a-z0-9-]{0,15}\])?"
"""The graph of a fact, behind its relation."""
_SOME_MARK: Final = re.compile(r" \[([a-z0-9][a-z0-9-]{0,15})\]$")
_NAME_AND_ID: Final = re.compile(rf"(.+) {_ID}({_MARK})")
_COUNTED: Final = re.compile(r"\d[\d,]*: (.+)")
_LISTED: Final = re.compile(r'(?:"(?:\\.|[^"\\])*"|,(?! )|[^,"])+')
"""A name in a list; one that holds a comma is in quotation marks."""
_HELD: Final = re.compile(r"([A-Za-z_][\w.-]{0,50}:[^\s:]{1,400}) \[.+\]")
"""A node without a label, and what it holds together."""
_OWN_DASH: Final = re.compile(rf"[(:/#]-[^\s()]{{0,400}}\){_MARK}$")
"""The id of a relation whose own name begins with `-`."""
_ARROW: Final = re.compile(r" (<?-)\[(.{1,400}?)\](->?) ")
_ALSO: Final = re.compile(r", also over [^|\s,]+(?:, [^|\s,]+)*\.$")
"""What follows a fact that several relations of one name state."""
_TURNED: Final = re.compile(r", stored only (?:in the other direction|the other way, as [^|]{1,400})\.$")
"""What follows the only fact of an answer where it is stored over the inverse of the relation that was asked for."""
_IN: Final = re.compile(r"In ([a-z0-9][a-z0-9-]{0,15}):")
"""What stands above the lines of one graph in an answer of several."""
_ELSEWHERE: Final = re.compile(r"(?:^| \| )also in [a-z0-9-]{1,16} as [^|]+$")
"""Which other graphs have a thing."""
_BECAUSE: Final = "because "
"""What a line of evidence of Compose begins with."""
_STATES_NOTHING: Final = re.compile(r"(?:Exact|Close): .*|also \| .*\d|Also around .* \| .*|\s*· .*")
"""Lines that only count, report how a name was read, or show details of the fact above."""

# First lines of answers. Those about one entity name the relation too, where the lines below leave it out.
_MAX_HEADING: Final = 1_000
_ABOUT_ONE: Final = re.compile(
    r"(?:at least )?[\d,]+(?: outgoing|(?P<side> incoming))? "
    r"(?:(?:triple|fact|value)s?\b"
    rf"|(?P<relation>.*?(?:{_ID}|[^\s():]{{1,400}}:[^\s():;,]{{1,400}}){_MARK})(?:[:;,]| \()).*"
)
"""What follows `has`."""
_ABOUT_TWO: Final = re.compile(r"(?:at least )?[\d,]+ paths? links? (.+?\)|\S+) and (.+?\)|\S+) within \d.*")
_PART: Final = re.compile(
    r"(?:part \d+ \| .+ \| )?[\d,]+ (?:node|row|value)s?"
    rf"(?: by ((?:.+? {_ID}|[^\s()]+?){_MARK}))?(?:\. .*|\.?)|part \d+ \| .+"
)
"""What heads the results of an expression, and the relation that its values or rows are over."""
_OF_NODE: Final = re.compile(rf"(.+? {_ID}|\S+): (.+)")


def triples_in(written: Sequence[Written], *, joins: bool = True) -> list[Written]:
    """Return one item for each triple that lines state as tools print them; anything else stays as it was written.

    A path states one triple for each arrow, evidence of Compose one for each relation, and `-` before a relation turns
    the triple around. What a node without a label holds, in brackets, is left out. Lines that leave out their entities
    or relation are read below the line of their answer that names them. A name without its id means what a line above
    shows with that name and an id. Three texts of which none is such a line are one triple without its list, where
    `joins` is true.
    """
    answer = _Answer()
    found: list[Written] = []
    for each, following in zip(written, (*written[1:], ""), strict=False):
        if isinstance(each, str) and len(each) <= MAX_LINE:
            below = len(columns_of(following)) if isinstance(following, str) else 3
            found.extend(answer.read(each, below))
        else:
            answer = _Answer()
            found.append(each)
    flat = [each for each in found if isinstance(each, str)]
    return [flat] if joins and len(flat) == len(found) == len(written) == 3 else found


def columns_of(line: str) -> list[str]:
    """Return the columns of a line, as results show it: a bar behind a backslash is text."""
    bars = [found.start() for found in _BAR.finditer(line) if found[1]]
    ends = zip([0, *(bar + 1 for bar in bars)], [*bars, len(line)], strict=True)
    return [line[start:end].strip() for start, end in ends]


def unmarked(relation: str, graphs: Collection[str]) -> tuple[str, str]:
    """Return a relation without its mark, and the graph that this names; "" where it names none of the graphs."""
    text = relation.strip()
    graph = next((name for name in graphs if text.lower().endswith(in_graph(name.lower()))), "")
    return (text[: -len(in_graph(graph))], graph) if graph else (relation, "")


def marked_by(relation: str) -> str:
    """Return the name behind a relation that has the look of a graph's, in brackets; "" where there is none."""
    found = _SOME_MARK.search(relation.strip())
    return "" if found is None else found[1]


class _Answer:
    """What the lines of an answer leave out since one above named it."""

    def __init__(self) -> None:
        self._heads: list[str] = []
        self._relation = ""
        self._feature = ""
        self._ids = dict[str, str]()
        self._graph = ""

    def read(self, line: str, below: int) -> Sequence[Written]:
        """Return the triples of a line; the line itself where it states none and none that follows explains it.

        Args:
            line: The line.
            below: How many columns the next line has.
        """
        line = _ELSEWHERE.sub("", _ALSO.sub("", _TURNED.sub(".", line)))
        if not line or _STATES_NOTHING.fullmatch(line) or self._is_heading(line, below):
            return ()
        # A sentence that ends with a fact has a full stop behind its id.
        columns = columns_of(line.strip().removesuffix(".") if line.rstrip().endswith(").") else line)
        if stated := _evidence(line) or (_path(columns[0]) if len(columns) == 1 else []):
            return stated
        values = _OF_NODE.fullmatch(line) if self._feature and len(columns) == 1 else None
        if values is not None:
            return [[values[1], self._feature, each] for each in _names(values[2]) if each != "none"]
        if self._heads and len(columns) < 3 and (self._relation or (len(columns) == 2 and columns[0])):
            self._relation = (columns[0] if len(columns) == 2 else "") or self._relation
            return self._between(self._heads, self._relation, columns[-1]) or [line]
        if len(columns) == 3 and columns[0] == "both" and len(self._heads) > 1:
            return self._between(self._heads, columns[1], columns[2]) or [line]
        self._heads, self._relation, self._feature = [], "", ""
        return (self._between(_names(columns[0]), *columns[1:]) or [line]) if len(columns) == 3 else [line]

    def _is_heading(self, line: str, below: int) -> bool:
        """Return whether a line names what those below it leave out, and keep that."""
        columns, start = columns_of(line), line[:_MAX_HEADING]
        head, has, rest = start.partition(" has ")
        one = _ABOUT_ONE.fullmatch(rest) if has and below < 3 and len(columns) == 1 else None
        two = _ABOUT_TWO.fullmatch(start) if len(columns) == 1 else None
        part = _PART.fullmatch(start)
        self._graph = self._graph if one is two is part is None else ""
        if (graph := _IN.fullmatch(line)) is not None:
            self._graph, self._heads, self._relation, self._ids = graph[1], [], "", {}
        elif one is not None:
            over = one["relation"] or ""
            self._heads, self._relation = [head], f"-{over}" if over and one["side"] else over
        elif two is not None:
            self._heads, self._relation = [two[1], two[2]], ""
        elif part is not None:
            self._heads, self._relation, self._feature = [], "", part[1] or ""
        elif (
            below == 2
            and not (self._heads and len(columns) <= 2)
            and _NAME_AND_ID.fullmatch(columns[0])
            and not (len(columns) > 1 and _NAME_AND_ID.fullmatch(columns[1]))
        ):
            # An entity that Retrieve found, with its description, above its card.
            self._heads, self._relation = [columns[0]], ""
        else:
            return False
        return True

    def _between(self, heads: Sequence[str], over: str, tail: str) -> list[list[str]]:
        """Return the triples between heads and a tail that may be a counted list; none where there are too many."""
        heads, tails = [*map(_bare, heads)], _names(_bare(tail))
        if len(heads) * len(tails) > MAX_STATED:
            return []
        named = [(_NAME_AND_ID.fullmatch(each), each) for each in (*heads, over, *tails)]
        shown = {found[1] + found[2]: each for found, each in named if found is not None}
        # An answer that repeats the id of a head leaves out none: what has no id there is a value.
        above = {} if any(each in heads and name in self._ids for name, each in shown.items()) else dict(self._ids)
        self._ids.update(shown)
        over = above.get(over, over) + in_graph(self._graph)
        return [_turned(above.get(head, head), over, above.get(end, end)) for head in heads for end in tails]


def _names(column: str) -> list[str]:
    """Return the names of a counted list, `2: Japan (Q17), …`, or the column itself."""
    counted = _COUNTED.fullmatch(column)
    names = [each.strip() for each in _LISTED.findall(counted[1])] if counted else [column]
    return [each for each in names if each not in {"", "…"}] or [column]


def _bare(column: str) -> str:
    """Return a node without what it holds."""
    held = _HELD.fullmatch(column)
    return column if held is None else held[1]


def _turned(head: str, relation: str, tail: str) -> list[str]:
    backwards = relation.startswith("-") and _OWN_DASH.search(relation) is None
    return [tail, relation[1:], head] if backwards else [head, relation, tail]


def _evidence(line: str) -> list[list[str]]:
    """Return the triples of evidence: `; ` goes on from the head before it, ` | ` from the end before it."""
    triples: list[list[str]] = []
    head = ""
    for part in line.removeprefix(_BECAUSE).split("; ") if line.startswith(_BECAUSE) else ():
        columns = columns_of(part)
        steps = columns if len(columns) % 2 else [head, *columns]
        steps = [each if place % 2 else _bare(each) for place, each in enumerate(steps)]
        if len(steps) < 3 or not all(steps):
            return []
        head = steps[0]
        triples += [_turned(*steps[place : place + 3]) for place in range(0, len(steps) - 2, 2)]
    return triples


def _path(line: str) -> list[list[str]]:
    """Return the triples of a path; none where a line is no path, or too long a one."""
    if line.count("-[") > MAX_STATED:
        return []
    pieces = _ARROW.split(line.removeprefix("… "))
    ends, arrows = [*map(_bare, pieces[::4])], zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True)
    steps: list[list[str]] = []
    for (start, relation, point), near, far in zip(arrows, ends, ends[1:], strict=False):
        if (start, point) not in {("-", "->"), ("<-", "-")}:
            return []
        mark = "" if point == "->" else "-"
        steps.append(_turned(near, f"{mark}{relation.removesuffix(', unverified')}", far))
    return steps
