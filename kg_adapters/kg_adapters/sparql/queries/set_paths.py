"""Paths of `kg_adapters.algebra` as SPARQL patterns, told step by step where somebody wants to see them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, pairwise
from typing import Final

from kg_adapters.algebra import Hop, HopPath, Step, counts_values
from kg_adapters.errors import Unsupported
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.terms import Iri

TOLD_STEPS: Final = 4
"""Of how many steps a repeated hop is shown, at most."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What of a graph is walked.

    Args:
        dialect: The engine.
        vocabulary: The relations that type and name.
        namespace: Only relations whose IRI starts so are walked where none is named; None for all.
        entities: Only what has an IRI that starts so is a node; None for all that are no literals.
    """

    dialect: Dialect
    vocabulary: Vocabulary
    namespace: str | None = None
    entities: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A statement that shows a result: head, relation and tail, each a variable or a term.

    It is one only where the variable `where` is bound, if there is such a variable.
    """

    head: str
    relation: str
    tail: str
    where: str = ""


@dataclass
class PathWriter:
    """Writes the paths of one query, each variable of its own name.

    Args:
        graph: What is walked.
        telling: Whether what shows a result is to be bound too; then `told` grows by it, in the order of its telling.
    """

    graph: Walked
    telling: bool = False
    told: list[Told] = field(default_factory=list[Told])
    names: Iterator[int] = field(default_factory=lambda: count(1))
    _where: str = ""

    def require_nesting(self) -> None:
        """Refuse what the engine would answer wrongly.

        Raises:
            Unsupported: It would.
        """
        if not self.graph.dialect.nests_sets:
            raise Unsupported(f"{self.graph.dialect.name} does not answer every such query rightly.")

    def fresh(self) -> str:
        """Return a new variable."""
        return f"?v{next(self.names)}"

    def walked(self, start: str, path: HopPath, end: str) -> str:
        """Return the pattern of a path, which ends in nodes and values."""
        stops = [start, *(self.fresh() for _ in path.hops[1:]), end]
        hops = zip(pairwise(stops), path.hops, strict=True)
        written = [self.hop(here, hop, there) for (here, there), hop in hops]
        for place, (hop, stop) in enumerate(zip(path.hops[1:], stops[1:], strict=False)):
            if not _only(hop, "out"):
                # What a hop starts from must be no value, which a triple with it as its tail would not rule out.
                written[place] += self.is_node(HopPath((path.hops[place],)), stop)
        return " ".join(written)

    def counted(self, start: str, path: HopPath, end: str) -> str:
        """Return the pattern of a path, which ends in what `NumberOf` counts."""
        return self.walked(start, path, end) + ("" if counts_values(path) else self.is_node(path, end))

    def step(self, here: str, step: Step, there: str) -> str:
        """Return the pattern of one step."""
        head, tail = _ends(here, step, there)
        self._tell(Told(head, writing.iri(step.relation), tail))
        return _edge(here, step, there)

    def either(self, blocks: Iterable[Callable[[], str]]) -> str:
        """Return the union of blocks; where it tells, what each tells is told only of its own solutions."""
        if not self.telling:
            return writing.union(block() for block in blocks)
        written, before = list[str](), self._where
        for block in blocks:
            mark = self._where = self.fresh()
            written.append(f"{block()} BIND(true AS {mark})")
        self._where = before
        return writing.union(written)

    def is_node(self, path: HopPath, end: str) -> str:
        """Return the condition that what a path ends in is a node, unless it can be nothing else."""
        if self.graph.entities is not None:
            return f" FILTER(isIRI({end}) && STRSTARTS(STR({end}), {writing.text(self.graph.entities)}))"
        return "" if _only(path.hops[-1], "in") else f" FILTER(!isLiteral({end}))"

    def hop(self, here: str, hop: Hop, there: str) -> str:
        """Return the pattern of one hop."""
        if hop.steps is None:
            return writing.union((self._any(here, there, there), self._any(there, here, there)))
        if not hop.repeated:
            return self._one(here, hop, there)
        self.require_nesting()
        if not self.telling:
            return f"{here} {alternatives(hop)}+ {there} ."
        chains = (HopPath((Hop(hop.steps),) * steps) for steps in range(1, TOLD_STEPS // len(hop.steps) + 1))
        return self.either(partial(self.walked, here, chain, there) for chain in chains)

    def _any(self, head: str, tail: str, far: str) -> str:
        """Return the pattern of an edge over any relation, or of a value where the tail is the far end."""
        relation = self.fresh()
        told: list[str] = []
        if self.graph.namespace is not None:
            told.append(f"STRSTARTS(STR({relation}), {writing.text(self.graph.namespace)})")
        if tail == far:
            told.append(f"!(isLiteral({tail}) && {relation} IN ({_listed(self.graph.vocabulary.texts)}))")
        self._tell(Told(head, relation, tail))
        return f"{head} {relation} {tail} ." + (f" FILTER({' && '.join(told)})" if told else "")

    def _one(self, here: str, hop: Hop, there: str) -> str:
        steps = hop.steps or ()
        if len(steps) == 1:
            return self.step(here, steps[0], there)
        if not self.telling:
            return writing.union(_edge(here, step, there) for step in steps)
        told = Told(self.fresh(), self.fresh(), self.fresh())
        self._tell(told)
        return writing.union(self._bound(here, step, there, told) for step in steps)

    def _bound(self, here: str, step: Step, there: str, told: Told) -> str:
        head, tail = _ends(here, step, there)
        ends = f"BIND({head} AS {told.head}) BIND({tail} AS {told.tail})"
        return f"{_edge(here, step, there)} BIND({writing.iri(step.relation)} AS {told.relation}) {ends}"

    def _tell(self, told: Told) -> None:
        if self.telling:
            self.told.append(replace(told, where=self._where))


def _only(hop: Hop, direction: str) -> bool:
    return hop.steps is not None and all(step.direction == direction for step in hop.steps)


def alternatives(hop: Hop) -> str:
    """Return the alternatives of a hop as a property path."""
    steps = hop.steps or ()
    written = "|".join(("^" if step.direction == "in" else "") + writing.iri(step.relation) for step in steps)
    return written if len(steps) == 1 and not written.startswith("^") else f"({written})"


def _listed(relations: frozenset[Iri]) -> str:
    return ", ".join(map(writing.iri, sorted(relations)))


def _ends(here: str, step: Step, there: str) -> tuple[str, str]:
    """Return head and tail of the statement that is walked."""
    return (here, there) if step.direction == "out" else (there, here)


def _edge(here: str, step: Step, there: str) -> str:
    head, tail = _ends(here, step, there)
    return f"{head} {writing.iri(step.relation)} {tail} ."
