"""What of a server's tools a model is offered: their list goes with every call, so that a word too many costs twice."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from kg_agents.llm import Function
from kg_agents.schemas import ShortSchemas


def offered(tools: Sequence[Function], only: str) -> tuple[Function, ...]:
    """Return the functions that a model may call, as the server lists them, with schemas that are shorter.

    Bounds and defaults stay the server's: it fills in what is missing, and says what is wrong with the rest. What is
    said of several arguments in the same words is said once.

    Args:
        tools: The tools of the server.
        only: The names of some, separated by commas; all of them where it is empty.
    """
    named = {name.strip() for name in only.split(",")} - {""}
    schemas = ShortSchemas()
    return tuple(_shorter(each, schemas) for each in tools if each.name in named or not named)


def _shorter(tool: Function, schemas: ShortSchemas) -> Function:
    try:
        return replace(tool, parameters=schemas.short(tool.parameters))
    except (KeyError, RecursionError, ValidationError):
        # A schema that refers to itself, or to nothing, goes out as it came.
        return tool
