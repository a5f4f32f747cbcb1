"""The prompts of the agents and the lines of their traces, as pages show them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue, TypeAdapter

from kg_prompts import Prompt, graph_counselor, oda, render, tools
from kg_prompts.tools import SystemPrompt

_FIELDS: Final = TypeAdapter(dict[str, JsonValue])
_LONGEST_TEXT: Final = 160
_LONGEST_LIST: Final = 3
_LONGEST_OBJECT: Final = 16


def shown_prompts() -> dict[str, str]:
    """Return the prompts of all agents by template, as they are for one small question."""
    question, memory = "Where was Goethe born?", "Goethe (Q5879) -[place of birth (P19)]-> Frankfurt (Q1794)"
    observation = "Goethe (Q5879) | place of birth (P19) | Frankfurt (Q1794) | 0.61 | hop 1"
    definition, steps = "relation | place of birth (P19) | 1,200 triples", "Plan 1: …\nThought 1: …\nAction 1: …"

    def task(kind: Callable[..., Prompt]) -> Prompt:
        return kind(question=question, definition=definition, scratchpad=steps, reflections="", step=2)

    prompts: Sequence[Prompt] = (
        SystemPrompt(),
        oda.MentionsPrompt(question=question, most=5),
        oda.LinkingPrompt(
            question=question,
            candidates="1. Goethe (Q5879): German writer\n2. Goethe (Q1): crater on Mercury",
        ),
        oda.ActionPrompt(
            question=question, memory="", candidates="Goethe (Q5879)", observation=observation, history="", paths=False
        ),
        oda.ReflectionPrompt(
            question=question,
            candidates="Q5879,P106,Q36180\nQ5879,P19,Q1794",
            labels="Q5879: Goethe\nQ36180: writer\nQ1794: Frankfurt\nP106: occupation\nP19: place of birth",
            observation=observation,
            memory="",
            most=15,
        ),
        oda.AnswerPrompt(question=question, memory=memory),
        oda.TurnPrompt(
            question=question,
            memory="",
            facts="[1] Goethe | place of birth | Frankfurt\n[2] Pushkin | influenced by | Goethe (1 of 7 shown)",
            candidates="c1 Goethe",
            history="",
            paths=False,
        ),
        oda.PaperAnswerPrompt(question=question, memory=memory),
        oda.RetryPrompt(reason="it names no action. Write a line `Action: ` with GetNeighbor or Answer."),
        graph_counselor.StepPrompt(question=question, definition=definition, steps=steps, tried="", lessons="", step=2),
        graph_counselor.CheckPrompt(
            question=question,
            around="Goethe (Q5879) | place of birth (P19) | Frankfurt (Q1794)",
            steps=steps,
            answer="Frankfurt",
        ),
        graph_counselor.LessonPrompt(
            question=question, definition=definition, steps=steps, outcome="The answer is wrong.", most_steps=10
        ),
        task(graph_counselor.PlanPrompt),
        task(graph_counselor.ThoughtPrompt),
        task(graph_counselor.ActionPrompt),
        tools.ToolsTask(instructions="Answer from the knowledge graph …"),
        tools.ToolsQuestion(question=question, entities="Q5879"),
        graph_counselor.JudgePrompt(question=question, definition=definition, scratchpad=steps, answer="Frankfurt"),
        graph_counselor.ReflectionPrompt(
            question=question, definition=definition, scratchpad=steps, outcome="The answer is wrong.", most_steps=10
        ),
    )
    return {prompt.template: render(prompt) for prompt in prompts}


def trace_line(path: Path, number: int) -> str:
    """Return a line of a trace as people read it: a field on each line, and what is long shortened."""
    line = path.read_text(encoding="utf-8").splitlines()[number - 1]
    fields = _FIELDS.validate_json(line)
    return "".join(f"{name}: {json.dumps(_brief(value), ensure_ascii=False)}\n" for name, value in fields.items())


def _brief(value: JsonValue) -> JsonValue:
    match value:
        case str() if len(value) > _LONGEST_TEXT:
            return f"{value[:_LONGEST_TEXT]}… ({len(value):,} characters)"
        case list():
            first = [_brief(each) for each in value[:_LONGEST_LIST]]
            return first if len(value) <= _LONGEST_LIST else [*first, f"… ({len(value):,} in all)"]
        case dict():
            most = _LONGEST_LIST if len(value) > _LONGEST_OBJECT else len(value)
            kept = {name: _brief(each) for name, each in list(value.items())[:most]}
            return kept if most == len(value) else {**kept, "…": f"{len(value):,} in all"}
        case _:
            return value
