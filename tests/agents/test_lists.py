"""Long lists, and lists of which a run saw only a part."""

import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from kg_agents.evidence.ledger import Cited, Ledger
from kg_agents.llm import Completion, Scripted
from kg_agents.papers.graph_counselor.manners import perform
from kg_agents.papers.graph_counselor.replies import Finish, Query, read_action
from kg_agents.parameters import AGENTS, AgentName, CounselorSettings, ToolsSettings
from kg_agents.running import Question
from kg_agents.tools.client import Toolbox
from kg_agents.tools.knowledge import KnowledgeGraph
from oda_runs import answer, answered, calls, serving_store, story_store

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
def store() -> Path:
    """Import the graph of the society once."""
    return story_store(GRAPH)


@pytest.fixture
async def society(store: Path, tmp_path: Path) -> AsyncGenerator[Toolbox]:
    """Serve it."""
    async with serving_store(store, tmp_path) as tools:
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
    asked = Question(QUESTION, ("Society of Clocks",), AGENTS[agent]())
    answer = await answered(asked, society, tmp_path, *script)
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
    answer = await answered(Question(QUESTION, settings=ToolsSettings()), society, tmp_path, *script)
    assert (answer.status, answer.stop_reason, len(answer.texts) < MEMBERS) == ("partly", "cut", True)


async def test_a_list_that_is_not_there_is_sent_back(society: Toolbox, tmp_path: Path) -> None:
    said = "Observation 7 is not a list, or not all of it is shown."

    def after_that(prompt: str) -> str:
        assert said in prompt
        return "Thought: x\nAction: Finish[all of 1]"

    script: list[Scripted] = [f"Action: {EXPRESSION}", "Thought: x\nAction: Finish[all of 7]", after_that, "[yes]"]
    asked = Question(QUESTION, ("Society of Clocks",), CounselorSettings())
    assert set((await answered(asked, society, tmp_path, *script)).texts) == NAMES


async def test_the_paper_looks_once_and_takes_what_it_finishes_with_to_the_letter(society: Toolbox) -> None:
    seen = await perform(KnowledgeGraph(society), Query((EXPRESSION,)))
    assert (len(seen.facts) < MEMBERS, seen.whole) == (True, False)
    assert read_action("Action: Finish[all of 1]", 2) == Finish("all of 1", None, (Cited("all", (1,)),))


def test_all_of_facts_that_share_no_end_names_nothing() -> None:
    ledger = Ledger()
    numbers = [ledger.number(fact) for fact in (("a", "r", "b"), ("c", "r", "d"), ("c", "r", "b"))]
    assert (ledger.listed(numbers[:2]), ledger.listed([numbers[0], numbers[2]])) == ((), ("a", "c"))


PART = 300

OF_IT = "of the most honourable guild of makers of clocks"

GUILD = "\n".join(
    (
        "@prefix e: <http://e.org/> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        'e:g rdfs:label "Guild" . e:member rdfs:label "member" . e:born rdfs:label "born" .',
        *(
            f'e:g e:member e:m{each} . e:m{each} rdfs:label "Member number {each} {OF_IT}" ; e:born {1500 + each} .'
            for each in range(PART)
        ),
    )
)

PAGE = ("GetNeighbor", {"entity": "Guild", "relation": "member", "limit": 200})

LIST = "Neighbor[Guild, member]"

CUT = "The list that the answer is taken from is not whole: {} of 300 were seen."


@pytest.fixture(scope="module")
def partial_store() -> Path:
    return story_store(GUILD)


@pytest.fixture
async def guild(partial_store: Path, tmp_path: Path) -> AsyncGenerator[Toolbox]:
    async with serving_store(partial_store, tmp_path) as tools:
        yield tools


def members(agent: AgentName) -> Question:
    return Question("Who are the members of the Guild?", ("Guild",), AGENTS[agent]())


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
    return f"Action: Finish[{PART - left_out} [1]]"


LOOK = "Thought: all of it.\nKeep: none\nAction: GetNeighbor[c1, member]"

PARTIAL_CONVERSATIONS: dict[str, tuple[AgentName, list[Scripted], int]] = {
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


@pytest.mark.parametrize("name", PARTIAL_CONVERSATIONS)
async def test_a_part_of_a_list_is_no_whole_answer(name: str, guild: Toolbox, tmp_path: Path) -> None:
    agent, script, seen = PARTIAL_CONVERSATIONS[name]
    found = await answered(members(agent), guild, tmp_path, *script)
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
    agent: AgentName, script: list[Scripted], source: str, guild: Toolbox, tmp_path: Path
) -> None:
    found = await answered(members(agent), guild, tmp_path, *script)
    assert (found.status, found.explanation, [each.source for each in found.answers]) == ("answered", "", [source])


async def test_a_list_of_which_all_pages_were_seen_is_whole(guild: Toolbox, tmp_path: Path) -> None:
    pages: list[int] = [1]

    def next_page(prompt: str) -> Completion:
        if not (cursors := re.findall(r'Next page: cursor="([^"]+)"', prompt)):
            return answer(all_of=pages)
        pages.append(len(pages) + 1)
        return calls(("GetNeighbor", {**PAGE[1], "cursor": cursors[-1]}))

    found = await answered(members("tools"), guild, tmp_path, calls(PAGE), *[next_page] * 8)
    assert (found.status, len(found.texts), len(pages) > 2) == ("answered", PART, True)


async def test_some_of_a_list_that_a_model_chooses_are_an_answer(guild: Toolbox, tmp_path: Path) -> None:
    found = await answered(members("tools"), guild, tmp_path, calls(PAGE), lambda prompt: answer(*names(prompt)[:2]))
    assert (found.status, len(found.texts)) == ("answered", 2)
