"""Arguments that are wrong, odd or huge."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import anyio
import pytest
from mcp import Client

from calls import UNHURRIED, Reply, call, refusal, reply_of
from kg_adapters.errors import BackendUnavailable
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.models import Candidate, Description, FeaturePage, PathRequest, PathsFound
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Node
from kg_server.app import build_server
from played_time import let_pass

LONG_ID = "http://example.org/" + "x" * 1_900


async def test_a_wrong_value_is_repeated_as_the_caller_wrote_it(tokyo: LocalAdapter) -> None:
    assert "limit=[null]:" in await refusal(tokyo, "GetNeighbor", entity="Q1490", limit=[None])
    assert "entity=true:" in await refusal(tokyo, "Degree", node=True)
    assert 'entity={"a": ["b"]}:' in await refusal(tokyo, "Degree", node={"a": ["b"]})
    assert "limit='many':" in await refusal(tokyo, "GetNeighbor", entity="Q1490", limit="many")


async def test_too_many_texts_are_refused_for_their_number_alone(tokyo: LocalAdapter) -> None:
    said = await refusal(tokyo, "Retrieve", text=["Tokyo"] * 51)
    assert said.count("text=") == 1
    assert said.endswith("the list must have at most 50 items, not 51.")
    assert await refusal(tokyo, "Retrieve", text=7) != said
    assert "item 2 of text='': the text must" in await refusal(tokyo, "Retrieve", text=["Tokyo", ""])
    assert (await refusal(tokyo, "Retrieve", text=["Tokyo", " "])).startswith("Item 2 of the texts is blank.")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("GetNeighbor", {"entity": LONG_ID}),
        ("GetNeighbor", {"entity": "Q1490", "relation": LONG_ID}),
        ("GetNeighbor", {"entity": "Q1490", "relation": "x" * 1_999}),
        ("GetPath", {"source": LONG_ID, "target": "Q17"}),
        ("Feature", {"entity": "Q1490", "feature": LONG_ID}),
        ("Feature", {"entity": "Q1490", "feature": "x" * 1_999}),
        ("Degree", {"entity": LONG_ID}),
        ("Retrieve", {"text": "Tokyo", "type": LONG_ID}),
    ],
)
async def test_a_long_id_is_not_echoed_at_length(tokyo: LocalAdapter, tool: str, arguments: dict[str, str]) -> None:
    assert len((await call(tokyo, tool, **arguments)).text) < 400


async def test_an_unknown_feature_is_answered_with_those_that_exist(tokyo: LocalAdapter) -> None:
    assert (await call(tokyo, "Feature", entity="Q17", feature="popullation")).plain.text == (
        "Japan is known here. No feature of this graph is called 'popullation'. Did you mean population? "
        "It has rdfs:label."
    )
    assert await refusal(tokyo, "Feature", entity="Q17", feature="P9999") == (
        "This graph has no relation 'P9999'. Feature without a feature lists all values."
    )


async def test_an_entity_without_any_value_is_told_apart_from_an_unknown_one(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    graph = graph_of('@prefix e: <http://e.org/> . e:a e:r e:b . e:c e:name "C" .')
    bare = await call(graph, "Feature", entity="e:a")
    named = await call(graph, "Feature", entity="e:a", feature="e:name")
    assert bare.summary == "e:a is known, but has no values. GetNeighbor shows its triples."
    assert named.summary == (
        "e:a has no value of e:name here; of 3 entities 1 has one, so its absence proves nothing. "
        "It has no values at all. GetNeighbor shows its triples."
    )


async def test_a_relation_in_the_place_of_a_type_is_told_where_it_belongs(tokyo: LocalAdapter) -> None:
    text = await refusal(tokyo, "Retrieve", text="Tokyo", type="P36")
    assert text == "This graph has no entity 'P36'. capital is a relation: give it as the relation."


async def test_an_unknown_id_with_a_known_name_in_it_suggests_that(graph_of: Callable[[str], LocalAdapter]) -> None:
    graph = graph_of("@prefix e: <http://e.org/> . e:Tokyo e:capital e:Shinjuku .")
    text = await refusal(graph, "GetNeighbor", entity="http://other.org/Tokyo")
    relation = await refusal(graph, "Degree", entity="e:Tokyo", relation="e:capitol")
    assert text == (
        "This graph has no entity 'http://other.org/Tokyo'. Did you mean e:Tokyo? Retrieve finds the id of a name."
    )
    assert relation == (
        "This graph has no relation 'e:capitol'. Did you mean e:capital? "
        "Degree lists the relations of an entity, Schema all."
    )


async def test_a_relation_that_resembles_none_around_is_looked_for_in_the_whole_graph(tokyo: LocalAdapter) -> None:
    assert (await call(tokyo, "GetNeighbor", entity="Q17", relation="located")).plain.text == (
        "Japan is known here. No relation of this graph is called 'located'. Did you mean located in? "
        "It has country, capital."
    )
    for text in ("zzzz", "_:b1"):
        assert (await call(tokyo, "GetNeighbor", entity="Q17", relation=text)).plain.text == (
            f"Japan is known here. No relation of this graph is called '{text}'. It has country, capital."
        )


async def test_relations_and_values_that_do_not_fit_are_said_to_be_missing_with_what_to_do(
    graph_of: Callable[[str], LocalAdapter],
) -> None:
    facts = " ".join(f'e:a e:r{number:04} e:b ; e:f{number:04} "{"x" * 50}" .' for number in range(400))
    graph = graph_of(f"@prefix e: <http://e.org/> . {facts}")
    degree = await call(graph, "Degree", entity="e:a")
    values = await call(graph, "Feature", entity="e:a")
    assert degree.data["status"] == values.data["status"] == "truncated"
    assert "rarest relations are left out; name one to count it" in degree.summary
    assert "name a feature to see more of it" in values.summary


class Stalling(LocalAdapter):
    """A graph that never answers `features`, and takes its time over paths."""

    def __init__(self, graph: LocalAdapter, reported: anyio.Event) -> None:
        super().__init__(graph.store)
        self.reported = reported
        self.reached = anyio.Event()
        self.stopped = anyio.Event()

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        self.reached.set()
        try:
            await anyio.sleep_forever()
            raise AssertionError
        finally:
            self.stopped.set()

    async def paths(self, request: PathRequest) -> PathsFound:
        await self.reported.wait()
        return await super().paths(request)


class Crashing(LocalAdapter):
    """A graph with a bug."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        raise KeyError("secret=hunter2")


