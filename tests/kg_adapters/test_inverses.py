"""Which relations are inverse: by the graph's declarations, before well-known vocabularies, before stored pairs."""

import pytest

from kg_adapters.inverses import OWL_INVERSE, standard_inverses
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import GraphProfile
from kg_adapters.profiling import Statement, profile_of
from kg_adapters.terms import Iri
from kg_adapters.testing import iri

SKOS, CRM = "http://www.w3.org/2004/02/skos/core#", "http://www.cidoc-crm.org/cidoc-crm/"
SUBPROPERTY = Iri("http://www.w3.org/2000/01/rdf-schema#subPropertyOf")
BROADER, NARROWER = Iri(f"{SKOS}broader"), Iri(f"{SKOS}narrower")


def profile(*statements: Statement, standard: bool = True) -> GraphProfile:
    return profile_of(statements, Vocabulary(standard_inverses=standard))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{SKOS}broaderTransitive", f"{SKOS}narrowerTransitive"),
        (f"{SKOS}broadMatch", f"{SKOS}narrowMatch"),
        (f"{SKOS}exactMatch", f"{SKOS}exactMatch"),
        ("http://purl.org/dc/terms/isReferencedBy", "http://purl.org/dc/terms/references"),
        ("http://xmlns.com/foaf/0.1/maker", "http://xmlns.com/foaf/0.1/made"),
        ("http://schema.org/alumniOf", "http://schema.org/alumni"),
        ("https://schema.org/isPartOf", "https://schema.org/hasPart"),
        ("http://www.w3.org/ns/prov#wasAttributedTo", "http://www.w3.org/ns/prov#contributed"),
        (f"{CRM}P46_is_composed_of", f"{CRM}P46i_forms_part_of"),
        (f"{CRM}P122_borders_with", f"{CRM}P122_borders_with"),
    ],
)
def test_relations_of_a_vocabulary_are_inverse_without_a_declaration(one: str, other: str) -> None:
    found = {frozenset(pair) for pair in standard_inverses([Iri(one), Iri(other)])}
    assert found == {frozenset({Iri(one), Iri(other)})}
    assert profile((iri("a"), Iri(one), iri("b")), (iri("c"), Iri(other), iri("d"))).inverse_of(Iri(one)) == Iri(other)


@pytest.mark.parametrize(
    "pair",
    [
        (f"{CRM}P14_carried_out_by", f"{CRM}P11i_participated_in"),
        ("http://e.org/P14_carried_out_by", "http://e.org/P14i_performed"),
        ("http://schema.org/hasPart", "https://schema.org/isPartOf"),
        ("http://schema.org/worksFor", "http://schema.org/employee"),
    ],
)
def test_other_relations_are_not(pair: tuple[str, str]) -> None:
    one, other = map(Iri, pair)
    assert profile((iri("a"), one, iri("b")), (iri("c"), other, iri("d"))).inverse_of(one) is None


def test_the_relation_without_facts_has_its_inverse_and_not_the_reverse() -> None:
    known = profile((iri("a"), NARROWER, iri("b")))
    assert (known.inverse_of(BROADER), known.inverse_of(NARROWER)) == (NARROWER, None)
    assert known.unstated == (BROADER,)
    assert profile((iri("a"), NARROWER, iri("b")), standard=False).inverse_of(BROADER) is None


def test_what_a_graph_declares_comes_before_a_vocabulary() -> None:
    facts = ((iri("a"), NARROWER, iri("b")), (iri("c"), BROADER, iri("d")), (iri("e"), iri("above"), iri("f")))
    known = profile(*facts, (NARROWER, OWL_INVERSE, iri("above")))
    assert (known.inverse_of(NARROWER), known.inverse_of(BROADER)) == (iri("above"), None)


def test_of_several_declared_inverses_the_one_with_facts_counts_and_of_several_of_these_none() -> None:
    declared = [(iri("child"), OWL_INVERSE, iri(each)) for each in ("father", "mother")]
    facts = [(iri("a"), iri("child"), iri("b")), (iri("c"), iri("father"), iri("d"))]
    assert profile(*declared, *facts).inverse_of(iri("child")) == iri("father")
    both = profile(*declared, *facts, (iri("e"), iri("mother"), iri("f")))
    assert both.inverse_of(iri("child")) is None


def test_subproperties_are_found_over_several_steps_in_circles_and_backwards() -> None:
    wider = [("a", "b"), ("b", "c"), ("c", "b"), ("d", "c")]
    declared = [(iri(one), SUBPROPERTY, iri(other)) for one, other in wider]
    facts = [(iri("x"), iri(each), iri("y")) for each in ("a", "d", "e")]
    known = profile(*declared, *facts, (iri("c"), OWL_INVERSE, iri("turned")), (iri("e"), OWL_INVERSE, iri("d")))
    assert known.subproperties_of(iri("c")) == (iri("a"), iri("d"))
    assert known.subproperties_of(iri("b")) == (iri("a"), iri("d"))
    assert (known.subproperties_of(iri("turned")), known.subproperties_behind(iri("turned"))) == (
        (iri("e"),),
        (iri("a"),),
    )
    assert set(known.unstated) == {iri("b"), iri("c"), iri("turned")}
