"""Show a run as JSON, in plain lines, or live on a terminal."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kg_boundary.shown import visible_line
from kg_server.commands.output import show

if TYPE_CHECKING:
    from rich.console import Console

    from kg_agents.evidence.answers import AgentAnswer, RunStep
    from kg_agents.evidence.values import Triple
    from kg_agents.linking import Linking
    from kg_agents.llm import Usage

_NO_ANSWER: Final[Mapping[str, str]] = {
    "no_model": "No model, so no answer.",
    "not_in_graph": "The graph does not hold the answer.",
    "unknown_entity": "No answer: what the question is about was not found.",
}
"""The text in place of an answer, by status."""


class RunView:
    """Shows a run from its start to its end; this one prints only the answer, as JSON."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, text: str) -> None:
        """Show a sentence."""

    def linked(self, linking: "Linking") -> None:
        """Show the entities that the question is about."""

    def begin(self, what: str) -> None:
        """Show that a call begins."""

    def used(self, usage: "Usage") -> None:
        """Show what a call has used."""

    def step(self, step: "RunStep") -> None:
        """Show a step."""

    def conclude(self, answer: "AgentAnswer", trace: Path) -> None:
        """Print the answer, what supports it and what it took, once the run is over."""
        show(_report(answer, trace), (), as_json=True)


class PlainView(RunView):
    """Prints a few lines for each event.

    They go to standard error, so that the answer stands alone on standard output. What comes from a graph or a model
    cannot move the cursor, colour or rename the terminal.

    Args:
        console: Where they are printed.
    """

    def __init__(self, console: "Console") -> None:
        self._console = console

    def say(self, text: str) -> None:
        """See `RunView`."""
        self._console.print(visible_line(text), style="yellow", markup=False)

    def linked(self, linking: "Linking") -> None:
        """See `RunView`."""
        found = "; ".join(visible_line(str(each)) for each in linking.linked) or "none was found"
        self._console.print(f"Entities: {found}", markup=False)
        for each in linking.passed_over:
            self._console.print(visible_line(each), style="yellow", markup=False)

    def step(self, step: "RunStep") -> None:
        """See `RunView`."""
        from rich.text import Text

        found = f"  {visible_line(step.found.splitlines()[0])}" if step.found else ""
        action = visible_line(step.action) or "·"
        self._console.print(Text.assemble(f"{step.number}. ", (action, "bold cyan"), (found, "dim")))
        for line in step.thought.splitlines():
            self._console.print(f"   {visible_line(line)}", style="dim", markup=False)
        for kept in step.kept:
            self._console.print(f"   + {visible_line(kept)}", markup=False)

    def conclude(self, answer: "AgentAnswer", trace: Path) -> None:
        """See `RunView`."""
        print("\n".join(lines_of(answer)), flush=True)
        cost = f", cost {answer.usage.cost:.4f}" if answer.usage.cost else ""
        took = f"{steps_of(len(answer.steps))}, {answer.usage.tokens:,} tokens{cost}, {answer.seconds:.1f} s"
        self._console.print(f"\n{took}; trace: {visible_line(str(trace))}", style="dim", markup=False)


def steps_of(count: int) -> str:
    """Return a number of steps in words."""
    return f"{count} step" if count == 1 else f"{count} steps"


def lines_of(answer: "AgentAnswer") -> Sequence[str]:
    """Return the parts of an answer as lines, with an empty one between them."""
    first, *others = ([visible_line(line) for line in part] for part in parts_of(answer))
    return [*first, *(line for part in others for line in ("", *part))]


def parts_of(answer: "AgentAnswer") -> Iterator[Sequence[str]]:
    """Yield the parts of an answer: answers, the evidence of each, what only the model claims, and the explanation."""
    yield answer.texts or (_NO_ANSWER.get(answer.status, "No answer was found."),)
    groups: dict[tuple[str, ...], list[str]] = {}
    for each in answer.answers:
        lines = (*each.computed, *(answer.labels.triple(fact) for fact in each.facts))
        if lines:
            groups.setdefault(lines, []).append(each.text)
    for lines, texts in groups.items():
        heading = "Evidence:" if len(groups) == 1 and len(texts) == len(answer.answers) else _heading(texts)
        yield (heading, *(f"  {line}" for line in lines))
    if answer.status == "no_model" and answer.facts:
        yield ("The facts most like the question:", *(f"  {answer.labels.triple(fact)}" for fact in answer.facts))
    if answer.model_answer:
        yield ("The model says by itself, and the graph does not:", *(f"  {each}" for each in answer.model_answer))
    if answer.explanation:
        yield (" ".join(answer.explanation.split()),)


