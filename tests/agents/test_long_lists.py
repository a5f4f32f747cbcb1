"""A list of 121 members is given whole by every agent, in few calls, though no first answer shows all of it."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from kg_adapters.index.build.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.llm import Completion, Scripted, ScriptedLlm
from kg_agents.papers.graph_counselor.agent import perform
from kg_agents.papers.graph_counselor.replies import Finish, Query, read_action
from kg_agents.running import AgentName, Question, run_question
from kg_agents.tools.client import Toolbox, connect_tools
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_agents.trace import Trace
from kg_server.app import build_server
from kg_server.settings import Settings
from story_graphs import write_story
from tool_runs import calls

MEMBERS = 121
NAMES = {f"Person number {number} of the house" for number in range(1, MEMBERS + 1)}
QUESTION = "Who are the members of the Society of Clocks?"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
GRAPH = "\n".join(
    (
        f'<http://e.org/h> {LABEL} "Society of Clocks"@en .',
        f'<http://e.org/member> {LABEL} "member"@en .',
        *(
            f'<http://e.org/m{number}> {LABEL} "Person number {number} of the house"@en .'
            for number in range(1, MEMBERS + 1)
        ),
        *(f"<http://e.org/h> <http://e.org/member> <http://e.org/m{number}> ." for number in range(1, MEMBERS + 1)),
    )
)
EXPRESSION = "Neighbor[Society of Clocks, member]"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import the graph of the society once."""
    folder = tmp_path_factory.mktemp("society")
    return build_store([write_story(folder, GRAPH)], folder / "store", ImportOptions(name="story", sparql=False)).folder


@pytest.fixture
async def society(store: Path, tmp_path: Path) -> AsyncGenerator[Toolbox]:
    """Serve it."""
    settings = Settings(cache_folder=tmp_path, data_folder=tmp_path, embedder="lexical")
    async with (
        aclosing(LocalAdapter(open_store(store))) as graph,
        connect_tools(build_server(graph, settings)) as tools,
    ):
        yield tools


def neighbors(**more: object) -> Completion:
    return calls(("GetNeighbor", {"entity": "Society of Clocks", "relation": "member", **more}))


def composed(**more: object) -> Completion:
    return calls(("Compose", {"expression": EXPRESSION, **more}))


def _named_by(prompt: str, pattern: str) -> str:
    found = re.findall(pattern, prompt)
    assert found, prompt
    return str(found[-1])


def next_page(prompt: str) -> Completion:
    return neighbors(cursor=_named_by(prompt, r'Next page: cursor="([^"]+)"'))


def with_room(prompt: str) -> Completion:
    return composed(max_tokens=int(_named_by(prompt, r"max_tokens=(\d+) shows them")))


def all_of(*numbers: int) -> Completion:
    return calls(("answer", {"all_of": list(numbers)}))


def every_fact(prompt: str) -> str:
    """Answer with all facts that the prompt numbers, and those before."""
    last = max(int(each) for each in re.findall(r"\[\d+-(\d+)\]", prompt))
    return f"Thought: these are all.\nKeep: none\nAction: Answer\nAnswer:\nall [1-{last}]"


CONVERSATIONS: dict[str, tuple[AgentName, list[Scripted]]] = {
    "tools, with more room": ("tools", [composed(), with_room, all_of(2)]),
    "tools, page by page": ("tools", [neighbors(), next_page, next_page, all_of(1, 2, 3)]),
    "oda": ("oda", ["Thought: all of it.\nKeep: none\nAction: GetNeighbor[c1, member]", every_fact]),
    "graph-counselor": (
        "graph-counselor",
        [f"Plan: list\nThought: them\nAction: {EXPRESSION}", "Thought: done.\nAction: Finish[all of 1]", "[yes]"],
    ),
    "graph-counselor, by a form": (
        "graph-counselor",
        [f'{{"expression": "{EXPRESSION}"}}', '{"expression": "", "answers": ["all of observation 1"]}', "[yes]"],
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_every_member_is_answered_with_the_fact_that_states_it(
    name: str, society: Toolbox, tmp_path: Path
) -> None:
    agent, script = CONVERSATIONS[name]
    asked = Question(QUESTION, ("Society of Clocks",), agent)
    with Trace(tmp_path / "record.jsonl") as trace:
        answer = await run_question(asked, society, ScriptedLlm(script), trace)
    assert (answer.status, set(answer.texts), answer.usage.calls) == ("answered", NAMES, len(script))
    assert {(each.source, len(each.facts)) for each in answer.answers} == {("graph", 1)}


@pytest.mark.parametrize(
    "script",
    [
        [neighbors(), next_page, all_of(1, 2)],
        [neighbors(), next_page, next_page, all_of(2, 3)],
        [composed(), all_of(1)],
    ],
)
async def test_an_answer_of_which_a_page_is_missing_is_said_to_be_in_part(
    script: list[Scripted], society: Toolbox, tmp_path: Path
) -> None:
    with Trace(tmp_path / "record.jsonl") as trace:
        answer = await run_question(Question(QUESTION, agent="tools"), society, ScriptedLlm(script), trace)
    assert (answer.status, answer.stop_reason, len(answer.texts) < MEMBERS) == ("partly", "cut", True)


async def test_a_list_that_is_not_there_is_sent_back(society: Toolbox, tmp_path: Path) -> None:
    said = "Observation 7 is not a list, or not all of it is shown."

    def after_that(prompt: str) -> str:
        assert said in prompt
        return "Thought: x\nAction: Finish[all of 1]"

    script: list[Scripted] = [f"Action: {EXPRESSION}", "Thought: x\nAction: Finish[all of 7]", after_that, "[yes]"]
    with Trace(tmp_path / "record.jsonl") as trace:
        asked = Question(QUESTION, ("Society of Clocks",), "graph-counselor")
        assert set((await run_question(asked, society, ScriptedLlm(script), trace)).texts) == NAMES


async def test_the_paper_looks_once_and_takes_what_it_finishes_with_to_the_letter(society: Toolbox) -> None:
    seen = await perform(KnowledgeGraph(society), Query((EXPRESSION,)))
    assert (len(seen.facts) < MEMBERS, seen.whole) == (True, False)
    assert read_action("Action: Finish[all of 1]", 2) == Finish("all of 1", None, (Cited("all", (1,)),))


def test_all_of_facts_that_share_no_end_names_nothing() -> None:
    ledger = Ledger()
    numbers = [ledger.number(fact) for fact in (("a", "r", "b"), ("c", "r", "d"), ("c", "r", "b"))]
    assert (ledger.listed(numbers[:2]), ledger.listed([numbers[0], numbers[2]])) == ((), ("a", "c"))
