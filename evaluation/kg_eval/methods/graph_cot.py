"""Graph-CoT (Jin et al. 2024): thought, action and observation, one function of the graph at a time."""

import re
from dataclasses import dataclass, field
from typing import Final

from kg_agents.answers import Answer
from kg_agents.graph_values import Composed, Labels, Triple
from kg_agents.grounding import stated
from kg_agents.texts import clipped, tokens_in
from kg_agents.tool_calls import ToolRefusal
from kg_eval.methods.method import Asked, Means, MethodAnswer, reply_to, task
from kg_eval.metrics.matching import said
from kg_prompts import render
from kg_prompts.evaluation import GraphCotPrompt

_ACTION: Final = re.compile(
    r"(?:Action\s*\d*\s*:\s*)?(Retrieve|Feature|Degree|Neighbou?r)\[([^\[\]]*)\]\.?", re.IGNORECASE
)
_FINISH: Final = re.compile(r"(?:Action\s*\d*\s*:\s*)?Finish\[(.*)\]\.?", re.IGNORECASE | re.DOTALL)
_LED: Final = re.compile(r"^(?:Thought|Action)\s*\d*\s*:\s*", re.IGNORECASE)
_INVALID: Final = (
    "This is not a valid action. Valid are Retrieve[keyword], Feature[node, feature], Degree[node, relation], "
    "Neighbor[node, relation] and Finish[answer]; one at a time, not inside another."
)
_ROW: Final = 5
_TRIPLE: Final = 3


@dataclass(frozen=True, slots=True)
class GraphCotSettings:
    """How long the method goes on, and how the model is asked.

    Args:
        steps: The most steps.
        prompt_tokens: Beyond so long a prompt it ends without an answer.
        observation_characters: How much of an observation is shown.
        definition_tokens: How long the definition of the graph may be.
        temperature: How freely the model chooses its words.
        reply_tokens: How long a reply may be; only its first line counts.
    """

    steps: int = 10
    prompt_tokens: int = 10_000
    observation_characters: int = 4_000
    definition_tokens: int = 2_000
    temperature: float = 0.0
    reply_tokens: int = 300


@dataclass
class _Pad:
    """What was thought, done and observed, and what was read of the graph on the way."""

    lines: list[str] = field(default_factory=list[str])
    facts: dict[Triple, None] = field(default_factory=dict[Triple, None])
    computed: dict[str, str] = field(default_factory=dict[str, str])
    labels: Labels = field(default_factory=Labels)

    def read(self, action: str, composed: Composed) -> None:
        """Take in what an action read."""
        self.labels = self.labels.merged(Labels(composed.labels, composed.relations))
        self.facts.update({(row[0], row[1], row[2]): None for row in composed.evidence if len(row) == _TRIPLE})
        for _, node, relation, result, kind in (row[:_ROW] for row in composed.results if len(row) >= _ROW):
            if kind == "number":
                self.computed[result] = f"{action} = {result}"
            elif relation.startswith("-"):
                self.facts[result, relation[1:], node] = None
            elif relation and kind in {"node", "value"}:
                self.facts[node, relation, result if kind == "node" else f'"{result}"'] = None

    def sourced(self, text: str, starts: tuple[str, ...]) -> Answer:
        """Return an answer with where it comes from."""
        if found := stated(text, tuple(self.facts), starts, self.labels):
            return found
        return Answer(text, "computed", (), (self.computed[text],)) if text in self.computed else Answer(text, "model")


@dataclass(frozen=True, slots=True)
class GraphCot:
    """The loop of Graph-CoT."""

    settings: GraphCotSettings

    async def answer(self, asked: Asked, means: Means) -> MethodAnswer:
        """See `Method`."""
        talk, pad = means.talk(), _Pad()
        definition = await means.graph.schema(max_tokens=self.settings.definition_tokens)
        for step in range(1, self.settings.steps + 1):
            for part in ("Thought", "Action"):
                prompt = self._prompt(asked, definition, pad, f"{part} {step}")
                if tokens_in(render(prompt)) > self.settings.prompt_tokens:
                    return _unfinished("prompt", f"A prompt of more than {self.settings.prompt_tokens:,} tokens.")
                request = task(prompt, part.lower(), self.settings.reply_tokens, self.settings.temperature)
                line = _first_line(await reply_to(talk, request))
                pad.lines.append(f"{part} {step}: {line}")
            if (finish := _FINISH.fullmatch(line)) is not None:
                return self._finished(finish[1], asked, pad)
            observed = await self._observe(line, means, pad)
            shown = clipped(" ".join(observed.split()), self.settings.observation_characters)
            pad.lines.append(f"Observation {step}: {shown}")
        return _unfinished("steps", f"No answer within {self.settings.steps} steps.")

    def _prompt(self, asked: Asked, definition: str, pad: _Pad, part: str) -> GraphCotPrompt:
        return GraphCotPrompt(
            question=asked.question,
            entities="\n".join(f"{label} ({entity})" for entity, label in asked.entities),
            definition=definition,
            scratchpad="\n".join(pad.lines),
            part=part,
        )

    async def _observe(self, line: str, means: Means, pad: _Pad) -> str:
        """Perform an action; what the graph refuses is observed in its own words."""
        if (action := _ACTION.fullmatch(line)) is None:
            means.unreadable["action"] += 1
            return _INVALID
        written = f"{action[1].capitalize()}[{action[2]}]"
        try:
            composed = await means.graph.compose(written)
        except ToolRefusal as refusal:
            return str(refusal)
        pad.read(written, composed)
        return composed.text

    def _finished(self, written: str, asked: Asked, pad: _Pad) -> MethodAnswer:
        whole = pad.sourced(written.strip(), asked.ids)
        texts = said([whole.text] if whole.source != "model" else written.split(","))
        answers = tuple(pad.sourced(text.strip(), asked.ids) for text in texts)
        return MethodAnswer(written.strip(), answers, "answered" if answers else "not_in_graph")


def _first_line(reply: str) -> str:
    """Return the first line of a reply, where the method has the model stop."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    return _LED.sub("", lines[0]) if lines else ""


def _unfinished(reason: str, explanation: str) -> MethodAnswer:
    return MethodAnswer("", (), "stopped", reason, explanation)
