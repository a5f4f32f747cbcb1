"""Schema of an ontology: the tree of its classes, and the properties of each."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Final

from kg_adapters.folding import fold
from kg_adapters.models import GraphSchema
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import counted, in_quotes, listed, shown_within
from kg_server.answers.results import Answer, SchemaResult, fitted
from kg_server.concurrency import off_loop
from kg_server.names import MAX_VALUE, Names, names_of
from kg_server.ontology import Declared, Ontology, read_ontology

_MARKS: Final = ",;:>"
_MOST_IN_A_LINE: Final = (200, 8)
"""How many names a line lists, where all lines fit and where they do not."""
_DEEPEST: Final = 6
"""How many of the classes above one its way down shows."""
_WAYS: Final = 3
"""How many ways down to a class are shown."""
_RANGES: Final = 2
_LEGEND: Final = (
    "How to read a line: A > B (2), C: B and C are subclasses of A, with 2 classes below B; A | p→B: property p of A "
    "leads to B. Names work as ids; Schema(about=class) shows its place, properties and restrictions."
)
_LEGEND_OF_CONCEPTS: Final = (
    "In the tree, A > B (2), C: B and C are narrower than A, with 2 concepts below B; Schema(about=concept) shows "
    "where one is."
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of an answer; in its rows, a class (None for the top) and its subclasses, or properties with a class."""

    text: str
    tree: tuple[Node | None, ...] = ()
    properties: tuple[tuple[Iri, Node | None], ...] = ()


