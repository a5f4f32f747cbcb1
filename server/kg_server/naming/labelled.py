r"""`label (id)`, the form in which answers print things: where the id is in a text, and whether the label is its name.

Every tool reads the text for an entity, class or relation in this order:

1. all of it as an id: `Q1490`, `dbr:Mercury_(planet)`;
2. as a label with the id that the graph calls so: `Tokyo (Q1490)`;
3. all of it as a name, so that a label may itself end in parentheses or brackets: `Mercury (planet)`;
4. as an id in quotation marks or before brackets, or, where the graph is at hand, as an entity's label with the local
   part of its IRI: `"Q1490"`, `P36 [wikidata]`, `Germany (DEU)`;
5. as a label with an id that is called otherwise, `Goethe (Q937)`: the id counts, and the answer reports it.

So 2, 4 and 5 hold only where the graph has the id, and a text that holds several ids is never read by one of them in 5.
What answers add is left out: the graph behind a fact (`capital (P36) [wikidata]`), what a node without a label holds,
escapes, and that a label was cut (`A long na… (Q5)`). So are quotation marks around the text or the label, as in
`"Goethe, Johann" (Q5879)`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.folding import fold
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import read_back
from kg_server.naming.refusals import id_of

_MAX_SPLITS: Final = 8
_QUOTED: Final = re.compile(r"""(["'])(.*)\1(\s+\(.+\))?""", re.DOTALL)
_IN_PARENTHESES: Final = re.compile(r"\(((?:[^\s()]|\([^\s()]*\))+)\)")
_POSITIONS: Final[Sequence[Position]] = ("entity", "relation")
_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class WithId:
    """A text as a label with an id; the label is empty where there is none."""

    label: str
    id: str

    def calls(self, node: Node, label: str | None) -> bool:
        """Return whether this is how answers show a node that has a label, or none.

        The label of a blank node may also be an expression that its facts make up.
        """
        name = label if label is not None else node.local_part if isinstance(node, Iri) else None
        return not self.label or name is None or is_shown_as(read_back(self.label), name)

    def holds_more(self, graph: KGAdapter) -> bool:
        """Return whether the label holds further ids, so that the text is a list or a fact and no single thing."""
        ids = _IN_PARENTHESES.findall(self.label)
        return any(id_of(graph, each, position) is not None for each in ids for position in _POSITIONS)


def is_shown_as(written: str, label: str) -> bool:
    """Return whether a text is a label but for case and accents, or the beginning of one that was cut."""
    text, real = written.strip(), fold(label)
    return fold(text) == real or (text.endswith(_CUT) and real.startswith(fold(text.removesuffix(_CUT))))


def with_ids(text: str) -> Sequence[WithId]:
    """Return how a text can be read as a label with an id, the likeliest first."""
    return list(dict.fromkeys(_readings(text.strip())))


@dataclass(frozen=True, slots=True)
class Labelled:
    """What a text means that has an id of the graph behind a label.

    Args:
        written: The label and the id.
        nodes: What has the id: of several graphs several may.
        is_called_so: Whether the label is what answers show with the id.
    """

    written: WithId
    nodes: tuple[Node, ...]
    is_called_so: bool

    @property
    def is_printed(self) -> bool:
        """Whether answers print the id behind this label, so that no name comes before it."""
        return self.is_called_so and bool(self.written.label)

    @property
    def relations(self) -> tuple[Iri, ...]:
        """The nodes that may be relations."""
        return tuple(node for node in self.nodes if isinstance(node, Iri))


async def labelled(
    graph: KGAdapter, written: Mapping[str, Sequence[WithId]], known: Mapping[str, tuple[Node, ...]]
) -> Mapping[str, Labelled]:
    """Return what texts mean that have an id behind a label, from how they can be read and what known ids stand for."""
    nodes = dict.fromkeys(node for of in written.values() for each in of for node in known.get(each.id, ()))
    labels: Mapping[Node, str] = await graph.labels(list(nodes)) if nodes else {}
    found: dict[str, Labelled] = {}
    for text, readings in written.items():
        for each in readings:
            all_of_id = known.get(each.id, ())
            called = tuple(node for node in all_of_id if each.calls(node, labels.get(node)))
            if called or (all_of_id and text not in found):
                found[text] = Labelled(each, called or all_of_id, bool(called))
            if called:
                break
    return found


def _readings(text: str, deepest: int = 3) -> Iterator[WithId]:
    """Yield the readings of a text, with quotation marks or square brackets around it up to so many times."""
    if not deepest:
        return
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        _, inside, rest = quoted.groups()
        if not rest:
            yield WithId("", inside)
        yield from _readings(f"{inside}{rest or ''}", deepest - 1)
    end = len(text) - 1
    for _ in range(_MAX_SPLITS if text.endswith(")") else 0):
        end = text.rfind(" (", 0, end)
        if end <= 0:
            break
        yield WithId(text[:end].strip(), text[end + 2 : -1])
    if text.endswith("]") and (start := text.find(" [")) > 0:
        yield WithId("", text[:start])
        yield from _readings(text[: text.rfind(" [")], deepest - 1)
