"""Benchmarks played to a right answer: by scripted models, through every method and `eval run`."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final, TypeAlias, get_args

from cli_runs import CommandLine
from kg_agents.llm import Completion, FunctionCall, LlmRequest, Usage
from kg_eval.logs import read_run
from kg_eval.methods.catalog import NEED_ENTITIES
from kg_eval.metrics.scores import MAIN_METRIC, score
from kg_eval.plan import MethodName
from kg_eval.questions import BenchmarkName
from oda_runs import ENOUGH, NEIGHBORS, selecting
from scripted_model import Asked, Failure, calling, serving_model
from small_graphs import TOKYO, write_story

Reply: TypeAlias = str | FunctionCall
"""What a model says, or the function that it calls."""

QUESTION: Final = "What is the capital of Tokyo?"
TOPIC: Final = {"Q1490": "Tokyo"}

ROWS: Final[dict[BenchmarkName, tuple[dict[str, object], str]]] = {
    "qald10": ({"question": QUESTION, "answer": {"Q179645": "Shinjuku"}, "qid_topic_entity": TOPIC}, "Shinjuku"),
    "creak": ({"sentence": "The capital of Tokyo is Shinjuku.", "label": "true", "qid_topic_entity": TOPIC}, "true"),
    "t-rex": ({"input": "Tokyo [SEP] capital", "answer": "Shinjuku", "qid_topic_entity": TOPIC}, "Shinjuku"),
    "zero-shot-re": (
        {"input": "Tokyo [SEP] capital", "answer": "Shinjuku", "alias": [], "qid_topic_entity": TOPIC},
        "Shinjuku",
    ),
    "webqsp": ({"RawQuestion": QUESTION, "answer": ["Shinjuku"], "topic_entity": TOPIC}, "Shinjuku"),
    "grbench": ({"qid": "0", "question": QUESTION, "answer": "Shinjuku"}, "Shinjuku"),
    "kgdata": ({"question": QUESTION, "answer": {"Q179645": "Shinjuku"}, "topic_entity": TOPIC}, "Shinjuku"),
    "simplequestions": (
        {"question": QUESTION, "topic": "Q1490", "relation": "P36", "direction": "out", "answer": "Q179645"},
        "Shinjuku",
    ),
    "world": (
        {"id": "q1", "question": QUESTION, "kind": "one-hop", "answers": ["Shinjuku"], "sparql": ""},
        "Shinjuku",
    ),
    "jsonl": ({"question": QUESTION, "answers": ["Shinjuku"], "entities": ["Q1490"]}, "Shinjuku"),
}
"""A question of every benchmark in its published form, and what is right."""


def write_rows(folder: Path, benchmark: BenchmarkName, rows: Sequence[Mapping[str, object]] = ()) -> Path:
    """Write questions of a benchmark, by default the one about Tokyo, and return their file."""
    name = "legal.jsonl" if benchmark == "grbench" else f"{benchmark}.jsonl"
    lines = (json.dumps(row) for row in rows or [ROWS[benchmark][0]])
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / name


def reply_of(method: MethodName, answer: str) -> Callable[[str], Reply]:
    """Return what replies to the prompts of a method so that it answers this."""
    if method == "oda":
        looking = (NEIGHBORS.format("Q1490"), selecting("Q1490,P36,Q179645"), ENOUGH)
        return again_and_again(*looking, f"Answer: {answer} [1]")
    if method == "graph-counselor":
        looking = ("look", "its capital", "Neighbor[Q1490, capital]")
        return again_and_again(*looking, "done", "there", f"Finish[{answer}]", "[yes]")
    if method == "tools":
        return lambda prompt: answering(answer) if prompt.startswith("[1] ") else LOOKING
    return lambda prompt: _reply(prompt, answer)


LOOKING: Final = FunctionCall("a", "Compose", json.dumps({"expression": "Neighbor[Tokyo, capital]"}))


def answering(text: str) -> FunctionCall:
    """Return the call that answers with what the first result shows."""
    return FunctionCall("b", "answer", json.dumps({"answers": [{"text": text, "results": [1]}]}))


def short_reply_of(method: MethodName, answer: str) -> Callable[[str], Reply]:
    """Return the same for an agent in the manner that it has by default."""
    if method == "graph-counselor":
        return again_and_again("Action: Neighbor[Tokyo, capital]", f"Action: Finish[{answer} [1]]", "[yes]")

    def reply(prompt: str) -> str:
        shown = re.search(r"^\[(\d+)\] Tokyo \| capital \| Shinjuku", prompt, re.MULTILINE)
        action = f"Answer\nAnswer:\n{answer} [{shown[1]}]" if shown else "GetNeighbor[Tokyo, capital]"
        return f"Keep: none\nAction: {action}"

    return reply


def again_and_again(*replies: str) -> Callable[[str], str]:
    """Return what gives replies in their order, and then from the first again, whatever is asked."""
    round_and_round = cycle(replies)
    return lambda _: next(round_and_round)


def in_order(*replies: str) -> Callable[[str], str]:
    """Return what gives replies in their order, whatever is asked."""
    left = list(replies)
    return lambda _: left.pop(0)


def _reply(prompt: str, answer: str) -> str:  # noqa: PLR0911 - one for each kind of prompt
    if "Its relations, by number" in prompt:
        number = re.search(r"^(\d+)\. capital(?! of)", prompt, re.MULTILINE)
        return f"{number[1]}: 0.9" if number else "none"
    if "Reached, by number" in prompt:
        return "1: 1.0"
    if "suffice to answer" in prompt:
        return "Yes"
    if "Write Thought" in prompt:
        return "Thought: I look for the capital."
    if "Write Action 1" in prompt:
        return "Action 1: Neighbor[Q1490, capital]\nObservation 1: something else"
    if "Write Action" in prompt:
        return f"Finish[{answer}]"
    return f"The answer is {{{answer}}}."


class PlayingLlm:
    """Replies by a function of the prompt, and keeps what it was asked."""

    name = "player"

    def __init__(self, reply: Callable[[str], Reply]) -> None:
        self._reply = reply
        self.asked: list[LlmRequest] = []

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        self.asked.append(request)
        reply, usage = self._reply(request.messages[-1].content), Usage(100, 10, 0.001, 1)
        if isinstance(reply, FunctionCall):
            return Completion("", usage, "tool_calls", (reply,))
        return Completion(reply, usage)


AGENTS: Final = ("oda", "graph-counselor")
Way: TypeAlias = tuple[MethodName, str]
"""A method, and a parameter of it."""

WAYS: Final[tuple[Way, ...]] = (
    *((method, "") for method in get_args(MethodName)),
    *((method, "manner=paper") for method in AGENTS),
)
"""Every method, and the agents in both manners."""

BENCHMARKS: Final[tuple[BenchmarkName, ...]] = tuple(ROWS)


def words_of(method: MethodName, setting: str, benchmark: BenchmarkName = "jsonl") -> tuple[str, ...]:
    """Return how `eval run` is told of a method; what begins from entities finds them where a file gives none."""
    found = benchmark in {"grbench", "world"} and method in NEED_ENTITIES
    return (
        *("--benchmark", benchmark, "--method", method, "--linking", "model" if found else "gold"),
        *(("--set", setting) if setting else ()),
    )


def model_of(method: MethodName, setting: str, answer: str) -> Callable[[Asked], str | Failure]:
    """Return a model that plays a method to an answer, question after question."""
    reply = short_reply_of(method, answer) if method in AGENTS and not setting else reply_of(method, answer)

    def replying(asked: Asked) -> str | Failure:
        found: Reply = "Tokyo" if asked.prompt.startswith("Name the things") else reply(asked.prompt)
        return calling((found.name, found.arguments)) if isinstance(found, FunctionCall) else found

    return replying


def scored(cli: CommandLine, folder: Path, store: Path, way: Way, benchmark: BenchmarkName) -> object:
    """Run a method over the question of a benchmark, and return its score, or why it has none."""
    out = folder / "-".join((*way, benchmark))
    with serving_model(model_of(*way, ROWS[benchmark][1])) as service:
        asked = (*words_of(*way, benchmark), "--data", str(write_rows(folder, benchmark)), "--graph", str(store))
        run = cli.run("eval", "run", *asked, "--model", "m", "--base-url", service.url, "--out", str(out))
    if run.code:
        return run.err
    (outcome,) = read_run(out).outcomes
    return outcome.skipped or score(outcome, MAIN_METRIC[benchmark])


def stored(cli: CommandLine, folder: Path) -> Path:
    """Import the graph about Tokyo, and return its store."""
    assert cli.run("import", str(write_story(folder, TOKYO)), "--to", str(folder / "store")).code == 0
    return folder / "store"
