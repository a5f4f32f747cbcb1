"""What was counted of a graph, its definition and its profile, as files keep them."""

from dataclasses import replace
from functools import cache
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from kg_adapters.errors import InvalidRequest
from kg_adapters.index.block_files import Damage
from kg_adapters.models import GraphSchema
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile

PROFILE_FILE: Final = "profile.json"
SCHEMA_FILE: Final = "schema.json"
T = TypeVar("T")


def profile_text(profile: GraphProfile) -> str:
    """Return a profile as a file has it."""
    return _profiles().dump_json(profile, exclude_defaults=True).decode()


def read_profile(text: bytes) -> GraphProfile:
    """Return what `profile_text` wrote.

    Args:
        text: The content of the file.

    Raises:
        Damage: It is something else.
    """
    return _read(_profiles(), text, PROFILE_FILE)


def schema_text(schema: GraphSchema) -> str:
    """Return a definition as a file has it: without prefixes, which are known before it is read."""
    return _schemas().dump_json(replace(schema, prefixes=Prefixes())).decode()


def read_schema(text: bytes, prefixes: Prefixes) -> GraphSchema:
    """Return what `schema_text` wrote.

    Args:
        text: The content of the file.
        prefixes: Those of the store.

    Raises:
        Damage: It is something else.
    """
    return replace(_read(_schemas(), text, SCHEMA_FILE), prefixes=prefixes)


def _read(kind: TypeAdapter[T], text: bytes, file: str) -> T:
    try:
        return kind.validate_json(text)
    except (ValidationError, InvalidRequest) as error:
        raise Damage(f"{file} cannot be read") from error


@cache
def _profiles() -> TypeAdapter[GraphProfile]:
    return TypeAdapter(GraphProfile)


@cache
def _schemas() -> TypeAdapter[GraphSchema]:
    return TypeAdapter(GraphSchema)
