from collections.abc import Callable
from dataclasses import replace

from calls import call, paths, refusal
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Count, PathRequest, PathsFound


async def test_a_path_is_one_line_that_shows_the_real_direction_of_every_edge(tokyo: LocalAdapter) -> None:
    reply = await call(tokyo, "GetPath", source="Q179645", target="Q17", max_hops=2)
    assert reply.text == (
        "4 paths link Shinjuku (Q179645) and Japan (Q17) within 2 hops. "
        "The search was exhaustive, except for type relations.\n"
        "Shinjuku (Q179645) -[country (P17)]-> Japan (Q17)\n"
        "Shinjuku (Q179645) <-[capital (P36)]- Tokyo (Q1490) -[country (P17)]-> Japan (Q17)\n"
        "Shinjuku (Q179645) <-[capital (P36)]- Tokyo (Q1490) <-[capital (P36)]- Japan (Q17)\n"
        "Shinjuku (Q179645) -[located in (P131)]-> Tokyo (Q1490) -[country (P17)]-> Japan (Q17)\n"
        "Shinjuku (Q179645) -[located in (P131)]-> Tokyo (Q1490) <-[capital (P36)]- Japan (Q17)"
    ).replace("4 paths", "5 paths")
    assert reply.data["exhaustive"] is True
    assert reply.data["total"] == 5


async def test_what_both_ends_share_over_a_relation_is_one_line_and_every_path_stays_in_the_data(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    shared = " , ".join(f"e:job{number:02}" for number in range(21))
    graph = graph_of(
        f"@prefix e: <http://e.org/> . e:a e:does {shared} ; e:near e:n . e:b e:does {shared} ; e:likes e:n . "
        "e:film1 e:cast e:a , e:b . e:film2 e:cast e:a , e:b ."
    )
    reply = await call(graph, "GetPath", source="e:a", target="e:b", max_hops=2, limit=50)
    nodes = ", ".join(f"e:job{number:02}" for number in range(20))
    assert reply.lines == [
        f"both | e:does | {nodes}",
        "e:a -[e:does]-> e:job20 <-[e:does]- e:b",
        "e:a -[e:near]-> e:n <-[e:likes]- e:b",
        "both | -e:cast | e:film1, e:film2",
    ]
    found = paths(reply.data["paths"])
    assert (len(found), reply.data["total"], reply.data["status"]) == (24, 24, "ok")
    assert found[-2] == [["e:film1", "e:cast", "e:a"], ["e:film1", "e:cast", "e:b"]]
    assert len({str(path) for path in found}) == 24


async def test_a_node_without_a_name_on_a_path_is_shown_with_what_else_it_holds(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of(
        "@prefix e: <http://e.org/> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> . "
        'e:a r:label "Ann" ; e:career [ e:at e:b ; e:role e:chief ; e:from 1993 ] . e:b r:label "Bank" .'
    )
    reply = await call(graph, "GetPath", source="e:a", target="e:b", max_hops=2)
    (line,) = reply.plain.lines
    blank = line.partition("]-> ")[2].partition(" ")[0]
    assert line == f"Ann -[e:career]-> {blank} [from 1993; role e:chief] -[e:at]-> Bank"
    held = [[blank, "e:from", "1993"], [blank, "e:role", "e:chief"]]
    assert (paths(reply.data["paths"]), reply.data["held"]) == (
        [[["e:a", "e:career", blank], [blank, "e:at", "e:b"]]],
        held,
    )


async def test_a_question_brings_the_paths_most_like_it_to_the_front(tokyo: LocalAdapter) -> None:
    reply = await call(
        tokyo, "GetPath", source="Q179645", target="Q17", max_hops=2, limit=1, question="In what is it located?"
    )
    assert reply.plain.lines[0].startswith("Shinjuku -[located in]-> Tokyo")
    assert reply.data["status"] == "truncated"


class Hasty(LocalAdapter):
    """Stops a search for paths after one edge."""

    async def paths(self, request: PathRequest) -> PathsFound:
        return await super().paths(replace(request, max_expansions=1))


async def test_no_path_within_the_hops_is_told_apart_from_a_search_that_stopped(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    chain = graph_of("@prefix e: <http://e.org/> . e:a e:r e:b . e:b e:r e:c . e:c e:r e:d . e:x e:r e:y .")
    none = await call(chain, "GetPath", source="e:a", target="e:d", max_hops=2)
    stopped = await call(Hasty(chain.store), "GetPath", source="e:a", target="e:d", max_hops=3)
    assert none.data["status"] == "empty"
    assert none.summary.startswith("No path links e:a and e:d within 2 hops.")
    assert stopped.data["status"] == "truncated"
    assert "stopped early" in stopped.summary


async def test_hubs_are_named_when_they_are_skipped_and_walked_on_demand(hub: LocalAdapter) -> None:
    ends = {"source": "ex:person0001", "target": "ex:person0002"}
    careful = await call(hub, "GetPath", **ends)
    bold = await call(hub, "GetPath", **ends, avoid_hubs=False)
    assert careful.data["exhaustive"] is False
    assert careful.data["skipped_hubs"] == ["ex:land"]
    assert "Hubs left out: ex:land" in careful.summary
    assert bold.lines == ["ex:person0001 -[ex:citizen]-> ex:land <-[ex:citizen]- ex:person0002"]


async def test_wrong_ends_are_refused(tokyo: LocalAdapter) -> None:
    assert "no entity 'Q424242'" in await refusal(tokyo, "GetPath", source="Q1490", target="Q424242")
    assert "No entity matches 'Osaka'" in await refusal(tokyo, "GetPath", source="Osaka", target="Q17")
    assert "are both" in await refusal(tokyo, "GetPath", source="Q1490", target="wd:Q1490")
    assert "less than or equal to 4" in await refusal(tokyo, "GetPath", source="Q1490", target="Q17", max_hops=9)


class Slow(LocalAdapter):
    """A graph whose path search runs into its deadline after one path."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def paths(self, request: PathRequest) -> PathsFound:
        found = await super().paths(request)
        return replace(found, paths=found.paths[:1], total=Count(1, exact=False), stopped="time")


async def test_a_search_that_ran_out_of_time_says_so_and_shows_what_it_has(tokyo: LocalAdapter) -> None:
    reply = await call(Slow(tokyo), "GetPath", source="Q179645", target="Q17")
    assert reply.plain.summary == (
        "at least 1 path links Shinjuku and Japan within 3 hops. "
        "The search stopped early, at its deadline: fewer hops need less."
    )
    assert (reply.data["status"], reply.data["exhaustive"], len(reply.plain.lines)) == ("timeout", False, 1)
