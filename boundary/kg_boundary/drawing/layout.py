"""The places of nodes, relations and lines in a picture: layers from left to right, in which nothing overlaps.

A relation is a vertex between its ends, so that its label has room, and so that several facts of a node
over one relation are one line that leads to a block.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from kg_boundary.drawing.picture import (
    MOST_LABEL,
    MOST_RELATION,
    Picture,
    Triple,
    is_value,
    shown_label,
    width_of,
)

FONT: Final = 15.0
SMALL_FONT: Final = 12.5
PILL: Final = 30.0
LABEL: Final = 18.0
"""The sizes of fonts, and the heights of nodes and of relations, in pixels."""
DOT: Final = 17.0
PADDING: Final = 12.0
_GAP: Final = 6.0
_ROW: Final = 14.0
_LAYER: Final = 26.0
_LONE_BLOCK: Final = 640.0
_BLOCK: Final = 420.0
_SWEEPS: Final = 12
_DUMMY: Final = 8.0


@dataclass(slots=True)
class Vertex:
    """A part of the layout: a node, a block of nodes, a relation, or where a line passes a layer.

    Args:
        pills: The nodes in it, by key.
        label: The relation, if it is one.
        width: In pixels.
        height: In pixels.
        group: The facts that it stands for, if it is a relation.
        side: -1 to the left of where reading begins, else 1.
    """

    pills: tuple["Pill", ...] = ()
    label: str = ""
    width: float = 0.0
    height: float = _DUMMY
    group: "Sheaf | None" = None
    side: int = 1
    x: float = 0.0
    y: float = 0.0
    """The middle of its left side, in pixels."""
    layer: tuple[float, float] = (0.0, 0.0)
    """From where to where its layer reaches; lines within it are level, so that they touch nothing else."""

    @property
    def right(self) -> float:
        """Where its right side is."""
        return self.x + self.width


@dataclass(frozen=True, slots=True)
class Pill:
    """A node, a value, or how many more there are; `at` is its left upper corner within its vertex."""

    key: str
    end: str
    text: str
    width: float
    at: tuple[float, float] = (0.0, 0.0)


@dataclass(slots=True)
class Sheaf:
    """Facts of one node over one relation, in one direction.

    Args:
        near: The key of the node.
        relation: The relation, by id.
        incoming: Whether they lead to the node.
        evidence: Whether they stand out.
        doubtful: Whether nothing confirms them.
        far: The keys of their other ends.
        left: Whether those are to the left of the node.
    """

    near: str
    relation: str
    incoming: bool
    evidence: bool
    doubtful: bool
    left: bool
    far: dict[str, None] = field(default_factory=dict[str, None])


@dataclass(frozen=True, slots=True)
class Link:
    """A line: the points that it passes, from left to right, and where it has the head of an arrow."""

    points: tuple[tuple[float, float], ...]
    at_start: bool
    at_end: bool
    group: Sheaf


@dataclass(frozen=True, slots=True)
class Laid:
    """A picture with the places of its parts."""

    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    width: float
    height: float


_Seen: TypeAlias = tuple[str, str, bool, bool]


class _Graph:
    """The vertices of a picture and the edges between them, each from left to right.

    Args:
        picture: The picture.
    """

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.ends = {root: root for root in picture.roots}
        facts = [(*_keys(fact), fact) for fact in dict.fromkeys(picture.facts)]
        for head, tail, fact in facts:
            self.ends.setdefault(head, fact[0])
            self.ends.setdefault(tail, fact[2])
        self.levels = _levels(_near(facts), picture, self.ends)
        self.order = {key: place for place, key in enumerate(self.levels)}
        self.groups = self._grouped(facts)
        self.vertices: list[Vertex] = []
        self.edges: list[tuple[int, int, Sheaf, bool]] = []
        self._place_all()

    def _grouped(self, facts: Sequence[tuple[str, str, Triple]]) -> list[Sheaf]:
        picture, groups = self.picture, dict[tuple[str, str, bool, bool, bool, bool], Sheaf]()
        shared = Counter(each for head, tail, fact in facts for each in self._seen_from_both(head, tail, fact[1]))
        for head, tail, fact in facts:
            from_head, from_tail = self._seen_from_both(head, tail, fact[1])
            nearer = (abs(self.levels[head]), self.order[head]) <= (abs(self.levels[tail]), self.order[tail])
            gain = shared[from_head] - shared[from_tail]
            near, far = (head, tail) if gain > 0 or (gain == 0 and nearer) else (tail, head)
            left = self._rank(far) < self._rank(near)
            key = (near, fact[1], near != head, fact in picture.evidence, fact in picture.doubtful, left)
            groups.setdefault(key, Sheaf(*key)).far[far] = None
        for (node, relation, incoming), count in picture.more.items():
            if node in self.ends and count > 0:
                left = incoming and picture.both_sides and self.levels[node] <= 0
                key = (node, relation, incoming, False, False, left)
                more = f"\n{node}\n{relation}\n{incoming}"
                self.ends[more] = f"\n{count:,} more"
                groups.setdefault(key, Sheaf(*key)).far[more] = None
        return list(groups.values())

    def _seen_from_both(self, head: str, tail: str, relation: str) -> tuple[_Seen, _Seen]:
        """Return what a fact has in common with others that can be drawn as one line: from its head, and its tail."""
        forward = self._rank(head) < self._rank(tail)
        return (head, relation, True, forward), (tail, relation, False, not forward)

    def _rank(self, key: str) -> tuple[int, int]:
        return self.levels[key], self.order[key]

    def _place_all(self) -> None:
        times = Counter[str]()
        for group in self.groups:
            times.update((group.near, group.near, *group.far))
        kept = {key for key, count in times.items() if count > 1} | set(self.picture.roots)
        at: dict[str, int] = {}
        lone = [key for key in self.ends if not times[key]]
        if lone:
            self._add(self._block(lone, _LONE_BLOCK, 1))
        for key in self.ends:
            if key in kept and times[key]:
                at[key] = self._add(self._block([key], 0.0, -1 if self.levels.get(key, 0) < 0 else 1))
        single = len(self.groups) == 1
        for group in self.groups:
            side = -1 if group.left else 1
            text = shown_label(self.picture.relation_name(group.relation), MOST_RELATION) if group.relation else ""
            room = (width_of(text, SMALL_FONT) + 6, LABEL) if text else (0.0, _DUMMY)
            label = self._add(Vertex((), text, *room, group, side))
            self._join(at[group.near], label, group, near=True)
            leaves = [far for far in group.far if far not in at]
            for far in group.far:
                if far in at:
                    self._join(at[far], label, group, near=False)
            if leaves:
                block = self._add(self._block(leaves, _LONE_BLOCK if single else _BLOCK, side))
                self._join(block, label, group, near=False)

    def _join(self, end: int, label: int, group: Sheaf, *, near: bool) -> None:
        """Join one end of a group with its label; the head of the arrow is at the tails of the facts."""
        arrow = bool(group.relation) and group.incoming is near
        pair = (end, label) if near != group.left else (label, end)
        self.edges.append((*pair, group, arrow))

    def _add(self, vertex: Vertex) -> int:
        self.vertices.append(vertex)
        return len(self.vertices) - 1

    def _block(self, keys: Sequence[str], most: float, side: int) -> Vertex:
        """Return nodes as a block, in rows of at most a width."""
        pills, inset = [self._pill(key) for key in keys], _GAP if len(keys) > 1 else 0.0
        area = sum((pill.width + _GAP) * (PILL + _GAP) for pill in pills)
        most = max(min(most, (area * 6) ** 0.5), *(pill.width for pill in pills), 0.0)
        x, y, widest, placed = 0.0, 0.0, 0.0, list[Pill]()
        for pill in pills:
            if x and x + pill.width > most:
                x, y = 0.0, y + PILL + _GAP
            placed.append(replace(pill, at=(x + inset, y + inset)))
            x += pill.width + _GAP
            widest = max(widest, x - _GAP)
        return Vertex(tuple(placed), "", widest + 2 * inset, y + PILL + 2 * inset, None, side)

    def _pill(self, key: str) -> Pill:
        end = self.ends[key]
        text = shown_label(end[1:] if end.startswith("\n") else self.picture.name(end), MOST_LABEL)
        bold = end in self.picture.roots or end in self.picture.answers
        dot = DOT if end in self.picture.classes else 0.0
        return Pill(key, end, text, width_of(text, FONT, bold=bold) + 2 * PADDING + dot)


def _keys(fact: Triple) -> tuple[str, str]:
    """Return the keys of a fact's ends: values, and what a node has to itself, belong to one fact each."""
    head, _, tail = fact
    return head, "\n".join(fact) if is_value(tail) or tail == head else tail


