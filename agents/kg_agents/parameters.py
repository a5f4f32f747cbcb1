"""The parameters of an agent from texts, as a command line or a settings file has them."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from kg_agents.dialogue import Limits
from kg_agents.graph_counselor import CounselorSettings
from kg_agents.llm import AgentError
from kg_agents.oda import OdaSettings
from kg_agents.tools import ToolsSettings
from kg_boundary.validation import in_plain_words

_LIMITS: Final = tuple(field.name for field in fields(Limits))

S = TypeVar("S", OdaSettings, CounselorSettings, ToolsSettings)


class InvalidParameter(AgentError):
    """A parameter is unknown, or has a wrong value; the text says which, and what is valid."""


def read_parameters(kind: type[S], written: Iterable[str]) -> S:
    """Return the parameters of an agent, from texts such as `hops=2`; the last of a name counts.

    Args:
        kind: Those of which agent.
        written: The texts; those of limits are named as the limit, as in `tokens=50000`.

    Raises:
        InvalidParameter: One is unknown, or has a wrong value.
    """
    own: tuple[str, ...] = _names_of(kind)
    given = dict(_named(each, (*own, *_LIMITS)) for each in written)
    values: dict[str, object] = {name: given[name] for name in own if name in given}
    if limits := {name: given[name] for name in _LIMITS if name in given}:
        values["limits"] = _with_defaults(kind().limits, limits)
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][-1])
        raise InvalidParameter(
            f"The parameter {name}={given.get(name)!r} cannot be used: {in_plain_words(first['msg'])}."
        ) from error


def _names_of(kind: type[OdaSettings] | type[CounselorSettings] | type[ToolsSettings]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name != "limits")


def _named(written: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the name and the value of a parameter.

    Raises:
        InvalidParameter: It has not this form, or nothing has this name.
    """
    name, sign, value = (part.strip() for part in written.partition("="))
    name = name.replace("-", "_")
    if not sign:
        raise InvalidParameter(f"The parameter {written!r} has no value. Write name=value, as in hops=2.")
    if name not in known:
        near = get_close_matches(name, list(known), n=1)
        meant = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
        raise InvalidParameter(f"There is no parameter {name!r}. {meant}")
    return name, value


def _with_defaults(defaults: Limits, given: Mapping[str, str]) -> dict[str, object]:
    return {name: given.get(name, getattr(defaults, name)) for name in _LIMITS}
