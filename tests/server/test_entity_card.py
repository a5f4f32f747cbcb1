"""Retrieve shows a card where one entity is meant."""

import statistics
from collections.abc import Callable

import pytest

from calls import call, rows, texts
from kg_adapters.local.adapter import LocalAdapter
from kg_server.answers.cards import CARD_TOKENS
from kg_server.answers.results import token_count


def name(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}")


MANY = "".join(f"<http://ex.org/{name(n)}> <http://ex.org/citizen> <http://ex.org/land> . " for n in range(70)) + (
    '<http://ex.org/land> <http://www.w3.org/2000/01/rdf-schema#label> "Land" ; <http://ex.org/area> 1250 ; '
    "<http://ex.org/borders> <http://ex.org/a> , <http://ex.org/b> ; <http://ex.org/held> [ <http://ex.org/by> "
    "<http://ex.org/aaa> ; <http://ex.org/until> 1990 ] ."
)


async def test_a_name_of_one_thing_is_answered_by_its_card(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "Retrieve", text="Tokyo")
    assert reply.plain.text == (
        "Exact: 'Tokyo' names one thing.\n"
        "Tokyo | capital of Japan | city\n"
        "population | 13,960,236\n"
        "country | Japan\n"
        "capital | Shinjuku\n"
        "-located in | Shinjuku\n"
        "-capital | Japan"
    )
    assert rows(reply.data["card"])[0] == ["out", "P1082", "1", "13,960,236"]
    assert texts(reply.data["labels"])["P36"] == "capital"


async def test_relations_are_counted_and_a_few_neighbours_named(graph_of: Callable[[str], LocalAdapter]) -> None:
    reply = await call(graph_of(MANY), "Retrieve", text="Land")
    shown = [line.replace("ex:", "") for line in reply.lines[1:]]
    assert shown[0].endswith("| 1250")
    assert shown[1].endswith("| 2: a, b")
    assert shown[2].endswith("[by aaa; until 1990]")
    assert shown[3].endswith("| 70: aaa, aab, aac, …")


def prefixed(*lines: str) -> str:
    head = "@prefix e: <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
    return f"{head}@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . e:land rdfs:label 'Land' . {' '.join(lines)}"


async def test_a_relation_of_which_the_page_held_a_part_is_counted(graph_of: Callable[[str], LocalAdapter]) -> None:
    """Four facts of each of fifty relations are more than a page: of the last ones it holds three."""
    graph = graph_of(prefixed(*(f"e:land e:r{name(n)} e:a, e:b, e:c, e:d, e:f ." for n in range(50))))
    reply = await call(graph, "Retrieve", text="Land")
    assert {row[2] for row in rows(reply.data["card"])} == {"5"}
    assert reply.lines[-1].startswith("also | ")
    assert {part.rsplit(" ", 1)[1] for part in reply.lines[-1].removeprefix("also | ").split("; ")[:-1]} == {"5"}


async def test_relations_that_no_longer_fit_on_the_page_are_counted_too(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(prefixed(*(f"e:land e:r{name(n)} e:a, e:b ." for n in range(200))))
    reply = await call(graph, "Retrieve", text="Land")
    shown = len(rows(reply.data["card"]))
    listed = reply.lines[-1].removeprefix("also | ").split("; ")
    assert {row[2] for row in rows(reply.data["card"])} == {"2"}
    assert listed[-1] == f"and {200 - shown - len(listed) + 1} more"


async def test_what_is_stored_both_ways_is_shown_once_and_counted_whole(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    towers = (f"e:t{name(n)} e:in e:land ." for n in range(12))
    graph = graph_of(prefixed("e:in owl:inverseOf e:has . e:land e:has e:taaa, e:taab, e:taac, e:taad .", *towers))
    reply = await call(graph, "Retrieve", text="Land")
    assert reply.lines[1:] == ["e:has | 12: e:taaa, e:taab, e:taac, …"]


@pytest.mark.parametrize("arguments", [{"text": ["Tokyo", "Japan"]}, {"text": "Kyoto"}])
async def test_several_texts_and_what_is_not_here_have_no_card(
    tokyo: LocalAdapter, arguments: dict[str, object]
) -> None:
    assert "card" not in (await call(tokyo, "Retrieve", **arguments)).data


async def test_cards_are_short(sample: LocalAdapter) -> None:
    names = ["Albert Einstein", "Germany", "Johann Wolfgang von Goethe", "United States of America", "Berlin", "Japan"]
    sizes = [token_count("\n".join((await call(sample, "Retrieve", text=name)).lines[1:])) for name in names]
    assert statistics.median(sizes) <= 250
    assert max(sizes) <= CARD_TOKENS + 20
