"""What the usual manner costs beside that of the papers: the same questions, played to the same answers."""

import json
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import pyoxigraph as ox
import pytest
from benchmarks.world.graph import World

from calls import unhurried
from cli_runs import COMMAND
from embedders import LEXICAL
from fault_endpoint import serving, stalling
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.cache import open_sample
from kg_agents.evidence.answers import AgentAnswer
from kg_agents.llm import Completion, FunctionCall, LlmRequest, Scripted, ScriptedLlm, Usage
from kg_agents.llm.texts import tokens_in
from kg_agents.papers.graph_counselor import CounselorSettings, GraphCounselor
from kg_agents.papers.oda import ODA, OdaSettings
from kg_agents.parameters import AGENTS, AgentName, Manner, ToolsSettings
from kg_agents.running import Question, run_question
from kg_agents.tools.client import Toolbox, ToolError, connect_tools
from kg_agents.tools.knowledge import KnowledgeGraph, connect
from kg_agents.trace import Trace
from kg_server.app import build_server
from oda_runs import ENOUGH, NEIGHBORS, calls, selecting, serving_store, story, story_store, story_tools
from ontologies import ONTOLOGIES
from patience import PATIENCE_S
from server_processes import address_of, started
from small_graphs import PREFIXES, TOKYO

Hop = tuple[str, str, str]
"""Head, relation and tail of a fact: each as `label (id)`."""

