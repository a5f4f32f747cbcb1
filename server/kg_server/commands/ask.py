"""`kg-sextant ask` and `replay`: one question answered by a reference agent, and the same again from its record."""

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_server.commands.failures import ExitCode, only_cause
from kg_server.commands.invocation import invocation
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.answers import AgentAnswer, Step
    from kg_agents.linking import Linked
    from kg_agents.openai_llm import OpenAiLlm
    from kg_agents.tool_calls import Tools

TRACES: Final = "traces"
NO_MODEL: Final = (
    "No model is set, so this answers by likeness alone. For a model set llm (--model or KG_SEXTANT_LLM) and "
    "llm_api_key (OPENAI_API_KEY), or llm_base_url (--base-url) for one of your own."
)


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question.")],
    agent: Annotated[Literal["oda", "graph-counselor"], typer.Option(help="The method.")] = "oda",
    entities: Annotated[
        list[str] | None, typer.Option("--entity", metavar="ID", help="What it is about; may be repeated.")
    ] = None,
    graph: Annotated[str | None, typer.Option(help="`sample`, a file or folder of RDF, or a store.")] = None,
    server: Annotated[
        str | None, typer.Option(metavar="COMMAND|URL", help="A server with these tools, in place of a graph.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The language model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Where it is: any OpenAI-compatible service.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Where to keep the record; in the data folder unless given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")] = False,
) -> None:
    """Answer a question with ODA or Graph Counselor, showing every step."""
    settings = invocation(context).load(graph=graph, llm=model, llm_base_url=base_url).settings
    if not question.strip():
        raise InvalidRequest("The question is blank.")
    if settings.llm is None and agent == "graph-counselor":
        raise InvalidRequest(f"Graph Counselor needs a model. {NO_MODEL}")
    path = trace or _new_trace(settings, question)
    reporter = Reporter(quiet=as_json)
    if settings.llm is None:
        reporter.say(NO_MODEL)
    import anyio

    answer = anyio.run(_ask, settings, question, agent, tuple(entities or ()), server, path, reporter)
    _print_json(answer, path) if as_json else reporter.conclude(answer, path)
    if not answer.answers:
        raise typer.Exit(ExitCode.REFUSED)


def replay(
    trace: Annotated[Path, typer.Argument(help="The record of a run, as `ask` keeps it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")] = False,
) -> None:
    """Run a question again from its record, without the model and the graph."""
    import anyio

    reporter = Reporter(quiet=as_json)
    answer, same = anyio.run(_replay, trace, reporter)
    _print_json(answer, trace) if as_json else reporter.conclude(answer, trace)
    if not same:
        print("The answer is not the one that was recorded.", file=sys.stderr)
        raise typer.Exit(ExitCode.REFUSED)


class Reporter:
    """Shows a run as it happens: on standard error, so that the answer stands alone on standard output.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)

    def say(self, text: str) -> None:
        """Show a sentence."""
        self._console.print(text, style="yellow", markup=False)

    def linked(self, linked: "Sequence[Linked]") -> None:
        """Show which entities were found in the question."""
        found = "; ".join(map(str, linked)) or "none was found"
        self._console.print(f"Entities: {found}", markup=False)

    def step(self, step: "Step") -> None:
        """Show a step."""
        from rich.text import Text

        found = f"  {step.found.splitlines()[0]}" if step.found else ""
        self._console.print(Text.assemble(f"{step.number}. ", (step.action or "·", "bold cyan"), (found, "dim")))
        if step.thought:
            self._console.print(f"   {step.thought}", style="dim", markup=False)
        for kept in step.kept:
            self._console.print(f"   + {kept}", markup=False)

    def conclude(self, answer: "AgentAnswer", path: Path) -> None:
        """Print the answers, what supports them, and what they took."""
        print("\n".join(answer.answers) or "No answer was found.")
        if answer.evidence:
            print("\nEvidence:", *(answer.labels.triple(fact) for fact in answer.evidence), sep="\n  ")
        if answer.explanation:
            print(f"\n{answer.explanation}")
        usage = answer.usage
        cost = f", cost {usage.cost:.4f}" if usage.cost else ""
        self._console.print(
            f"\n{len(answer.steps)} steps, {usage.tokens:,} tokens{cost}, {answer.seconds:.1f} s; trace: {path}",
            style="dim",
            markup=False,
        )


async def _ask(
    settings: Settings,
    question: str,
    agent: Literal["oda", "graph-counselor"],
    entities: tuple[str, ...],
    server: str | None,
    path: Path,
    reporter: Reporter,
) -> "AgentAnswer":
    from kg_agents.llm import AgentError
    from kg_agents.running import Question, Watcher, run_question
    from kg_agents.trace import Trace

    asked = Question(question, entities, agent, settings.graph if server is None else "")
    watcher = Watcher(reporter.linked, reporter.step)
    llm, judge = _model(settings, settings.llm), _model(settings, settings.judge_llm)
    try:
        with Trace(path) as trace:
            async with _tools(settings, server) as tools:
                return await run_question(asked, tools, llm, trace, judge=judge, watcher=watcher)
    except (AgentError, ExceptionGroup) as error:
        cause = only_cause(error)
        if not isinstance(cause, AgentError):
            raise
        raise BackendError(str(cause)) from error
    finally:
        for each in (llm, judge):
            if each is not None:
                await each.aclose()


async def _replay(trace: Path, reporter: Reporter) -> "tuple[AgentAnswer, bool]":
    from kg_agents.llm import AgentError
    from kg_agents.running import replay_question

    try:
        return await replay_question(trace, reporter.step)
    except AgentError as error:
        raise InvalidRequest(str(error)) from error


@asynccontextmanager
async def _tools(settings: Settings, server: str | None) -> "AsyncGenerator[Tools]":
    """Open a session to a server of somebody else, or to one of our own in this process."""
    from kg_agents.knowledge import connect_tools

    if server is not None:
        async with connect_tools(server) as tools:
            yield tools
        return
    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    async with opened(settings) as graph, connect_tools(build_server(graph, settings)) as tools:
        yield tools


def _model(settings: Settings, name: str | None) -> "OpenAiLlm | None":
    from kg_agents.openai_llm import OpenAiLlm, Prices

    if name is None:
        return None
    return OpenAiLlm(
        name,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        timeout_s=settings.llm_timeout_s,
        context_tokens=settings.llm_context_tokens,
        prices=Prices(settings.llm_prompt_price, settings.llm_reply_price),
    )


def _new_trace(settings: Settings, question: str) -> Path:
    words = "-".join("".join(letter if letter.isalnum() else " " for letter in question.lower()).split())[:40]
    return settings.data_folder / TRACES / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{words or 'question'}.jsonl"


def _print_json(answer: "AgentAnswer", path: Path) -> None:
    report = {
        "question": answer.question,
        "answers": answer.answers,
        "evidence": [{"triple": fact, "text": answer.labels.triple(fact)} for fact in answer.evidence],
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
        "trace": str(path),
    }
    print(json.dumps(report, ensure_ascii=False, indent=2))
