"""Every example of the grammar page gives an answer over the world that it is about, and its claims hold."""

import re
from pathlib import Path

import pytest

from calls import rows
from compositions import composed, refused
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.compose.syntax import FUNCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "compose.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"`((?:[A-Z][a-z]+)\[[^`…]+\])`(?= \||[.:,]| keeps|$)", PAGE, flags=re.MULTILINE)
CONCRETE = [each for each in EXAMPLES if not re.search(r"\[(?:a|node|text|class)[,\]]", each)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LocalAdapter:
    """The fictional world that ships in the wheel."""
    return LocalAdapter(open_sample(tmp_path_factory.mktemp("cache"), "sample:world"))


async def test_every_example_of_the_page_is_answered(world: LocalAdapter) -> None:
    assert {each.partition("[")[0] for each in CONCRETE} >= set(FUNCTIONS.values()) - {"Union", "Intersect", "Bottom"}
    for expression in CONCRETE:
        reply = await composed(world, expression)
        assert not reply.is_error, reply.text
        assert reply.data["status"] in {"ok", "truncated"}, reply.text


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("Sum[Neighbor[FGC, -parent company], number of employees]", "7983"),
        ("Mean[Neighbor[Icebirds of Wunminster, -home team], attendance]", "14112.4375"),
        ("Top[Neighbor[Maula Valley, -located in region], population]", None),
        ("Count[Where[Neighbor[River Surna, -crosses], length > 298 m]]", "4"),
        ("Count[Where[Neighbor[Vlenine Janstuák, -directed by], premiere > 1977]]", "3"),
    ],
)
async def test_gold_answers_are_one_call(world: LocalAdapter, expression: str, result: str | None) -> None:
    reply = await composed(world, expression)
    assert not reply.is_error, reply.text
    first = rows(reply.data["results"])[0][3]
    assert result is None or first.replace(",", "") == result


async def test_a_relation_that_is_stored_backwards_is_walked_all_the_same(world: LocalAdapter) -> None:
    assert (await composed(world, "Neighbor[w:E2611, parent]")).summary.startswith("Stechik Zdüleda (w:E9320).")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("Sum[town, population]", "'town' is a class here, which is one node. Type[town] gives its instances."),
        ("Sum[Type[film], premiere]", "Dates have no sum and no mean; Min and Max give the first and the last."),
        ("Top[Type[town], rdfs:label]", "and Top needs numbers or dates"),
        (
            "Where[Type[film], premiere > soon]",
            "has dates, and 'soon' is not a date. Write 1977, 1977-05 or 1977-05-01.",
        ),
        ("Where[Type[bridge], length > 2 km]", "is given in 'm', not in 'km'. Write the number without a unit."),
        ("Where[Type[bridge], length > long]", "has numbers, and 'long' is not a number."),
        ("Where[Type[bridge], length ~ 2]", "~ looks for a text in texts, and length (m) (w:R140) has numbers."),
        ("Where[Type[town], rdfs:label > A]", "has texts, which > cannot compare."),
        ("Where[Type[company], industry > optics]", "leads to nodes, which > cannot compare."),
    ],
)
async def test_a_wrong_form_is_refused_with_the_right_one_where_it_stands(
    world: LocalAdapter, expression: str, said: str
) -> None:
    text = await refused(world, expression)
    assert said in text
    assert text.endswith("^")


async def test_a_count_is_told_in_few_words(world: LocalAdapter) -> None:
    reply = await composed(world, "Count[Type[town]]")
    assert reply.text == "330."
    assert len(rows(reply.data["evidence"])) == 3
