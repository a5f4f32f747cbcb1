"""The namespaces of Wikidata's RDF (https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format)."""

from typing import Final

from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes
from kg_adapters.terms import Iri, Node

ENTITY: Final = WIKIDATA.namespaces["wd"]
DIRECT: Final = WIKIDATA.namespaces["wdt"]
WIKIBASE: Final = WIKIDATA.namespaces["wikibase"]
PREFIXES: Final = Prefixes(
    {**WELL_KNOWN, **WIKIDATA.namespaces, "psv": "http://www.wikidata.org/prop/statement/value/"},
    WIKIDATA.entities,
    WIKIDATA.relations,
    blank_nodes=False,
)
INSTANCE_OF: Final = Iri(DIRECT + "P31")
SUBCLASS_OF: Final = Iri(DIRECT + "P279")


def wikibase(name: str) -> str:
    """Return a term of the Wikibase ontology as SPARQL has it."""
    return f"<{WIKIBASE}{name}>"


def id_of(node: Node) -> str | None:
    """Return the id by which the web API knows an entity or a property, or None where it knows none."""
    if not isinstance(node, Iri):
        return None
    for namespace in (ENTITY, DIRECT):
        if node.value.startswith(namespace):
            return node.value[len(namespace) :]
    return None


def entity(text: str) -> Iri:
    """Return the entity with an id."""
    return Iri(ENTITY + text)
