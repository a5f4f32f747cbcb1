"""What the memory tools answer, as data."""

from pydantic import Field

from kg_server.results import Result


class MemoryResult(Result):
    """A page of a memory: facts as rows, in the order of their paths."""

    memory: str = Field(description="handle")
    facts: list[list[str]] = Field(description="[path number, head, relation, tail, verified or unverified]")
    labels: dict[str, str]
    relations: dict[str, str] = Field(description="labels")
    total: int
    paths: int
    cursor: str | None = None


class AppendedResult(MemoryResult):
    """A memory after an append."""

    added: int
    refused: list[str]
