"""What the answers of adapters say about themselves."""

import pytest

from kg_adapters.models import Count, Path, PathsFound
from kg_adapters.terms import BlankNode, Triple
from kg_adapters.testing import edges, iri
from path_reference import path_order


def test_a_count_says_whether_it_is_exact() -> None:
    assert (str(Count(1234567)), str(Count(1000, exact=False))) == ("1,234,567", "at least 1,000")


def test_a_count_that_found_nothing_in_its_time_says_no_number() -> None:
    assert (str(Count(0)), str(Count(0, exact=False))) == ("0", "uncounted")


@pytest.mark.parametrize(
    ("found", "exhaustive"),
    [
        (PathsFound((), Count(0), None, ()), True),
        (PathsFound((), Count(0, exact=False), "time", ()), False),
        (PathsFound((), Count(0, exact=False), "expansions", ()), False),
        (PathsFound((), Count(0), None, (iri("hub"),)), False),
    ],
)
def test_a_search_is_exhaustive_when_nothing_stopped_it_and_no_hub_was_skipped(
    found: PathsFound, exhaustive: bool
) -> None:
    assert found.exhaustive is exhaustive


def test_paths_are_sorted_by_hops_then_inner_degree_then_ids() -> None:
    blank = BlankNode("b")
    in_order = [
        Path((iri("a"), iri("z")), edges("a near z"), 0),
        Path((iri("a"), iri("z")), edges("z near a"), 0),
        Path((iri("a"), iri("y"), iri("z")), edges("a near y", "y near z"), 2),
        Path(
            (iri("a"), blank, iri("z")), (Triple(iri("a"), iri("near"), blank), Triple(blank, iri("near"), iri("z"))), 3
        ),
        Path((iri("a"), iri("m"), iri("z")), edges("a near m", "m near z"), 3),
        Path((iri("a"), iri("m"), iri("z")), edges("a near m", "m nearer z"), 3),
        Path((iri("a"), iri("c"), iri("d"), iri("z")), edges("a near c", "c near d", "d near z"), 1),
    ]
    assert sorted(in_order[3:] + in_order[:3], key=path_order) == in_order
