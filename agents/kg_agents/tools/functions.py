"""The functions that the model of the agent tools may call, and its answer."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from kg_agents.evidence.matching import numbers_in
from kg_agents.llm import Function
from kg_agents.llm.dialogue import Unreadable
from kg_agents.llm.texts import ShortSchemas, json_object, schema_of
from kg_agents.replies import MAX_ANSWER, MAX_ANSWERS, read_conclusion

ALL: Final = "all"
"""What stands for all tools of a server."""


def offered(tools: Sequence[Function], only: str) -> tuple[Function, ...]:
    """Return the functions that a model may call, as the server lists them, with schemas that are shorter.

    Bounds and defaults stay the server's: it fills in what is missing, and says what is wrong with the rest. What is
    said of several arguments in the same words is said once.

    Args:
        tools: The tools of the server.
        only: The names of some, separated by commas; all of them where it is `all`, or where the server has none.
    """
    named = {name.strip() for name in only.split(",")}
    chosen = tools if ALL in named else [each for each in tools if each.name in named] or tools
    schemas = ShortSchemas()
    return tuple(_shorter(each, schemas) for each in chosen)


def instructed(instructions: str, tools: Sequence[Function], offer: Sequence[Function]) -> str:
    """Return a server's instructions without the clauses that name only tools which a model is not offered."""
    known, kept = {each.name for each in tools}, {each.name for each in offer}

    def is_kept(clause: str) -> bool:
        named = known.intersection(re.findall(r"[\w-]+", clause))
        return not named or bool(named & kept)

    lines = (line.split("; ") for line in instructions.splitlines())
    return "\n".join("; ".join(filter(is_kept, clauses)).rstrip(".") + "." for clauses in lines if any(clauses))


def _shorter(tool: Function, schemas: ShortSchemas) -> Function:
    try:
        return replace(tool, parameters=schemas.short(tool.parameters))
    except (KeyError, RecursionError, ValidationError):
        # A schema that refers to itself, or to nothing, goes out as it came.
        return tool


_LIST: Final = TypeAdapter(list[object])

Outcome: TypeAlias = Literal["answered", "not_in_graph", "unknown_entity"]


def _text(value: object) -> object:
    """Return a number, or a yes or no, as a text; models write them in both forms."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:MAX_ANSWER] if isinstance(value, str | int | float) else value


def _numbers(value: object) -> object:
    """Return numbers that stand alone, in a list, or in a text such as `1, 3-5`."""
    return list(numbers_in(value)) if isinstance(value, str) else _many(value)


def _many(value: object) -> object:
    """Return what stands alone, or stands for nothing, as a list."""
    if value is None or value == "":
        return []
    return _LIST.validate_python(value)[:MAX_ANSWERS] if isinstance(value, list) else [value]


def _cited(value: object) -> object:
    """Return an answer that cites nothing in the form of those that do."""
    return {"text": value} if isinstance(value, str | int | float) else value


Text: TypeAlias = Annotated[str, BeforeValidator(_text)]


class CitedAnswer(BaseModel):
    """One answer."""

    model_config = ConfigDict(frozen=True)

    text: Text = Field(min_length=1, description="As in the result; or true, false")
    results: Annotated[list[int], BeforeValidator(_numbers)] = []


class FinalAnswer(BaseModel):
    """What a model answers."""

    model_config = ConfigDict(frozen=True)

    answers: Annotated[list[Annotated[CitedAnswer, BeforeValidator(_cited)]], BeforeValidator(_many)] = []
    all_of: Annotated[list[int], BeforeValidator(_numbers)] = Field(
        default=[], description="Instead: results that list all"
    )
    outcome: Outcome = "answered"
    results: Annotated[list[int], BeforeValidator(_numbers)] = Field(
        default=[], description="Otherwise: those that show it"
    )
    reason: Text = ""
    own_knowledge: Annotated[list[Text], BeforeValidator(_many)] = Field(default=[], description="What no result shows")

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all."""
        return self.outcome == "answered" and not (self.answers or self.all_of or self.own_knowledge)


ANSWER: Final = Function("answer", "Give the final answer.", schema_of(FinalAnswer))


def read_final(arguments: str) -> FinalAnswer | Unreadable:
    """Read the arguments of a call of `answer`."""
    given = json_object(arguments)
    if given is None:
        return Unreadable("its arguments are not a JSON object.")
    try:
        final = FinalAnswer.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return Unreadable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}.")
    if final.is_empty:
        return Unreadable("it holds no answer. Where the graph holds none, set outcome and reason.")
    return final


def read_written(reply: str, *, tolerant: bool) -> FinalAnswer | Unreadable:
    """Read an answer that a model has written without a call.

    Args:
        reply: What it wrote.
        tolerant: Whether prose counts, or only an object of the form that `answer` takes.
    """
    given = json_object(reply)
    if given is not None and given.keys() & FinalAnswer.model_fields.keys():
        return read_final(reply)
    if not tolerant:
        return Unreadable("it calls no function.")
    found = read_conclusion(reply)
    if isinstance(found, Unreadable):
        return found
    cited = [CitedAnswer(text=each.text, results=list(each.numbers)) for each in found.answers if each.text]
    missing = found.missing is not None
    return FinalAnswer(
        answers=cited,
        outcome="not_in_graph" if missing else "answered",
        reason=found.missing or "",
        own_knowledge=list(found.own),
    )