GOETHE, EINSTEIN = "Johann Wolfgang von Goethe (Q5879)", "Albert Einstein (Q937)"
QUESTIONS: Final[Sequence[tuple[str, Sequence[Hop]]]] = (
    ("Where was Goethe born?", [(GOETHE, "place of birth (P19)", "Frankfurt (Q1794)")]),
    ("Where did Goethe die?", [(GOETHE, "place of death (P20)", "Weimar (Q3955)")]),
    ("Where did Albert Einstein die?", [(EINSTEIN, "place of death (P20)", "Princeton (Q138518)")]),
    (
        "In which country was the city where Goethe was born?",
        [
            (GOETHE, "place of birth (P19)", "Frankfurt (Q1794)"),
            ("Frankfurt (Q1794)", "country (P17)", "Holy Roman Empire (Q12548)"),
        ],
    ),
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the sample is."""
    folder = tmp_path_factory.mktemp("costs")
    open_sample(folder)
    return folder


@asynccontextmanager
async def sample(cache: Path) -> AsyncGenerator[KnowledgeGraph]:
    """Serve the sample in this process."""
    settings = unhurried(cache_folder=cache, data_folder=cache, embedding=LEXICAL)
    async with (
        aclosing(LocalAdapter(open_sample(cache))) as adapter,
        connect(build_server(adapter, settings)) as graph,
    ):
        yield graph


@dataclass
class Turning:
    """Plays turns: keeps the facts that it is after as they come, looks for the next, and answers with all."""

    hops: Sequence[Hop]

    def __post_init__(self) -> None:
        self._numbers: list[str] = []

    def reply(self, prompt: str) -> str:
        """Return the reply to one turn."""
        found = len(self._numbers)
        for head, relation, tail in self.hops[found:]:
            number = number_of(prompt, *map(label_of, (head, relation, tail)))
            if number is None:
                keep = ", ".join(self._numbers[found:]) or "none"
                look = f"GetNeighbor[{label_of(head)}, {label_of(relation)}]"
                return f"Thought: The next fact is missing.\nKeep: {keep}\nAction: {look}"
            self._numbers.append(number)
        answer = f"{label_of(self.hops[-1][2])} [{', '.join(self._numbers)}]"
        return f"Thought: All is there.\nKeep: none\nAction: Answer\nAnswer:\n{answer}"


def number_of(prompt: str, head: str, relation: str, tail: str) -> str | None:
    """Return the number of a fact that a prompt shows, also among others that share an end with it."""
    for line in re.finditer(
        r"^\[(\d+)(?:-\d+)?\] ([^|\n]+) \| ([^|\n]+) \| ([^|\n]+?)(?: \([^()]* shown\))?$", prompt, re.MULTILINE
    ):
        heads, tails = line[2].split("; "), line[4].split("; ")
        if line[3] == relation and head in heads and tail in tails:
            return str(int(line[1]) + heads.index(head) + tails.index(tail))
    return None


def label_of(named: str) -> str:
    return named.rpartition(" (")[0]


def id_of(named: str) -> str:
    return named.rpartition(" (")[2].rstrip(")")


def oda_script(manner: Manner, hops: Sequence[Hop]) -> list[Scripted]:
    if manner == "sextant":
        return [Turning(hops).reply] * 6
    steps: list[Scripted] = []
    for hop in hops:
        steps += [NEIGHBORS.format(id_of(hop[0])), selecting(",".join(map(id_of, hop)))]
    return [*steps, ENOUGH, f"Answer:\n{label_of(hops[-1][2])}"]


def counselor_script(manner: Manner, hops: Sequence[Hop]) -> list[Scripted]:
    actions = [f"Neighbor[{id_of(head)}, {label_of(relation)}]" for head, relation, _ in hops]
    actions.append(f"Finish[{label_of(hops[-1][2])}]")
    plan, thought = "Find what the question names, and follow its relations.", "The next of them is needed."
    if manner == "sextant":
        return [*(f"Plan: {plan}\nThought: {thought}\nAction: {action}" for action in actions), "It is.\n[yes]"]
    return [*(each for action in actions for each in (plan, thought, action)), "It is.\n[yes]"]


async def played(graph: KnowledgeGraph, agent: str, manner: Manner) -> int:
    """Return how many tokens the prompts of all questions have, which are all answered right."""
    tokens = 0
    for question, hops in QUESTIONS:
        answer, llm = await answered(graph, agent, manner, question, hops)
        assert (answer.texts, answer.status) == ((label_of(hops[-1][2]),), "answered"), question
        tokens += sum(tokens_in(message.content) for asked in llm.asked for message in asked.messages)
    return tokens


async def answered(
    graph: KnowledgeGraph, agent: str, manner: Manner, question: str, hops: Sequence[Hop]
) -> tuple[AgentAnswer, ScriptedLlm]:
    entities = [id_of(hops[0][0])]
    if agent == "oda":
        llm = ScriptedLlm(oda_script(manner, hops))
        oda = ODA(llm, graph, settings=OdaSettings(manner=manner))
        return await oda.answer(question, entities), llm
    llm = ScriptedLlm(counselor_script(manner, hops))
    counselor = GraphCounselor(llm, graph, settings=CounselorSettings(manner=manner))
    return await counselor.answer(question, entities), llm


@pytest.mark.parametrize(("agent", "share"), [("oda", 0.45), ("graph-counselor", 0.35)])
async def test_the_usual_manner_costs_a_fraction_of_that_of_the_paper(cache: Path, agent: str, share: float) -> None:
    async with sample(cache) as graph:
        ours, theirs = await played(graph, agent, "sextant"), await played(graph, agent, "paper")
    assert ours <= share * theirs, f"{ours:,} of {theirs:,} tokens"


QUESTION: Final = "What is known of it, in all its detail?"
_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_VALUES: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b|(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?\b|(?<![\w.])\d+\.\d+\b")
_NO_FACTS: Final = re.compile(
    r"\"[^\"\n]*\"@\w+|^\[\d+\] [^\n]*\b(?:facts examined|neighbouring facts)\b[^\n]*|Hubs left out: [^\n]*"
    r"|\b[Oo]f [\d,]+ .+? have one[^\n]*",
    re.MULTILINE,
)
"""Texts that mention things, and what sums a result up: it counts kinds of facts rather than states any."""
_LONGEST: Final = 1_800


class Echo:
    """Makes its calls, then answers with everything that it was shown."""

    name = "echo"

    def __init__(self, names: re.Pattern[str], replies: Sequence[str | FunctionCall]) -> None:
        self._names = names
        self._replies = [*replies]
        self.shown: dict[str, None] = {}

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        self._read(request)
        reply = self._replies.pop(0) if self._replies else self._ending(request.purpose)
        if isinstance(reply, FunctionCall):
            return Completion("", Usage(), "tool_calls", (reply,))
        return Completion(reply, Usage())

    def _read(self, request: LlmRequest) -> None:
        for message in request.messages:
            texts = [message.content] if message.role == "tool" else _DATA.findall(message.content)
            facts = _NO_FACTS.sub(
                "", "\n".join(each for each in texts if not each.startswith((QUESTION, *self.skipped)))
            )
            self.shown.update(dict.fromkeys((*self._names.findall(facts), *_VALUES.findall(facts))))

    def _ending(self, purpose: str) -> str | FunctionCall:
        said = [*self.shown]
        match purpose:
            case "tools":
                return FunctionCall("end", "answer", json.dumps({"answers": said}))
            case "turn" | "answer":
                return "\n".join(("Keep: none", "Action: Answer", "Answer:", *said))
            case "action" if self._in_oda:
                return "Thought: enough.\nAction: Answer"
            case "judge":
                return "[yes]"
            case _:
                quoted = [f'"{text}"' for text in said if '"' not in text]
                while sum(map(len, quoted)) + 2 * len(quoted) > _LONGEST:
                    quoted.pop(0)
                return f"Action: Finish[{', '.join(quoted)}]"

    @property
    def _in_oda(self) -> bool:
        return self.agent == "oda"

    agent = ""
    skipped: tuple[str, ...] = ("Graph '",)


@pytest.fixture(scope="module")
def names() -> re.Pattern[str]:
    """Return what finds the names of all things of the world, the longest first."""
    world = World()
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    things = "strstarts(str(?e), 'http://world.example/E')"
    rows = world.solutions(f"SELECT ?l {{ ?e {label} ?l FILTER(lang(?l) = 'en' && {things}) }}")
    found = {end.value for row in rows if isinstance(end := row["l"], ox.Literal)}
    # Names of roles and kinds stand in the names of relations too.
    labels = sorted((name for name in found if name != name.lower()), key=lambda name: -len(name))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, labels))})(?![\w-])")


@pytest.fixture
async def tools(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Toolbox]:
    cache = tmp_path_factory.getbasetemp() / "world"
    settings = unhurried(cache_folder=cache, data_folder=cache / "data", embedding=LEXICAL)
    async with (
        aclosing(LocalAdapter(open_sample(cache, "sample:world"))) as graph,
        connect_tools(build_server(graph, settings)) as connected,
    ):
        yield connected


def call(tool: str, **arguments: object) -> FunctionCall:
    unhurried_arguments = {**arguments, "timeout_s": PATIENCE_S} if tool == "Sparql" else arguments
    return FunctionCall("a", tool, json.dumps(unhurried_arguments))


PERSON, TOWN, REGION, BREWERY = "w:E3684", "w:E1424", "w:E2733", "w:E3199"
PAPER_ODA = OdaSettings(manner="paper", ablation="random-reflection", iterations=2)
PAPER_COUNSELOR = CounselorSettings(manner="paper")
ALL_TOOLS = ToolsSettings(only="all")
CASES: dict[str, tuple[Question, list[str | FunctionCall]]] = {
    **{
        f"tools, {each.name} {number}": (Question(QUESTION, (), ALL_TOOLS), [each])
        for number, each in enumerate(
            [
                call("observe", question="Which career did he have?", entities=[PERSON]),
                call("GetNeighbor", entity=PERSON, direction="both"),
                call("GetNeighbor", entity=BREWERY, direction="both", limit=20),
                call("GetPath", source=PERSON, target=TOWN, max_hops=4),
                call("Retrieve", text="Čautan Lanaru"),
                call("Retrieve", text="Polwaminster"),
                call("Retrieve", text=["Čautan Lanaru", "Polwaminster", "Sardal"]),
                call("Feature", entity=TOWN),
                call("Compose", expression=f"Neighbor[{PERSON}, career entry]"),
                call("Compose", expression=f"Top[Neighbor[{REGION}, -located in region], population, 5]"),
                call("Compose", expression=f"Table[Neighbor[{REGION}, -located in region], population, country]"),
                call("Compose", expression=f"Feature[{TOWN}, altitude (m)], Count[Neighbor[{TOWN}, -place of birth]]"),
                call("Compose", expression=f"Group[Neighbor[{REGION}, -located in region], country]"),
                call("Compose", expression="Bottom[Group[Type[town], country], 3]"),
                call("Sparql", query=f"SELECT ?p ?o {{ {TOWN} ?p ?o }}"),
                call("Sparql", query=f'SELECT ?e {{ {PERSON} @"career entry" ?e }}'),
            ]
        )
    },
    "oda, first turn": (Question(QUESTION, (PERSON, TOWN)), []),
    "oda, neighbours": (Question(QUESTION, (BREWERY,)), ["Keep: 1\nAction: GetNeighbor[c1, at organisation]"]),
    "oda, paths": (Question(QUESTION, (PERSON, TOWN)), ["Keep: none\nAction: GetPath[c1, c2]"]),
    "oda, a look": (Question(QUESTION, (REGION,)), ["Keep: 1-4\nAction: Look[population]"]),
    "oda, a search": (Question(QUESTION, (REGION,)), ["Keep: none\nAction: Search[Polwaminster]"]),
    "oda as in the paper": (
        Question(QUESTION, (PERSON,), PAPER_ODA),
        [f"Thought: look.\nAction: GetNeighbor\nEntity_id: {PERSON}"],
    ),
    "graph-counselor, first step": (Question(QUESTION, (PERSON, TOWN), CounselorSettings()), []),
    "graph-counselor, a step": (
        Question(QUESTION, (REGION,), CounselorSettings()),
        [f"Action: Table[Neighbor[{BREWERY}, -at organisation], from, end date]"],
    ),
    "graph-counselor as in the paper": (
        Question(QUESTION, (PERSON,), PAPER_COUNSELOR),
        ["plan", "thought", f"Neighbour[{PERSON}, career entry]", "plan", "thought"],
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_all_that_is_shown_of_the_graph_is_evidence(
    case: str, tools: Toolbox, names: re.Pattern[str], tmp_path: Path
) -> None:
    asked, replies = CASES[case]
    llm = Echo(names, replies)
    llm.agent = asked.settings.agent
    with Trace(tmp_path / "record.jsonl") as trace:
        found = await run_question(replace(asked), tools, llm, trace)
    assert llm.shown
    assert found.model_answer == ()
    assert [each.text for each in found.answers if each.source == "model"] == []


@pytest.mark.parametrize("agent", ["tools", "graph-counselor"])
async def test_what_the_definition_of_an_ontology_shows_is_evidence(agent: AgentName, tmp_path: Path) -> None:
    classes, properties = ("person", "agent", "athlete", "place"), ("birth date", "birth place", "bank account")
    names = re.compile(rf"(?<![\w:-])(?:{'|'.join((*properties, *classes))})(?![\w-])")
    llm = Echo(names, [call("Schema", about="Person")] if agent == "tools" else [])
    llm.skipped = ()
    async with serving_store(story_store(ONTOLOGIES["DBpedia"]), tmp_path) as tools:
        with Trace(tmp_path / "record.jsonl") as trace:
            asked = Question("What is there?", (), AGENTS[agent]())
            found = await run_question(asked, tools, llm, trace)
    assert llm.shown.keys() >= {*classes, *properties}
    assert [each.text for each in found.answers if each.source == "model"] == []
    assert found.model_answer == ()


async def test_all_of_a_table_is_its_rows_without_their_total(tools: Toolbox, tmp_path: Path) -> None:
    towns = f"Neighbor[{REGION}, -located in region]"
    lists: list[set[str]] = []
    for expression in (towns, f"Table[{towns}, population]"):
        llm = ScriptedLlm([calls(("Compose", {"expression": expression})), calls(("answer", {"all_of": [1]}))])
        with Trace(tmp_path / "record.jsonl") as trace:
            lists.append({*(await run_question(Question(QUESTION, (), ToolsSettings()), tools, llm, trace)).texts})
    assert lists[0] == lists[1]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("false", "The server 'false' cannot be reached: "),
        ("no-such-command --at-all", "cannot be reached: "),
        ("http://127.0.0.1:9/mcp", "The server 'http://127.0.0.1:9/mcp' cannot be reached: "),
        (
            'kg-sextant "serve --token sesame',
            "The server 'kg-sextant …' is not a command line. Give a URL, or the command line of a server",
        ),
        ("", "The server '' is not a command line. Give a URL"),
        ("\0", "cannot be reached: embedded null byte"),
        ("ev\ud800il", "cannot be reached: "),
        ("HTTP://ann:hun@ter2@127.0.0.1:9/mcp?token=sesame", "The server 'HTTP://…@127.0.0.1:9/mcp?…' cannot be"),
        ("sleep 60", "The server 'sleep …' did not answer within 1 seconds. Give a URL"),
    ],
)
async def test_a_server_that_is_none_is_left_with_a_sentence(target: str, said: str) -> None:
    with pytest.raises(ToolError) as raised:
        async with connect_tools(target, connect_s=1.0 if "60" in target else 30.0):
            raise AssertionError("there is nothing to connect to")
    assert said in str(raised.value)


async def test_what_goes_wrong_in_a_block_comes_out_of_it_as_it_is(tmp_path: Path) -> None:
    group = ExceptionGroup("mine", [ValueError()])
    for failure in (KeyError("mine"), group, ToolError("mine"), SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(type(failure)) as raised:
            async with story_tools(tmp_path, TOKYO):
                raise failure
        assert raised.value is failure


async def test_a_server_process_that_dies_fails_the_next_call(tmp_path: Path) -> None:
    pid, command = tmp_path / "pid", [*COMMAND, "serve", "sample", "--timeout-s", str(PATIENCE_S)]
    target = shlex.join(["sh", "-c", f"echo $$ > {shlex.quote(str(pid))}; exec {shlex.join(command)}"])
    async with connect(target) as graph:
        assert (await graph.retrieve("Goethe"))[0].id == "Q5879"
        os.kill(int(pid.read_text()), signal.SIGKILL)
        with pytest.raises(ToolError, match="Retrieve: Connection closed"):
            await graph.retrieve("Schiller")


async def test_a_server_on_the_web_that_dies_fails_the_next_call_and_the_block_goes_on(tmp_path: Path) -> None:
    environ = {"KG_SEXTANT_DATA_FOLDER": str(tmp_path), "KG_SEXTANT_CACHE_FOLDER": str(tmp_path)}
    with started(environ, "sample") as process:
        async with connect(await anyio.to_thread.run_sync(address_of, process)) as graph:
            assert (await graph.retrieve("Goethe"))[0].id == "Q5879"
            process.kill()
            process.wait()
            for _ in range(2):
                with pytest.raises(ToolError, match="Retrieve: "):
                    await graph.retrieve("Schiller")


async def test_a_call_that_waits_when_its_server_dies_fails_at_once(tmp_path: Path) -> None:
    async with serving(stalling) as endpoint:
        settings = {"KG_SEXTANT_GRAPH": endpoint.url, "KG_SEXTANT_TIMEOUT_S": "60"}
        folders = {"KG_SEXTANT_DATA_FOLDER": str(tmp_path), "KG_SEXTANT_CACHE_FOLDER": str(tmp_path)}
        with started({**settings, **folders}) as process:
            url = await anyio.to_thread.run_sync(address_of, process)
            async with connect(url) as graph, anyio.create_task_group() as tasks:
                before = len(endpoint.requests)

                async def kill() -> None:
                    await endpoint.until(lambda: len(endpoint.requests) > before)
                    process.kill()

                tasks.start_soon(kill)
                with pytest.raises(ToolError, match="GetNeighbor: "):
                    await graph.neighbors("<http://example.org/a>")


async def test_a_server_that_answers_in_a_form_of_its_own_fails_the_call(tmp_path: Path) -> None:
    speaker = tmp_path / "speaker.py"
    speaker.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' not in asked: continue\n"
        "    about = {'protocolVersion': '2025-06-18', 'capabilities': {}}\n"
        "    about['serverInfo'] = {'name': 's', 'version': '1'}\n"
        "    found = about if asked['method'] == 'initialize' else {'content': 5, 'tools': []}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': found}), flush=True)\n"
    )
    async with connect(shlex.join([sys.executable, str(speaker)])) as graph:
        with pytest.raises(ToolError, match="Retrieve: The server answered in a form that is not known"):
            await graph.retrieve("Goethe")


async def test_a_memory_of_several_pages_is_read_to_its_end(tmp_path: Path) -> None:
    links = "\n".join(
        f'wd:Q{n} rdfs:label "A rather long name, number {n}"@en ; wdt:P1 wd:Q{n + 1} .' for n in range(1, 121)
    )
    facts = [(f"Q{n}", "P1", f"Q{n + 1}") for n in range(1, 121)]
    async with story(tmp_path, f"{PREFIXES}\n{links}") as graph:
        memory = (await graph.remember(None, facts[:15])).memory
        for first in range(15, 120, 15):
            await graph.remember(memory, facts[first : first + 15])
        held = await graph.recall(memory)
    assert [fact for _, fact in held.facts] == facts
    assert (held.cursor, "Q120" in held.text.splitlines()[-1]) == ("", True)
