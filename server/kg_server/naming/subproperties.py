"""The subproperties that the name of a wider relation means as well."""

from collections.abc import Sequence
from typing import Final

from kg_adapters.profile import GraphProfile
from kg_adapters.terms import Iri
from kg_boundary.shown import listed
from kg_server.names import Names

_SHOWN: Final = 3


def subproperties(profile: GraphProfile, relations: Sequence[Iri]) -> tuple[tuple[Iri, ...], tuple[Iri, ...]]:
    """Return the relations that hold only where one of some others does, and those that do so backwards."""
    below = dict.fromkeys(each for relation in relations for each in profile.subproperties_of(relation))
    behind = dict.fromkeys(each for relation in relations for each in profile.subproperties_behind(relation))
    return tuple(each for each in below if each not in relations), tuple(behind)


def inclusion_note(wider: Iri, below: Sequence[Iri], behind: Sequence[Iri], names: Names) -> str:
    """Return a sentence on what the name of a wider relation includes; empty where that is nothing."""
    parts = [names.relation(each, ",") for each in below]
    parts += [f"{names.relation(each, ',')} the other way round" for each in behind]
    return f"{names.relation(wider)} includes {listed(parts, ', ', _SHOWN)}." if parts else ""