@dataclass(frozen=True, slots=True)
class OntologyView:
    """The answers of Schema from an ontology.

    Args:
        graph: The graph.
        schema: Its definition.
        ontology: What the graph declares.
        names: The names of all of it.
        max_tokens: The budget of an answer.
    """

    graph: KGAdapter
    schema: GraphSchema
    ontology: Ontology
    names: Names
    max_tokens: int

    @classmethod
    async def of(
        cls, graph: KGAdapter, schema: GraphSchema, max_tokens: int, around: Collection[Node] = ()
    ) -> "OntologyView":
        """Read the ontology of a graph; in any case what is around some nodes."""
        ontology = await read_ontology(graph, Declared.of(schema), around)
        return cls(graph, schema, ontology, await names_of(graph, ontology.terms()), max_tokens)

    async def whole(self, facts: Sequence[str] = (), legend: str = "") -> Answer:
        """Return the tree of classes and the properties of each, the largest branches first, as far as they fit.

        Args:
            facts: Lines about what the instances of classes have, as those of a thesaurus.
            legend: How these are read.
        """
        shown = [_Line(each) for each in facts]

        def of(most: int) -> tuple[Callable[[int], Answer], int]:
            return self._whole([*self._tree(most)], [*shown, *self._properties(most)], legend)

        def fit() -> Answer:
            build, lines = of(_MOST_IN_A_LINE[0])
            answer = build(lines)
            return answer if answer.tokens <= self.max_tokens else fitted(*of(_MOST_IN_A_LINE[1]), self.max_tokens)

        return await off_loop(fit)

    async def about(self, text: str, nodes: Collection[Node]) -> Answer | None:
        """Return all about the class that a text names, or about properties of that name; None where there is none.

        Args:
            text: What was asked for.
            nodes: What the text is known to name.
        """
        found = await off_loop(lambda: self._named(text, nodes))
        if not found:
            return None
        described = await self.graph.describe(found)
        descriptions = {node: shown_within(each.description or "", MAX_VALUE) for node, each in described.items()}
        return await off_loop(lambda: self._about(found, descriptions))

    def _about(self, found: Sequence[Node], descriptions: Mapping[Node, str]) -> Answer:
        node, classes = found[0], self.ontology.narrower.keys() | set(self.ontology.classes)
        ways: list[list[Node]] = []
        if node in classes:
            ways = [*self.ontology.ways_down(node, _WAYS)]
            lines, summary = [*self._class(node)], self._place(node, ways)
        else:
            lines = [self._property(each) for each in found if isinstance(each, Iri)]
            summary = counted(len(lines), "property", "properties") + " of this name."
        summary = f"{summary} {descriptions.get(node, '')}".rstrip()

        def build(most: int) -> Answer:
            cut = f" The first {most} of {len(lines)} lines are here." if most < len(lines) else ""
            return self._answer(f"{summary}{cut}", lines[:most], is_cut=bool(cut), counted=[node], ways=ways)

        return fitted(build, len(lines), self.max_tokens)

    def _named(self, text: str, nodes: Collection[Node]) -> Sequence[Node]:
        """Return the classes that a text names, else the properties; those in the same case alone where there are."""
        ontology, wanted = self.ontology, text.strip()
        terms = dict.fromkeys((*ontology.classes, *ontology.narrower, *ontology.properties))
        found = [each for each in nodes if each in terms]
        if not found:
            alike = {
                each: names
                for each in terms
                if fold(wanted) in map(fold, names := (self.names.labels.get(each, ""), each.local_part))
            }
            found = [each for each, names in alike.items() if wanted in names] or list(alike)
        properties = set(ontology.properties)
        classes = [each for each in found if each not in properties]
        return classes[:1] or found

    def _whole(
        self, tree: Sequence[_Line], properties: Sequence[_Line], legend: str
    ) -> tuple[Callable[[int], Answer], int]:
        """Return a function that builds the answer with the first so many lines, and how many there are."""
        ontology, individuals = self.ontology, Declared.of(self.schema).individuals
        sizes = [ontology.size.of(*ontology.words)]
        sizes += [ontology.property_size.of("property", "properties")] if ontology.properties else []
        sizes += [counted(individuals, "individual")] if individuals else []
        kind = "a thesaurus" if ontology.is_thesaurus else "an ontology"
        legend = f"{legend} {_LEGEND_OF_CONCEPTS if ontology.is_thesaurus else _LEGEND}".lstrip()
        size = f"Graph {in_quotes(self.graph.name)} is {kind}: {', '.join(sizes)}."
        if not ontology.size.exact:
            read = f"{len(ontology.classes):,} of them"
            size += f" The tree below is of {read}; its numbers count no others."
        turns = [line for turn in zip_longest(tree, properties) for line in turn if line is not None]

        def build(most: int) -> Answer:
            chosen = set(turns[:most])
            here = [[line for line in lines if line in chosen] for lines in (tree, properties)]
            cut = ""
            if most < len(turns):
                parts = zip(here, (tree, properties), ("lines of its tree", "lists of properties"), strict=True)
                cut = " and ".join(f"{len(shown):,} of {len(every):,} {what}" for shown, every, what in parts if every)
                cut = f" {cut} are here, the largest first."
            kinds = [each.iri for each in self.schema.classes[:_DEEPEST]]
            return self._answer(f"{size}{cut} {legend}", [*chain(*here)], is_cut=bool(cut), counted=kinds)

        return build, len(turns)

    def _tree(self, most: int) -> Iterator[_Line]:
        """Yield a line for the classes that nothing is above, then one for each class with subclasses, by level."""
        tops, ontology = self.ontology.tops(), self.ontology
        if len(tops) > 1:
            yield _Line(f"top {ontology.words[1]} | {self._listed(tops, most)}", (None, *tops[:most]))
        ways: list[tuple[Node, ...]] = [(top,) for top in tops]
        met = set(tops)
        while ways:
            below = list[tuple[Node, ...]]()
            for way in ways:
                children = ontology.narrower.get(way[-1], ())
                if children:
                    yield _Line(f"{self._way(way)} > {self._listed(children, most)}", (way[-1], *children[:most]))
                below += [(*way, each) for each in children if each not in met]
                met.update(children)
            ways = sorted(below, key=lambda way: -ontology.below[way[-1]])

    def _properties(self, most: int) -> Iterator[_Line]:
        """Yield a line for each class with properties, most of them first, and one for those of any class."""
        owners = sorted(self.ontology.of_class.items(), key=lambda item: (item[0] is None, -len(item[1])))
        for owner, properties in owners:
            name = "any class" if owner is None else self._name(owner)
            yield _Line(
                f"{name} | {self._facts(properties, most)}", (), tuple((each, owner) for each in properties[:most])
            )

    def _class(self, node: Node) -> Iterator[_Line]:
        """Yield the lines about one class: subclasses, restrictions, own and inherited properties, what leads to it."""
        ontology, (_, most) = self.ontology, _MOST_IN_A_LINE
        if children := ontology.narrower.get(node, ()):
            yield _Line(f"subclasses | {self._listed(children, most * 4)}", (node, *children[: most * 4]))
        if expressions := self._restrictions(node):
            yield _Line(f"restrictions | {expressions}")
        for each in ontology.of_class.get(node, ()):
            text = f"property | {self.names.relation(each)}{self._leads_to(each)}"
            yield _Line(text, properties=((each, node),))
        for above in ontology.above(node):
            if expressions := self._restrictions(above):
                yield _Line(f"restrictions inherited from {self._name(above)} | {expressions}")
            if properties := ontology.of_class.get(above, ()):
                text = f"inherited from {self._name(above)} | {self._facts(properties, most * 2)}"
                yield _Line(text, properties=tuple((each, above) for each in properties[: most * 2]))
        if leading := [each for each in ontology.properties if node in ontology.ranges.get(each, ())]:
            facts = (self.names.alone(each, _MARKS, "relation") for each in leading)
            text = f"properties that lead to it | {listed(facts, ', ', most)}"
            yield _Line(text, properties=tuple((each, None) for each in leading[:most]))

    def _restrictions(self, node: Node) -> str:
        """Return the class expressions above a class; nothing where it has none."""
        expressions = [each for each in self.ontology.expressions.get(node, ()) if each in self.names.labels]
        return listed((self.names.entity(each, ";") for each in expressions), "; ", _MOST_IN_A_LINE[1])

    def _property(self, node: Iri) -> _Line:
        owners = self.ontology.domains.get(node, ())
        of = ", ".join(map(self._name, owners)) or "any class"
        text = f"property | {self.names.relation(node)} | {of}{self._leads_to(node)}"
        return _Line(text, properties=tuple((node, each) for each in owners or (None,)))

    def _place(self, node: Node, ways: Sequence[Sequence[Node]]) -> str:
        """Return a sentence with the place of a class in the tree."""
        ontology, (one, many) = self.ontology, self.ontology.words
        shown = dict.fromkeys(self._way(way) for way in ways if len(way) > 1)
        children, below = len(ontology.narrower.get(node, ())), ontology.below[node]
        instances = next((each.instances for each in self.schema.classes if each.iri == node), None)
        parts = [f"{self.names.entity(node, ',;:')} is a {one}" + (f": {'; also '.join(shown)}" if shown else "")]
        in_all = f", {below:,} in all" if ontology.size.exact else ""
        parts += [f"{counted(children, f'direct sub{one}', f'direct sub{many}')}{in_all}"] if children else []
        parts += [instances.of("instance")] if instances is not None else []
        return f"{'; '.join(parts)}."

    def _way(self, way: Sequence[Node]) -> str:
        return ("… > " if len(way) > _DEEPEST else "") + " > ".join(map(self._name, way[-_DEEPEST:]))

    def _listed(self, nodes: Sequence[Node], most: int) -> str:
        below = self.ontology.below
        return listed(
            (f"{self._name(each)}{f' ({below[each]:,})' if below[each] else ''}" for each in nodes), ", ", most
        )

    def _facts(self, properties: Sequence[Iri], most: int) -> str:
        parts = (f"{self.names.alone(each, _MARKS, 'relation')}{self._leads_to(each)}" for each in properties)
        return listed(parts, "; ", most)

    def _leads_to(self, relation: Iri) -> str:
        ranges = self.ontology.ranges.get(relation, ())
        return f"→{listed(map(self._name, ranges), ', ', _RANGES)}" if ranges else ""

    def _name(self, node: Node) -> str:
        return self.names.alone(node, _MARKS)

    def _answer(
        self,
        summary: str,
        lines: Sequence[_Line],
        *,
        is_cut: bool,
        counted: Sequence[Node],
        ways: Sequence[Sequence[Node]] = (),
    ) -> Answer:
        names, ontology = self.names, self.ontology
        steps = dict.fromkeys(step for way in ways for step in pairwise(way[-_DEEPEST:]))
        tree = [*steps, *(line.tree for line in lines if line.tree)]
        classes = [node for row in tree for node in row if node is not None]
        properties = dict.fromkeys(chain.from_iterable(line.properties for line in lines))
        labels = names.entity_labels(classes) | names.relation_labels([each for each, _ in properties])
        result = SchemaResult(
            status="truncated" if is_cut else "ok",
            summary=summary,
            entities=self.schema.entities.value,
            triples=self.schema.triples.value,
            classes={
                names.entity_id(each.iri): each.instances.value for each in self.schema.classes if each.iri in counted
            },
            relations={},
            features={},
            labels={each: label for each, label in labels.items() if fold(label) != fold(each.rpartition(":")[2])},
            prefixes={},
            tree=[["" if each is None else names.entity_id(each) for each in row] for row in tree],
            properties=[
                [
                    names.relation_id(each),
                    "" if owner is None else names.entity_id(owner),
                    *map(names.entity_id, ontology.ranges.get(each, ())[:_RANGES]),
                ]
                for each, owner in properties
            ],
        )
        return Answer(result, tuple(line.text for line in lines))
