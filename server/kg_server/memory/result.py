"""What the memory tools answer, as data."""

from kg_server.results import Result


class FactsResult(Result):
    """Facts as rows, in the order of their paths: `[path number, head, relation, tail, verified or unverified]`."""

    facts: list[list[str]]
    labels: dict[str, str]
    relations: dict[str, str]


class MemoryResult(FactsResult):
    """A page of a memory."""

    total: int
    cursor: str | None = None


class AppendedResult(FactsResult):
    """A memory after an append: whole, or what is new in it."""

    memory: str
    added: int
    refused: list[str]
