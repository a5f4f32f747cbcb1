"""The questions about the world, each with the query that answers it."""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

FOLDER: Final = Path(__file__).parent
GRAPH: Final = FOLDER / "graph.ttl.gz"
QUESTIONS: Final = FOLDER / "questions.json"
PREFIXES: Final = {
    "w": "http://world.example/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
LITERAL: Final = "literal"
ONE_HOP: Final = "one-hop"
TWO_HOP: Final = "two-hop"
INVERSE: Final = "inverse"
QUALIFIER: Final = "qualifier"
YES_NO: Final = "yes-no"
NO_SUCH_FACT: Final = "no-such-fact"
NO_VALUE: Final = "no-value"
NO_SUCH_ENTITY: Final = "no-such-entity"
ABSENT: Final = (NO_SUCH_FACT, NO_VALUE, NO_SUCH_ENTITY)


class Asked(BaseModel):
    """A question, the query that gives its answers, and the answers where they are entities.

    Args:
        id: Its number, such as `q01`.
        question: What is asked.
        kind: The sort of question.
        sparql: The query, with its prefixes.
        answers: The answers: labels, numbers, dates, `true` or `false`.
        answer_ids: The answers that are entities or relations, as ids with a prefix.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    question: str
    kind: str
    sparql: str = ""
    answers: tuple[str | int | float, ...] = ()
    answer_ids: tuple[str, ...] = ()


def read_questions(path: Path = QUESTIONS) -> list[Asked]:
    """Read the questions that came with the world."""
    return TypeAdapter(list[Asked]).validate_json(path.read_bytes())


def full_iri(short: str) -> str:
    """Return the IRI of an id with a prefix."""
    prefix, _, local = short.partition(":")
    return PREFIXES[prefix] + local
