"""Knowledge graphs behind one small protocol.

Importing this package loads no graph library: what needs one is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from kg_adapters.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    GraphReplaced,
    InvalidRequest,
    InvalidSource,
    KGError,
    ModelBusy,
    ModelUnavailable,
    StoreDamaged,
    UnknownEntity,
    UnknownName,
    UnknownRelation,
    Unsupported,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.models import (
    Candidate,
    ClassSummary,
    Count,
    Degree,
    Description,
    Direction,
    EdgeDirection,
    Feature,
    FeaturePage,
    FeatureSummary,
    GraphSchema,
    Joined,
    Match,
    NeighborPage,
    Path,
    PathRequest,
    PathsFound,
    RelationCandidate,
    RelationCount,
    RelationSummary,
    Role,
    SparqlAnswer,
    ValueUse,
)
from kg_adapters.open_options import AdapterFactory, OpenOptions
from kg_adapters.prefixes import BareIds, Prefixes
from kg_adapters.profile import (
    ClassProfile,
    Coverage,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    ValueCount,
    ValueRange,
)
from kg_adapters.protocol import (
    KGAdapter,
    SupportsEngineNote,
    SupportsFeatureNote,
    SupportsJoins,
    SupportsLearning,
    SupportsPaths,
    SupportsRevision,
    SupportsSearchNote,
    SupportsSets,
    SupportsSnapshots,
    SupportsSparql,
    SupportsValueSearch,
)
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple

if TYPE_CHECKING:
    from kg_adapters.local.adapter import LocalAdapter
    from kg_adapters.rdflib_adapter import RdflibAdapter
    from kg_adapters.registry import open_graph
    from kg_adapters.sparql.adapter import SparqlAdapter
    from kg_adapters.surroundings import SupportsSurroundings, SupportsVectors
    from kg_adapters.wikidata.adapter import WikidataAdapter

__all__ = [
    "AdapterFactory",
    "Attribute",
    "BackendError",
    "BackendTimeout",
    "BackendUnavailable",
    "BareIds",
    "BlankNode",
    "Candidate",
    "ClassProfile",
    "ClassSummary",
    "Count",
    "Coverage",
    "Degree",
    "Description",
    "Direction",
    "EdgeDirection",
    "Fact",
    "Feature",
    "FeaturePage",
    "FeatureRequest",
    "FeatureSummary",
    "GraphProfile",
    "GraphReplaced",
    "GraphSchema",
    "InvalidRequest",
    "InvalidSource",
    "InverseRelations",
    "Iri",
    "Joined",
    "KGAdapter",
    "KGError",
    "Literal",
    "LocalAdapter",
    "Match",
    "ModelBusy",
    "ModelUnavailable",
    "NeighborPage",
    "NeighborRequest",
    "Node",
    "OpenOptions",
    "Path",
    "PathRequest",
    "PathsFound",
    "Prefixes",
    "PropertyProfile",
    "RdflibAdapter",
    "RelationCandidate",
    "RelationCount",
    "RelationSummary",
    "Role",
    "SparqlAdapter",
    "SparqlAnswer",
    "StoreDamaged",
    "SupportsEngineNote",
    "SupportsFeatureNote",
    "SupportsJoins",
    "SupportsLearning",
    "SupportsPaths",
    "SupportsRevision",
    "SupportsSearchNote",
    "SupportsSets",
    "SupportsSnapshots",
    "SupportsSparql",
    "SupportsSurroundings",
    "SupportsValueSearch",
    "SupportsVectors",
    "SurroundingsRequest",
    "Term",
    "Triple",
    "UnknownEntity",
    "UnknownName",
    "UnknownRelation",
    "Unsupported",
    "ValueCount",
    "ValueRange",
    "ValueUse",
    "Vocabulary",
    "WikidataAdapter",
    "open_graph",
]

_LOADED_LATER: Final = {
    "LocalAdapter": "kg_adapters.local.adapter",
    "RdflibAdapter": "kg_adapters.rdflib_adapter",
    "SparqlAdapter": "kg_adapters.sparql.adapter",
    "SupportsSurroundings": "kg_adapters.surroundings",
    "SupportsVectors": "kg_adapters.surroundings",
    "WikidataAdapter": "kg_adapters.wikidata.adapter",
    "open_graph": "kg_adapters.registry",
}


def __getattr__(name: str) -> object:
    """Return what needs a library that not everybody needs."""
    if name not in _LOADED_LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LOADED_LATER[name]), name)


def __dir__() -> list[str]:
    """Return all names, those of what is loaded later among them."""
    return [*globals(), *_LOADED_LATER]