_Near: TypeAlias = Mapping[str, Sequence[tuple[str, bool]]]
"""The neighbours of each node, and whether a fact leads from them to it."""


def _near(facts: Iterable[tuple[str, str, Triple]]) -> _Near:
    near: defaultdict[str, list[tuple[str, bool]]] = defaultdict(list)
    for head, tail, _ in facts:
        near[head].append((tail, False))
        near[tail].append((head, True))
    return near


def _levels(near: _Near, picture: Picture, ends: Mapping[str, str]) -> dict[str, int]:
    """Return how far each node is from where reading begins, in the order of discovery; below 0 is to the left.

    Reading begins at the first root and ends at the others; without roots, it begins far from what is the answer.
    """
    roots = picture.roots
    levels: dict[str, int] = {}
    for start in (*roots, *(ends if roots else _farthest_first(near, picture, ends))):
        if start in levels:
            continue
        # A root stands behind all that leads to it from the roots before.
        levels[start] = max((levels[other] + 1 for other, _ in near.get(start, ()) if other in levels), default=0)
        line = [start]
        for key in line:
            level = levels[key]
            for other, incoming in near.get(key, ()):
                if other not in levels and other not in roots:
                    left = level < 0 or (level == 0 and incoming and picture.both_sides)
                    levels[other] = level - 1 if left else level + 1
                    line.append(other)
    return levels


