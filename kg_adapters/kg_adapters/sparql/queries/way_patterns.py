"""Sets of `kg_adapters.algebra` as SPARQL patterns that also bind the statements that they match."""

from dataclasses import dataclass
from typing import Final

from kg_adapters.algebra import Best, Has, Hop, HopPath, Instances, Kept, Minus, Numbers, SetExpression, ValueOf
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.set_patterns import SetWriter, either

MOST_STEPS: Final = 4
"""Of how many steps a repeated hop is shown, at most."""


@dataclass
class WayWriter(SetWriter):
    """Writes patterns that also bind the statements that they match: `?h0 ?p0 ?t0`, `?h1 ?p1 ?t1` and so on.

    Attributes:
        steps: How many are bound. A repeated hop is walked over `MOST_STEPS` at most.
    """

    steps: int = 0

    def within(self, of: SetExpression, name: str) -> str:
        """See `SetWriter`; who is in a set that others decide about is asked apart from what is shown of it."""
        chosen = f"{{ SELECT DISTINCT {name} {{ {SetWriter(self.graph, self.names).within(of, name)} }} }}"
        end, found = self.fresh(), ""
        match of:
            case Instances():
                found = f"{self.walked(name, HopPath((self.types,)), end)} {self.below(end, of)}"
            case Minus(sets):
                found = f"{chosen} {self.group(sets[0], name)}"
            case Kept(starts, Has(path)):
                found = f"{self.group(starts, name)} {self.walked(name, path, end)}"
            case Kept(starts, Numbers(path)):
                found = f"{chosen} {self.group(starts, name)} OPTIONAL {{ {self.counted(name, path, end)} }}"
            case Best(starts, ValueOf() as by):
                found = f"{chosen} {self.valued(starts, by, name, end, self.fresh())}"
            case Best(starts, by):
                found = f"{chosen} {self.group(starts, name)} {self.counted(name, by.path, end)}"
            case _:
                found = super().within(of, name)
        return found

    def hop(self, here: str, hop: Hop, there: str) -> str:
        """See `SetWriter`."""
        if hop.repeated:
            before, lengths, written = self.steps, list[int](), list[str]()
            for length in range(1, max(1, MOST_STEPS // len(hop.steps or ())) + 1):
                self.steps = before
                written.append(self.walked(here, HopPath((Hop(hop.steps),) * length), there))
                lengths.append(self.steps)
            self.steps = max(lengths)
            return writing.union(written)
        step, self.steps = self.steps, self.steps + 1
        return either(
            f"{pattern} BIND({head} AS ?h{step}) BIND({relation} AS ?p{step}) BIND({tail} AS ?t{step})"
            for head, relation, tail, pattern in self.edges(here, hop, there)
        )
