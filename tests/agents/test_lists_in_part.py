"""What is answered from a part of a list of 300 is said to be in part, with how many of how many were seen."""

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from kg_adapters.index.build.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import Completion, Scripted, ScriptedLlm
from kg_agents.running import AgentName, Question, run_question
from kg_agents.tools.client import Toolbox, connect_tools
from kg_agents.trace import Trace
from kg_server.app import build_server
from kg_server.settings import Settings
from story_graphs import write_story
from tool_runs import answer, calls

MEMBERS = 300
OF_IT = "of the most honourable guild of makers of clocks"
GUILD = "\n".join(
    (
        "@prefix e: <http://e.org/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        'e:g rdfs:label "Guild" . e:member rdfs:label "member" . e:born rdfs:label "born" .',
        *(
            f'e:g e:member e:m{each} . e:m{each} rdfs:label "Member number {each} {OF_IT}" ; e:born {1500 + each} .'
            for each in range(MEMBERS)
        ),
    )
)
PAGE = ("GetNeighbor", {"entity": "Guild", "relation": "member", "limit": 200})
LIST = "Neighbor[Guild, member]"
CUT = "The list that the answer is taken from is not whole: {} of 300 were seen."


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guild")
    options = ImportOptions(name="story", sparql=False)
    return build_store([write_story(folder, GUILD)], folder / "store", options).folder


@pytest.fixture
async def ask(store: Path, tmp_path: Path) -> AsyncGenerator["Asking"]:
    settings = Settings(cache_folder=tmp_path, data_folder=tmp_path, embedder="lexical")
    async with (
        aclosing(LocalAdapter(open_store(store))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        yield Asking(tools, tmp_path)


class Asking:
    """Puts a question to an agent whose model replies by script."""

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        self._tools = tools
        self._path = folder / "run.jsonl"

    async def __call__(self, agent: AgentName, *script: Scripted) -> AgentAnswer:
        asked = Question("Who are the members of the Guild?", ("Guild",), agent)
        with Trace(self._path) as trace:
            return await run_question(asked, self._tools, ScriptedLlm(script), trace)


def names(prompt: str) -> list[str]:
    """Return the members that a prompt names."""
    return list(dict.fromkeys(re.findall(rf"Member number \d+ {OF_IT}", prompt)))


def naming_all(prompt: str) -> Completion:
    return answer(*names(prompt))


def of_facts(text: str) -> Callable[[str], str]:
    """Answer in ODA from all members that were numbered."""

    def reply(prompt: str) -> str:
        last = max(int(each) for each in re.findall(r"(\d+)\] Guild \| member", prompt))
        return f"Thought: so.\nKeep: none\nAction: Answer\nAnswer:\n{text.format(last)} [1-{last}]"

    return reply


def counting(prompt: str) -> str:
    left_out = int(re.findall(r"(\d+) results are left out", prompt)[-1])
    return f"Action: Finish[{MEMBERS - left_out} [1]]"


LOOK = "Thought: all of it.\nKeep: none\nAction: GetNeighbor[c1, member]"
CONVERSATIONS: dict[str, tuple[AgentName, list[Scripted], int]] = {
    "tools, all of a page": ("tools", [calls(PAGE), answer(all_of=[1])], 0),
    "tools, each of a page": ("tools", [calls(PAGE), naming_all], 0),
    "tools, the number of a page": ("tools", [calls(PAGE), lambda prompt: answer(str(len(names(prompt))))], 0),
    "oda, all that was found": ("oda", [LOOK, of_facts("all")], 200),
    "oda, the number of what was found": ("oda", [LOOK, of_facts("{}")], 200),
    "oda, something that rests on it": (
        "oda",
        [LOOK, of_facts(f"Member number 0 {OF_IT}")],
        200,
    ),
    "graph-counselor, the number of what is shown": ("graph-counselor", [f"Action: {LIST}", counting, "[yes]"], 0),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_a_part_of_a_list_is_no_whole_answer(name: str, ask: Asking) -> None:
    agent, script, seen = CONVERSATIONS[name]
    found = await ask(agent, *script)
    assert (found.status, found.stop_reason) == ("partly", "cut")
    texts, first = len(found.texts), int(re.sub(r"\D", "", found.texts[0]))
    assert found.explanation == CUT.format(seen or (texts if texts > 1 else first))


@pytest.mark.parametrize(
    ("agent", "script", "source"),
    [
        ("tools", [calls(PAGE), answer("300")], "computed"),
        ("tools", [calls(("Compose", {"expression": f"Count[{LIST}]"})), answer("300")], "computed"),
        ("graph-counselor", [f"Action: Count[{LIST}]", "Action: Finish[300]", "[yes]"], "computed"),
        (
            "tools",
            [calls(("Compose", {"expression": f"Top[{LIST}, born, 1]"})), answer("1799", cites=(1,))],
            "computed",
        ),
    ],
)
async def test_what_the_graph_works_out_of_all_members_is_whole(
    agent: AgentName, script: list[Scripted], source: str, ask: Asking
) -> None:
    found = await ask(agent, *script)
    assert (found.status, found.explanation, [each.source for each in found.answers]) == ("answered", "", [source])


async def test_a_list_of_which_all_pages_were_seen_is_whole(ask: Asking) -> None:
    pages: list[int] = [1]

    def next_page(prompt: str) -> Completion:
        if not (cursors := re.findall(r'Next page: cursor="([^"]+)"', prompt)):
            return answer(all_of=pages)
        pages.append(len(pages) + 1)
        return calls(("GetNeighbor", {**PAGE[1], "cursor": cursors[-1]}))

    found = await ask("tools", calls(PAGE), *[next_page] * 8)
    assert (found.status, len(found.texts), len(pages) > 2) == ("answered", MEMBERS, True)


async def test_some_of_a_list_that_a_model_chooses_are_an_answer(ask: Asking) -> None:
    found = await ask("tools", calls(PAGE), lambda prompt: answer(*names(prompt)[:2]))
    assert (found.status, len(found.texts)) == ("answered", 2)
