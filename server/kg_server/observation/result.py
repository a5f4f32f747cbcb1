"""The result of observe."""

from pydantic import Field

from kg_server.results import Result


class ObserveResult(Result):
    """What lies around entities, by relation and direction, best first; what is only counted ends with the count."""

    groups: list[list[str]] = Field(description="[entity, relation, out/in, count, score, hop, far ends]")
    labels: dict[str, str]
    relations: dict[str, str]
    held: list[list[str]] | None = Field(default=None, description="what nodes without a name hold")
    found: int
    sampled: list[str]
    scorer: str