class Gone(LocalAdapter):
    """A graph whose backend is gone."""

    def __init__(self, graph: LocalAdapter) -> None:
        super().__init__(graph.store)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        raise BackendUnavailable("The graph at http://127.0.0.1:9 refused the connection. Is it running?")


async def test_a_call_that_takes_too_long_is_stopped_while_others_go_on(tokyo: LocalAdapter) -> None:
    graph = Stalling(tokyo, anyio.Event())
    replies: list[str] = []
    others: list[Reply] = []
    async with Client(build_server(graph, UNHURRIED)) as client, anyio.create_task_group() as tasks:

        async def stall() -> None:
            replies.append(reply_of(await client.call_tool("Feature", {"entity": "Q1490"})).text)

        tasks.start_soon(stall)
        await graph.reached.wait()
        others.extend([reply_of(await client.call_tool("Degree", {"entity": "Q1490"})) for _ in range(20)])
        let_pass(UNHURRIED.timeout_s)
        await graph.stopped.wait()
    assert not any(other.is_error for other in others)
    assert replies == [
        "Feature took longer than 600 seconds and was stopped. "
        "To wait longer, raise the setting timeout_s (KG_SEXTANT_TIMEOUT_S). Or ask for less: a single feature."
    ]


async def test_a_long_search_gives_signs_of_life(tokyo: LocalAdapter) -> None:
    reported = anyio.Event()
    messages: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert total is not None
        assert 0 < progress <= total
        messages.append(message)
        reported.set()

    async with Client(build_server(Stalling(tokyo, reported), UNHURRIED)) as client:
        arguments = {"source": "Q1490", "target": "Q17"}
        reply = reply_of(await client.call_tool("GetPath", arguments, progress_callback=on_progress))
    assert not reply.is_error
    assert messages
    assert all(re.fullmatch(r"searching paths, \d+ s of at most 600 s", each or "") for each in messages)


async def test_a_bug_is_hidden_from_the_model_and_logged_in_a_line_with_its_number(
    tokyo: LocalAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "kg_server.mcp_server")
    reply = await call(Crashing(tokyo), "Degree", entity="Q1490")
    assert reply.is_error
    found = re.search(r"internal error, number (\d+) in the server's log\. Other calls still work\.", reply.text)
    assert found is not None
    records = [each for each in caplog.records if f"Internal error {found[1]}" in each.message]
    assert [(each.levelname, each.exc_info is not None) for each in records] == [("ERROR", False), ("DEBUG", True)]
    assert "KeyError" in records[0].message
    assert "\n" not in records[0].message


async def test_a_backend_that_is_gone_is_named_to_the_model(tokyo: LocalAdapter) -> None:
    reply = await call(Gone(tokyo), "Retrieve", text="Tokyo")
    assert reply.is_error
    assert reply.text == "The graph at http://127.0.0.1:9 refused the connection. Is it running?"


async def test_many_clients_at_once_get_the_same_answers_as_one(sample: LocalAdapter) -> None:
    entities = ["Q5879", "Q937", "Q30", "Q1490", "Q45765", "Q5", "Q183", "Q64"]
    alone = [await call(sample, "GetNeighbor", entity=entity, direction="both") for entity in entities]
    together: dict[int, object] = {}

    async def ask(number: int) -> None:
        entity = entities[number % len(entities)]
        together[number] = await call(sample, "GetNeighbor", entity=entity, direction="both")

    async with anyio.create_task_group() as tasks:
        for number in range(32):
            tasks.start_soon(ask, number)
    assert [together[number] for number in range(32)] == alone * 4
