"""Whatever is asked, in any words: no failure of the server's own, no hang, no answer beyond its budget."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.types import CallToolResult, PromptReference, TextContent
from mcp.types import Tool as ListedTool
from pydantic import TypeAdapter

from embedders import LEXICAL
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_server.answers.results import token_count
from kg_server.app import build_server
from kg_server.settings import Settings

GENERATED: Final = 1_200
"""How many calls are generated, unless --generated-calls says otherwise."""
HANGS_S: Final = 60
MAX_TOKENS: Final = 2_000
ABOVE_BUDGET: Final = 400
"""Tokens that a summary may add to the lines of an answer."""
OURS: Final = ("failed because of an internal error", "-32603:", "0:")
"""How an answer begins, or what it holds, where the server failed and not the caller."""
CHOICES: Final = TypeAdapter(list[object])
TYPES: Final = TypeAdapter[list[str] | str | None](list[str] | str | None)
SCHEMAS: Final = TypeAdapter(list[dict[str, object]])

IDS: Final = ("Q5879", "Q937", "Q30", "P106", "wd:Q5", "http://www.wikidata.org/entity/Q64", "_:b0", "rdfs:label")
HOSTILE: Final = (
    *("", " ", "\x00", "\u202e", "\u2028", "a\nb | c | d", "' OR 1=1 --", "<script>", "{}[]()", "%00", "../../etc"),
    *("\N{FOX FACE}" * 50, "a" * 5_000, "http://[", "kg://", "SELECT * { ?s ?p ?o }", "Count[", "mem_" + "0" * 32),
    *("ASK {} ; DROP ALL", "DESCRIBE <x>", "Neighbor[" * 100, "\\u0000", "=1+1", "1-x-y", "9" * 400),
)

texts = st.one_of(st.sampled_from(IDS), st.sampled_from(HOSTILE), st.text(max_size=30))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values: st.SearchStrategy[object] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)


Arguments: TypeAlias = st.SearchStrategy[dict[str, object]]


@dataclass(frozen=True)
class Asked:
    """What is asked: a method, the name or the address in it, and its arguments."""

    method: str
    name: str
    arguments: Mapping[str, object]


def fitting(schema: Mapping[str, object]) -> st.SearchStrategy[object]:
    """Return values that a schema of an argument allows, more or less."""
    if "enum" in schema:
        return st.sampled_from(CHOICES.validate_python(schema["enum"]))
    if "anyOf" in schema:
        return st.one_of([fitting(each) for each in SCHEMAS.validate_python(schema["anyOf"])])
    kinds: Mapping[object, st.SearchStrategy[object]] = {
        "integer": st.integers(-1, 250),
        "number": st.floats(0, 120),
        "boolean": st.booleans(),
        "array": st.lists(st.one_of(texts, st.lists(texts, min_size=3, max_size=3)), max_size=4),
        "null": st.none(),
    }
    several = TYPES.validate_python(schema.get("type"))
    return st.one_of([kinds.get(each, texts) for each in (several if isinstance(several, list) else [several])])


def calls_of(tool: ListedTool) -> st.SearchStrategy[Asked]:
    """Return calls of a tool: most with arguments that fit, some with one that does not, is unknown or is missing."""
    properties: Mapping[str, Mapping[str, object]] = tool.input_schema.get("properties", {})
    required = set(tool.input_schema.get("required", ()))
    fit = {name: fitting(schema) for name, schema in properties.items()}
    right: Arguments = st.fixed_dictionaries(
        {name: fit[name] for name in required}, optional={name: fit[name] for name in fit if name not in required}
    )
    wrong: Arguments = st.dictionaries(st.one_of(st.sampled_from([*properties, "unknown"]), texts), values, max_size=3)
    return st.one_of(right, right, st.builds(joined, right, wrong), wrong).map(partial(Asked, "tools/call", tool.name))


def joined(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    return {**one, **other}


def anything(tools: list[ListedTool]) -> st.SearchStrategy[Asked]:
    """Return everything that can be asked."""
    addresses = st.one_of(texts, texts.map("kg://entity/{}".format), st.just("kg://schema"))
    worded = st.dictionaries(st.one_of(st.sampled_from(["question", "entities"]), texts), texts, max_size=3)
    prompts = st.one_of(st.sampled_from(["oda", "graph-counselor"]), texts)
    lists = st.sampled_from(["tools/list", "resources/list", "prompts/list", "resources/templates/list"])
    return st.one_of(
        *(calls_of(tool) for tool in tools),
        st.builds(Asked, st.just("tools/call"), texts, st.dictionaries(texts, values, max_size=2)),
        st.builds(Asked, st.just("resources/read"), addresses, st.just({})),
        st.builds(Asked, st.just("prompts/get"), prompts, worded),
        st.builds(Asked, st.just("completion/complete"), prompts, worded),
        st.builds(Asked, lists, texts, st.just({})),
    )


class Asking:
    """A client in a thread of its own, for tests that cannot wait."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def tools(self) -> list[ListedTool]:
        return self._portal.call(self._client.list_tools).tools

    def ask(self, asked: Asked) -> str:
        """Return the text of an answer, or of a refusal."""
        return self._portal.call(self._ask, asked)

    async def _ask(self, asked: Asked) -> str:
        with anyio.fail_after(HANGS_S):
            try:
                return await self._answer(asked)
            except MCPError as error:
                return f"{error.error.code}: {error.error.message}"

    async def _answer(self, asked: Asked) -> str:
        worded = {name: str(value) for name, value in asked.arguments.items()}
        name, value = next(iter(worded.items()), ("entities", "Q"))
        lists: Mapping[str, Callable[[], Awaitable[object]]] = {
            "tools/list": lambda: self._client.list_tools(cursor=asked.name),
            "resources/list": lambda: self._client.list_resources(cursor=asked.name),
            "prompts/list": lambda: self._client.list_prompts(cursor=asked.name),
            "resources/templates/list": lambda: self._client.list_resource_templates(cursor=asked.name),
            "prompts/get": lambda: self._client.get_prompt(asked.name, worded),
            "completion/complete": lambda: self._client.complete(
                PromptReference(type="ref/prompt", name=asked.name), {"name": name, "value": value}
            ),
        }
        if asked.method == "tools/call":
            return text_of(await self._client.call_tool(asked.name, dict(asked.arguments)))
        if asked.method == "resources/read":
            contents = (await self._client.read_resource(asked.name)).contents
            return "".join(getattr(each, "text", "") for each in contents)
        return str(await lists[asked.method]())


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    folder = tmp_path_factory.mktemp("generated")
    chosen = Settings(data_folder=folder, cache_folder=folder, embedding=LEXICAL, max_tokens=MAX_TOKENS, timeout_s=5)

    @asynccontextmanager
    async def connected() -> AsyncGenerator[Client]:
        async with (
            aclosing(LocalAdapter(open_sample(folder))) as graph,
            Client(build_server(graph, chosen)) as client,
        ):
            yield client

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connected()) as client:
        yield Asking(portal, client)


def budget_of(asked: Asked) -> int:
    """Return how many tokens an answer may have."""
    given_tokens = asked.arguments.get("max_tokens")
    most = given_tokens if isinstance(given_tokens, int) and 500 <= given_tokens <= 50_000 else MAX_TOKENS
    return (4_000 if asked.method == "resources/read" else most) + ABOVE_BUDGET


def test_no_call_whatsoever_breaks_the_server(asking: Asking, request: pytest.FixtureRequest) -> None:
    number: int = request.config.getoption("--generated-calls", GENERATED) or GENERATED

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(anything(asking.tools()))
    def check(asked: Asked) -> None:
        answer = asking.ask(asked)
        assert OURS[0] not in answer, asked
        assert not answer.startswith(OURS[1:]), (asked, answer)
        assert "pydantic" not in answer
        if asked.method in {"tools/call", "resources/read"}:
            assert token_count(answer) <= budget_of(asked), (token_count(answer), answer)

    check()
    plain = asking.ask(Asked("tools/call", "Degree", {"entity": "Q5879"}))
    assert plain.startswith("Johann Wolfgang von Goethe (Q5879) has 40 distinct neighbours")
