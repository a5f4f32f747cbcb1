# ruff: noqa: D102, S101 - the name of a test is its sentence, and assert is how it speaks
"""What the contract says about the profile of a graph."""

import pytest

from kg_adapters.profile import (
    ClassProfile,
    Coverage,
    GraphProfile,
    InverseRelations,
    PropertyProfile,
    ValueCount,
    ValueRange,
)
from kg_adapters.terms import RDF_LANG_STRING, XSD, Iri, Literal
from kg_adapters.testing.graphs import NAMES, iri, typed
from kg_adapters.testing.opening import GraphOpening

_DATE = Iri(XSD + "date")
_NUMBER = Iri(XSD + "decimal")
_RIVERS = (
    "river type Kind",
    "brook type Kind",
    "stream subClassOf river",
    *("rhine type river", "elbe type river", "ahr type stream", "cologne type town"),
    *("rhine flowsThrough cologne", "rhine flowsThrough bonn", "cologne onRiver rhine", "elbe flowsThrough cologne"),
    *(f'{name} length "{size}"^^<{XSD}decimal>' for name, size in (("rhine", "1233"), ("elbe", "1094.5"))),
    f'ahr surveyed "1987-03-01"^^<{XSD}date>',
    f'elbe surveyed "-0044-03-15"^^<{XSD}date>',
    'length label "length (km)"@en',
    'river label "river"@en',
    'onRiver label "on river"@en',
    "flowsThrough inverseOf onRiver",
)


class ProfileContract(GraphOpening):
    """Which facts the classes of the graph have, and how many of their instances."""

    async def profile_of(self, *statements: str) -> GraphProfile:
        async with self.opened(statements) as graph:
            found = await graph.profile()
        if not found.complete:
            pytest.skip("this graph knows no profile of all its classes")
        return found

    async def test_the_profile_of_a_class_counts_its_instances_and_what_they_have(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert profile.profile_of(iri("river")) == ClassProfile(
            iri=iri("river"),
            label="river",
            instances=3,
            direct=2,
            broader=(),
            properties=(
                PropertyProfile(NAMES["type"], "out", None, 3, 3, ((iri("Kind"), 2),)),
                PropertyProfile(iri("flowsThrough"), "out", None, 2, 3, ((iri("town"), 2),)),
                PropertyProfile(
                    iri("length"),
                    "out",
                    "length (km)",
                    2,
                    2,
                    values=ValueRange((_NUMBER,), typed("1094.5", "decimal"), typed("1233", "decimal"), "km"),
                ),
                PropertyProfile(
                    iri("surveyed"),
                    "out",
                    None,
                    2,
                    2,
                    values=ValueRange((_DATE,), typed("-0044-03-15", "date"), typed("1987-03-01", "date")),
                ),
                PropertyProfile(iri("onRiver"), "in", "on river", 1, 1, ((iri("town"), 1),)),
            ),
        )

    async def test_the_profile_of_everything_counts_the_entities_that_have_a_relation(self) -> None:
        everything = (await self.profile_of(*_RIVERS)).everything
        assert everything.property(NAMES["label"]) == PropertyProfile(
            NAMES["label"], "out", None, 2, 2, values=ValueRange((RDF_LANG_STRING,))
        )
        assert everything.coverage(iri("length")) == Coverage(None, None, iri("length"), "out", everything.instances, 2)

    async def test_the_profile_lists_the_largest_class_first(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert [(each.iri, each.instances) for each in profile.classes] == [
            (iri("river"), 3),
            (iri("Kind"), 2),
            (iri("stream"), 1),
            (iri("town"), 1),
        ]
        assert profile.classes[2].broader == (iri("river"),)

    async def test_the_profile_says_how_many_instances_have_what_none_has(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert profile.coverage(iri("river"), iri("captain")) == Coverage(
            iri("river"), "river", iri("captain"), "out", 3, 0
        )
        assert profile.coverage(iri("Atlantis"), iri("captain")) is None

    async def test_the_profile_counts_values_by_kind_without_names(self) -> None:
        profile = await self.profile_of(*_RIVERS, 'rhine motto "panta rhei"', 'rhine altLabel "Rhein"@de')
        assert profile.values == (ValueCount("date", 2), ValueCount("number", 2), ValueCount("text", 1))

    async def test_numbers_of_other_datatypes_than_those_of_xml_schema_are_quantities(self) -> None:
        fathom = iri("fathom")
        depths = (f'{name} depth "{depth}"^^<{fathom}>' for name, depth in (("rhine", "9"), ("elbe", "10.5")))
        codes = (f'{name} code "{name}"^^<{iri("code")}>' for name in ("rhine", "elbe"))
        profile = await self.profile_of(*_RIVERS, *depths, *codes)
        depth, code = (profile.everything.property(iri(name)) for name in ("depth", "code"))
        assert depth is not None and code is not None  # noqa: PT018
        assert depth.values == ValueRange((fathom,), Literal("9", fathom), Literal("10.5", fathom))
        assert code.values == ValueRange((iri("code"),))
        assert profile.values == (ValueCount("date", 2), ValueCount("number", 4), ValueCount("text", 2))

    async def test_declared_inverses_are_found_and_their_pairs_counted(self) -> None:
        profile = await self.profile_of(*_RIVERS)
        assert profile.inverses == (
            InverseRelations(iri("flowsThrough"), iri("onRiver"), True, both=1, only_relation=2, only_inverse=0),
        )

    async def test_relations_that_are_stored_both_ways_are_inverse_or_symmetric(self) -> None:
        sides = [f"town{n} twin town{n + 1}" for n in range(40)] + [f"town{n + 1} twin town{n}" for n in range(35)]
        owned = [f"town{n} owns farm{n}" for n in range(30)] + [f"farm{n} ownedBy town{n}" for n in range(4, 34)]
        likes = [f"town{n} likes farm{n}" for n in range(30)] + [f"farm{n} likes town{n}" for n in range(5)]
        profile = await self.profile_of(*sides, *owned, *likes)
        assert profile.inverses == (
            InverseRelations(iri("ownedBy"), iri("owns"), False, both=26, only_relation=4, only_inverse=4),
            InverseRelations(iri("twin"), iri("twin"), False, both=35, only_relation=5, only_inverse=0),
        )
        assert (profile.inverse_of(iri("owns")), profile.inverse_of(iri("twin"))) == (iri("ownedBy"), iri("twin"))
        assert profile.inverse_of(iri("likes")) is None

    async def test_a_child_is_the_inverse_of_neither_father_nor_mother(self) -> None:
        fathers = [f"p{n} child c{n}" for n in range(60)] + [f"c{n} father p{n}" for n in range(60)]
        mothers = [f"m{n} child c{n}" for n in range(30)] + [f"c{n} mother m{n}" for n in range(30)]
        assert (await self.profile_of(*fathers, *mothers)).inverses == ()
