"""What all settings and options of one subject have in common."""

from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Section(BaseModel):
    """Settings of one subject; a message about an invalid value never holds the value, which may be a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


AT_COMMAS: Final = BeforeValidator(_split)
"""Splits a text at its commas, where a setting is a list."""
Texts: TypeAlias = Annotated[tuple[str, ...], AT_COMMAS]
