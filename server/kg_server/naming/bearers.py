"""Who bears a name, and in which order: an exact id comes first, then a name in its case, then one in any case."""

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote

from kg_adapters.federated import FederatedGraph
from kg_adapters.folding import fold
from kg_adapters.models import Candidate
from kg_adapters.protocol import KGAdapter, known_profile
from kg_adapters.terms import Node
from kg_server.naming.refusals import id_of


async def entities_of_ids(graph: KGAdapter, texts: Sequence[str]) -> Mapping[str, tuple[Node, ...]]:
    """Return the entities of those texts that are ids of them, asked for in one batch; see `FederatedGraph.known`."""
    if isinstance(graph, FederatedGraph):
        return await graph.known(texts)
    expanded = {text: node for text in texts if (node := id_of(graph, text)) is not None}
    if not expanded:
        return {}
    known = await graph.describe(list(expanded.values()))
    return {text: (node,) for text, node in expanded.items() if node in known and "entity" in known[node].roles}


async def of_local_names(graph: KGAdapter, texts: Sequence[str]) -> Mapping[str, tuple[Node, ...]]:
    """Return the entities whose IRIs have texts as local parts. A remote graph is not asked for them."""
    named = {} if graph.remote else {text: graph.prefixes.local_names(text) for text in texts}
    if not any(named.values()):
        return {}
    described = await graph.describe([node for nodes in named.values() for node in nodes])
    known = {node for node, each in described.items() if "entity" in each.roles and "relation" not in each.roles}
    found = {text: tuple(node for node in nodes if node in known) for text, nodes in named.items()}
    return {text: nodes for text, nodes in found.items() if nodes}


async def bearers_of(
    graph: KGAdapter, text: str, pool: Sequence[Candidate], own: Collection[Node] = ()
) -> tuple[Candidate, ...]:
    """Return those whose own id, label or alias a text is, the ids first, or else whose IRI has it as local part.

    The name of a class that has instances is no id, though tables make it one.

    Args:
        graph: The graph.
        text: The name.
        pool: What a search for it found, the best first.
        own: What has the text as the local part of its IRI, in this case, as far as it is known.
    """
    profile, plain, folded = await known_profile(graph), text.strip(), fold(text)
    local = [each.entity for each in pool if each.score == 1.0 and unquote(each.entity.local_part) == plain]
    keyed = [node for node in dict.fromkeys((*own, *local)) if profile.profile_of(node) is None]
    same = tuple(each for each in pool if fold(each.matched_text) == folded and each.entity not in keyed)
    named = tuple(each for each in same if each.matched_by != "id")
    ids = tuple(Candidate(node, 1.0, "id", plain) for node in keyed)
    return (*ids, *named) or tuple(each for each in same if each.matched_text == plain) or same


def first_of(text: str, bearers: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return those who bear a name most exactly: by their id, or else in its case, or else all."""
    keyed = tuple(each for each in bearers if each.matched_by == "id")
    return keyed or tuple(each for each in bearers if each.matched_text == text.strip()) or tuple(bearers)
