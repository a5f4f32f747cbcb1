"""Entities by name, with Wikidata's own search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.local.names.folding import fold
from kg_adapters.models import Candidate, RelationCandidate
from kg_adapters.name_index import Name, NameIndex, RelationIndex, RelationName
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.rows import rows
from kg_adapters.terms import Iri, Node
from kg_adapters.wikidata.api import BATCH, ApiMatch, WikidataApi
from kg_adapters.wikidata.namespaces import DIRECT, entity
from kg_adapters.wikidata.queries import ValueQueries

_LIKE: Final = 0.9
_STEP: Final = 0.98


@dataclass(frozen=True)
class WikidataSearch:
    """Asks `wbsearchentities`, and the query service for the type.

    Args:
        api: The web API.
        asker: What asks the query service.
        queries: What writes the query for the type.
    """

    api: WikidataApi
    asker: Asker
    queries: ValueQueries

    @property
    def note(self) -> str:
        """See `NameSearch`."""
        return (
            "Found by Wikidata's own search: labels and aliases that begin with the text, and, where none is equal to "
            "it, those with its words, each with one typing error at most, after its first two letters."
        )

    async def search(self, text: str, *, limit: int, type: Node | None) -> Sequence[Candidate]:
        """Return the entities that a text may name: same names first, then in Wikidata's own order.

        One request, three where nothing bears the name, and one more for a type.
        """
        if limit < 1 or (type is not None and not self.asker.can_name(type)):
            return []
        matches = await self.api.search(text, limit=limit if type is None else BATCH)
        found = _candidates(text, matches)
        if not any(each.score == 1.0 for each in found):
            found = _merged(found, _alike(text, await self.api.alike(text)))
        if type is not None and found:
            answer = await self.asker.ask(self.queries.instances([each.entity for each in found], type))
            instances = {row.node("s") for row in rows(answer)}
            found = [each for each in found if each.entity in instances]
        return found[:limit]


async def find_properties(api: WikidataApi, text: str, *, limit: int) -> Sequence[RelationCandidate]:
    """Return the properties that a text may name, as `KGAdapter.find_relations` does.

    Only names that begin like the text are known here; what merely shares letters with it is left out.
    """
    matches = await api.search(text, limit=BATCH, kind="property")
    names = [RelationName(Iri(DIRECT + match.id), match.text, match.is_alias) for match in matches]
    return RelationIndex(names).find(text, limit)


def _candidates(text: str, matches: Sequence[ApiMatch]) -> list[Candidate]:
    wanted = fold(text)
    first = [Candidate(entity(match.id), 1.0, "alias" if match.is_alias else "label", match.text) for match in matches]
    same = [each for each in first if fold(each.matched_text) == wanted]
    like = [each for each in first if fold(each.matched_text) != wanted]
    return [*same, *(replace(each, score=_LIKE * _STEP**place) for place, each in enumerate(like))]


def _alike(text: str, matches: Sequence[ApiMatch]) -> list[Candidate]:
    names = [Name(entity(match.id), match.text, match.is_alias) for match in matches]
    return NameIndex(names).search(text, BATCH, lambda _: True)


def _merged(found: Sequence[Candidate], more: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates by score, each entity once."""
    known = {each.entity for each in found}
    return sorted([*found, *(each for each in more if each.entity not in known)], key=lambda each: -each.score)
