"""Vocabularies in which the names of entities are nodes of their own: SKOS-XL and CIDOC CRM."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kg_adapters.terms import Iri

_XL: Final = "http://www.w3.org/2008/05/skos-xl#"
_CORE: Final = "http://www.w3.org/2004/02/skos/core#"
_CIDOC: Final = ("http://www.cidoc-crm.org/cidoc-crm/", "http://erlangen-crm.org/current/")
_LABEL: Final = f"{_CORE}prefLabel"
ALIAS: Final = f"{_CORE}altLabel"


@dataclass(frozen=True, slots=True)
class Appellations:
    """How a vocabulary names entities by nodes of their own.

    Args:
        form: The relation from such a node to the text that it is.
        relations: Those from an entity to such nodes, with the relation of SKOS that means the same.
        identifiers: The class of those nodes that are identifiers rather than names; empty where there is none.
    """

    form: str
    relations: Mapping[str, str]
    identifiers: str = ""


VOCABULARIES: Final = (
    Appellations(
        f"{_XL}literalForm", {f"{_XL}{name}": f"{_CORE}{name}" for name in ("prefLabel", "altLabel", "hiddenLabel")}
    ),
    *(
        Appellations(
            f"{each}P190_has_symbolic_content",
            {f"{each}P1_is_identified_by": _LABEL, f"{each}P102_has_title": _LABEL},
            f"{each}E42_Identifier",
        )
        for each in _CIDOC
    ),
)
NAMING: Final = frozenset(Iri(relation) for each in VOCABULARIES for relation in each.relations)
"""The relations from entities to nodes that are their names."""