def _farthest_first(near: _Near, picture: Picture, ends: Mapping[str, str]) -> Sequence[str]:
    """Return the nodes that are farthest from answers first; of such as are equally far, in their order."""
    line = [key for key, end in ends.items() if end in picture.answers]
    away = dict.fromkeys(line, 0)
    for key in line:
        for other, _ in near.get(key, ()):
            if other not in away:
                away[other] = away[key] + 1
                line.append(other)
    return sorted(ends, key=lambda key: -away.get(key, 0))


_Places: TypeAlias = dict[int, tuple[float, float]]
_Edges: TypeAlias = Sequence[tuple[int, int]]


def _components(edges: _Edges) -> list[_Edges]:
    """Return the edges of each connected part, in the order in which the parts begin."""
    part_of: dict[int, set[int]] = {}
    for left, right in edges:
        both = part_of.get(left, {left}) | part_of.get(right, {right})
        part_of.update(dict.fromkeys(both, both))
    firsts = dict.fromkeys(min(part_of[left]) for left, _ in edges)
    return [[edge for edge in edges if edge[0] in part_of[first]] for first in sorted(firsts)]


def _part(edges: _Edges) -> tuple[_Places, _Edges]:
    """Return the places of the vertices of a connected part, and its edges; below 0 is where one passes a layer.

    The library numbers such places on from the number of vertices, so that each part has numbers from 0 on.
    """
    from fast_sugiyama import from_edges  # noqa: PLC0415 - an extra

    own = sorted({end for edge in edges for end in edge})
    numbers = {vertex: number for number, vertex in enumerate(own)}
    numbered = [(numbers[left], numbers[right]) for left, right in edges]
    ((found, _, _, routed),) = from_edges(numbered, vertex_spacing=100, dummy_vertices=True, dummy_size=0.5)

    def vertex(number: int | str) -> int:
        return own[int(number)] if int(number) < len(own) else -int(number)

    places = {vertex(number): (float(x), float(y)) for number, (x, y) in found}
    return dict(sorted(places.items())), sorted((vertex(left), vertex(right)) for left, right in routed or numbered)


def laid_out(picture: Picture) -> Laid:
    """Return the places of the parts of a picture.

    Raises:
        ImportError: The library for layouts is not installed.
    """
    graph = _Graph(picture)
    edges = {(left, right): (group, arrow) for left, right, group, arrow in graph.edges}
    vertices, links = graph.vertices, list[Link]()
    joined = {end for edge in edges for end in edge}
    parts = [_part(joined_by) for joined_by in _components(list(edges))]
    parts += [({lone: (0.0, 0.0)}, []) for lone in range(len(vertices)) if lone not in joined]
    width, top, kept = 0.0, 0.0, list[Vertex]()
    for places, routed in parts:
        part = {vertex: vertices[vertex] if vertex >= 0 else Vertex() for vertex in places}
        layers = _layers(places)
        right = _across(layers, part)
        top = _down(layers, part, routed, top) + _ROW
        links += _linked(layers, part, edges, routed)
        width = max(width, right)
        kept += [vertex for vertex in part.values() if vertex.pills or vertex.label]
    return Laid(tuple(kept), tuple(links), width, max(top - _ROW, 0.0))


