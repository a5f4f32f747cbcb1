"""The IRIs of what comes from tables."""

from typing import Final
from urllib.parse import quote

from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.tables.values import is_address

_BASE: Final = "urn:table:"
ENTITY, RELATION, CLASS, UNIT = (f"{_BASE}{part}:" for part in ("entity", "relation", "type", "unit"))
TABLE_PREFIXES: Final = {"entity": ENTITY, "relation": RELATION, "type": CLASS, "unit": UNIT}
"""The prefixes of a graph that came of tables."""
LABEL: Final = WELL_KNOWN["rdfs"] + "label"
COMMENT: Final = WELL_KNOWN["rdfs"] + "comment"
ALIAS: Final = WELL_KNOWN["skos"] + "altLabel"


def own_space(table: str) -> str:
    """Return what the IRIs of rows begin with whose ids are valid in their own table only."""
    return f"{_BASE}{escaped(table)}:"


def node_of(space: str, text: str) -> str:
    """Return the IRI of the entity or relation that a text names."""
    return text if is_address(text) else space + escaped(text)


def escaped(text: str) -> str:
    """Return a text as a part of an IRI."""
    return text if text.isascii() and text.isalnum() else quote(text, safe="")