def _heading(texts: Sequence[str]) -> str:
    return f"Evidence for {', '.join(texts)}:"


def _report(answer: "AgentAnswer", trace: Path) -> dict[str, object]:
    return {
        "question": answer.question,
        "status": answer.status,
        "answers": [
            {
                "text": each.text,
                "source": each.source,
                "evidence": [_fact(fact, answer) for fact in each.facts],
                "computed": each.computed,
            }
            for each in answer.answers
        ],
        "model_answer": answer.model_answer,
        "facts": [_fact(fact, answer) for fact in answer.facts] if answer.status == "no_model" else [],
        "stop_reason": answer.stop_reason,
        "explanation": answer.explanation,
        "steps": [
            {
                "number": step.number,
                "thought": step.thought,
                "action": step.action,
                "found": step.found,
                "kept": step.kept,
            }
            for step in answer.steps
        ],
        "tokens": answer.usage.tokens,
        "cost": answer.usage.cost,
        "seconds": round(answer.seconds, 3),
        "trace": str(trace),
    }


def _fact(fact: "Triple", answer: "AgentAnswer") -> dict[str, object]:
    from kg_agents.evidence.values import split_graph, without_graph

    text, (_, graph) = answer.labels.triple(fact), split_graph(fact[1])
    return {"triple": without_graph(fact), "graph": graph, "text": text} if graph else {"triple": fact, "text": text}


DOING: Final = {
    "Retrieve": "Finding entities",
    "observe": "Looking ahead",
    "GetNeighbor": "Looking around an entity",
    "GetPath": "Looking for paths",
    "Compose": "Asking the graph",
    "Schema": "Reading what the graph holds",
    "memory-append": "Remembering",
    "memory-read": "Reading the memory",
    "tools": "Waiting for the model",
    "mentions": "Finding the names in the question",
    "action": "Choosing an action",
    "linking": "Choosing among namesakes",
    "turn": "Choosing what to keep and to do",
    "reflection": "Reflecting",
    "generation": "Writing down facts",
    "answer": "Answering",
    "plan": "Planning",
    "thought": "Thinking",
    "step": "Planning and choosing functions",
    "judge": "Judging the answer",
}
"""What a run does while it waits for a tool, or for a model's reply of some purpose."""


def doing(what: str) -> str:
    """Return a sentence on what a run does, by the tool or purpose that its watcher is notified of."""
    return DOING.get(what) or f"Waiting for {visible_line(what)}"


def run_view(*, as_json: bool) -> RunView:
    """Return how a run is shown: as JSON at its end, live on a terminal, in plain lines elsewhere.

    Args:
        as_json: Whether a program reads it.
    """
    if as_json:
        return RunView()
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    live = sys.stderr.isatty() and not console.is_dumb_terminal
    return LiveView(console) if live else PlainView(console)


class LiveView(PlainView):
    """Prints the same lines, and below them draws what the run is waiting for, with what it has taken so far.

    Args:
        console: A terminal.
    """

    def __init__(self, console: "Console") -> None:
        super().__init__(console)
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", style="cyan", markup=False), TimeElapsedColumn())
        self._drawn = Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._task = self._drawn.add_task("")
        self._doing = ""
        self._tokens = 0
        self._steps = 0

    def __exit__(self, *_: object) -> None:
        """Remove the drawing."""
        self._drawn.stop()

    def begin(self, what: str) -> None:
        """See `RunView`."""
        self._doing = doing(what)
        # Before the first call the graph may be imported, which draws a bar of its own.
        self._drawn.start()
        self._draw()

    def used(self, usage: "Usage") -> None:
        """See `RunView`."""
        self._tokens += usage.tokens
        self._draw()

    def step(self, step: "RunStep") -> None:
        """See `RunView`."""
        self._steps += 1
        super().step(step)

    def _draw(self) -> None:
        text = f"{self._doing} … ({steps_of(self._steps)}, {self._tokens:,} tokens)"
        self._drawn.update(self._task, description=text, refresh=True)
