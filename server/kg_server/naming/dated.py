"""Which relations of like names a text that asks for a date may mean."""

from collections.abc import Sequence
from typing import Final

from kg_adapters.profile import GraphProfile
from kg_adapters.terms import Iri
from kg_server.naming.misspelling import words_of

_DATED: Final = frozenset({"date", "dates", "year", "years"})


def of_kind(profile: GraphProfile, text: str, near: Sequence[Iri]) -> tuple[Sequence[Iri], str]:
    """Return those of like relations that may be meant, and what a graph has none of that a text asks for.

    A text that asks for a date means no relation between entities, as the place of birth is by letters alone.
    """
    if not (_DATED & set(words_of(text))) or not profile.everything.complete:
        return near, ""
    valued = {each.relation: each.values.kinds for each in profile.everything.properties if each.values}
    kept = [each for each in near if each in valued]
    dated = any("date" in kinds for kinds in valued.values())
    return kept, "" if kept or dated else " This graph has no dates."
