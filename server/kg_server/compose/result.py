"""What may be asked of Compose, and what it answers."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import Field

from kg_server.answers.results import Result

Evidence: TypeAlias = Literal["some", "all", "none"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one expression may cost.

    Args:
        calls: How many calls an expression may have.
        depth: How deep they may be nested.
        timeout_s: After how many seconds a part is given up; what is known by then is kept.
    """

    calls: int = 64
    depth: int = 8
    timeout_s: float = 9.0


class ComposeResult(Result):
    """What each part of an expression gives, and the triples that show it.

    Args:
        parts: Rows of part, expression, kind or error, size or reason.
        results: Rows of part, the node and the relation that it is a result for, result, and `node`, `number`,
            `at least`, `none`, `error`, or a value's datatype or language.
        evidence: Rows of head, relation, tail.
        held: What nodes without a label hold, as rows of head, relation, tail.
        labels: Of nodes.
        relations: Labels of relations.
        sparql: Where it is asked for, rows of part and a query that asks the same.
    """

    parts: list[list[str]]
    results: list[list[str]] = Field(description="[part, node, relation, result, its kind]")
    evidence: list[list[str]]
    held: list[list[str]] | None = None
    labels: dict[str, str]
    relations: dict[str, str]
    sparql: list[list[str]] | None = None
