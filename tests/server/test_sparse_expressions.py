"""Compose over entities and classes of which a graph knows little: nothing, names alone, or links to themselves."""

from pathlib import Path

import pytest

from calls import call, composed
from kg_adapters.local.adapter import LocalAdapter
from small_graphs import shared_store
from sparse_graphs import GRAPHS, SPARSE, compared

EXPRESSIONS = 500
ONLY_NAMED = "Named (e:named) has no values other than names and descriptions."


@pytest.mark.parametrize("name", GRAPHS)
async def test_random_expressions_never_fail_within_and_count_what_their_sparql_counts(
    tmp_path: Path, name: str
) -> None:
    found = await compared(name, EXPRESSIONS, tmp_path)
    assert found.wrong == {}
    # Most of what fits is answered, and most of that is compared.
    assert len(found.answered) > 2 * len(found.refused)
    assert len(found.equal) > len(found.answered) / 2


@pytest.mark.parametrize("function", ["Union", "Intersect", "Minus"])
async def test_sets_of_the_values_of_what_has_names_only_are_empty_and_the_reason_is_given(
    function: str,
) -> None:
    graph = LocalAdapter(shared_store(SPARSE))
    for expression, begins in (
        ("Count[Feature[e:named]]", "0."),
        (f"{function}[Feature[e:named], Feature[e:typed]]", "0 values."),
        (f"Count[{function}[Feature[e:named], Feature[e:typed]]]", "0."),
    ):
        reply = await composed(graph, expression)
        assert not reply.is_error, reply.text
        assert reply.text == f"{begins} {ONLY_NAMED}"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("Count[Neighbor[e:named]]", "Named (e:named) has no neighbours."),
        ("Count[Neighbor[Union[e:named, e:valued]]]", "None of the 2 has neighbours."),
        ("Count[Feature[e:typed]]", "e:typed has no values other than names and descriptions."),
    ],
)
async def test_the_reason_for_nothing_over_all_relations_names_what_was_counted(expression: str, reason: str) -> None:
    reply = await composed(LocalAdapter(shared_store(SPARSE)), expression)
    assert reply.text == f"0. {reason}"


async def test_an_expression_about_a_blank_node_is_answered_though_no_query_names_it() -> None:
    graph = LocalAdapter(shared_store(SPARSE))
    reply = await call(graph, "Compose", expression="Count[Neighbor[_:maker]]", explain=True)
    assert not reply.is_error
    assert reply.text.startswith("4. ")
    assert "No query asks the same: _:maker is a blank node, which SPARQL cannot name here." in reply.text