def _layers(places: _Places) -> list[list[int]]:
    """Return vertices by layer from left to right, each from top to bottom, with what came first above."""
    heights = sorted({y for _, y in places.values()}, reverse=True)
    rows = {y: [vertex for vertex in places if places[vertex][1] == y] for y in heights}
    return [sorted(rows[y], key=lambda vertex: (-places[vertex][0], vertex)) for y in heights]


def _across(layers: Sequence[Sequence[int]], part: Mapping[int, Vertex]) -> float:
    """Place layers beside each other, and return where the last one ends."""
    x = gap = 0.0
    for layer in layers:
        column = [part[vertex] for vertex in layer]
        width = max(each.width for each in column)
        gap = _LAYER + min(len(column) * 2, _LAYER)
        for each in column:
            if not (each.pills or each.group):
                each.width = width
            free = width - each.width
            each.layer = (x, x + width)
            each.x = x + (free / 2 if each.label else free if each.side < 0 else 0.0)
        x += width + gap
    return x - gap


def _down(
    layers: Sequence[Sequence[int]], part: Mapping[int, Vertex], edges: Iterable[tuple[int, int]], top: float
) -> float:
    """Place the vertices of layers below each other, each near those that it is joined to; return where they end."""
    near: dict[int, list[int]] = {vertex: [] for vertex in part}
    for left, right in edges:
        if left in near and right in near:
            near[left].append(right)
            near[right].append(left)
    for layer in layers:
        _separate([part[vertex] for vertex in layer], [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            wanted = [
                sum(part[other].y for other in near[vertex]) / len(near[vertex]) if near[vertex] else part[vertex].y
                for vertex in layer
            ]
            _separate([part[vertex] for vertex in layer], wanted)
    highest = min(each.y - each.height / 2 for each in part.values())
    for each in part.values():
        each.y = round(each.y - highest + top, 2)
    return max(each.y + each.height / 2 for each in part.values())


def _separate(column: Sequence[Vertex], wanted: Sequence[float]) -> None:
    """Place a column in its order as near to what is wanted as its heights allow: those that collide move together."""
    offsets, offset = list[float](), 0.0
    for before, each in zip((None, *column), column, strict=False):
        offset += 0.0 if before is None else (before.height + each.height) / 2 + _ROW
        offsets.append(offset)
    runs: list[tuple[float, int]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        mean, count = want - offset, 1
        while runs and runs[-1][0] > mean:
            other, many = runs.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        runs.append((mean, count))
    starts = [mean for mean, count in runs for _ in range(count)]
    for each, start, offset in zip(column, starts, offsets, strict=True):
        each.y = start + offset


def _linked(
    layers: Sequence[Sequence[int]],
    part: Mapping[int, Vertex],
    edges: Mapping[tuple[int, int], tuple[Sheaf, bool]],
    routed: Iterable[tuple[int, int]],
) -> list[Link]:
    """Return the lines between the vertices of a part, each through the layers that it passes."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    for left, right in routed:
        after[left].append(right)
    passed = {vertex for layer in layers for vertex in layer if not (part[vertex].pills or part[vertex].label)}
    links: list[Link] = []
    for left in (vertex for layer in layers for vertex in layer if vertex not in passed or part[vertex].group):
        for following in after[left]:
            points, right = [(part[left].right, part[left].y), (part[left].layer[1], part[left].y)], following
            while right in passed and part[right].group is None:
                points += [(part[right].x, part[right].y), (part[right].right, part[right].y)]
                right = after[right][0]
            group, arrow = edges[left, right]
            points += [(part[right].layer[0], part[right].y), (part[right].x, part[right].y)]
            from_label = part[left].group is not None
            links.append(Link(tuple(points), arrow and not from_label, arrow and from_label, group))
    return links
