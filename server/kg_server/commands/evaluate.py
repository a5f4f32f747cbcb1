"""`kg-sextant eval`: benchmarks on a user's own model and graph."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_boundary.secrets import Redactor
from kg_boundary.shown import visible_line
from kg_server.commands.ask import SET_MODEL
from kg_server.commands.invocation import invocation
from kg_server.commands.output import say, warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.openai_llm import OpenAiLlm
    from kg_eval.reports.tables import Done
    from kg_eval.runs.plan import RunPlan
    from kg_eval.runs.running import Progress

evaluate = typer.Typer(help="Run benchmarks on your own model and graph.", no_args_is_help=True)

Folders = Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of runs.")]
Metric = Annotated[str, typer.Option(help="The metric; by default the one that the benchmark is published in.")]


@evaluate.command("run")
def run_benchmark(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the run is kept; the same command goes on with it.")],
    benchmark: Annotated[str, typer.Option(help="qald10, creak, t-rex, webqsp, grbench, world, jsonl, …")],
    data: Annotated[Path, typer.Option(metavar="FILE", help="The file or folder of its questions.")],
    method: Annotated[str, typer.Option(help="direct, cot, tog, graph-cot, oda, graph-counselor, …")] = "oda",
    graph: Annotated[str | None, typer.Option(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    model: Annotated[str | None, typer.Option(help="The language model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="Where it is: any OpenAI-compatible service.")] = None,
    judge: Annotated[str | None, typer.Option(metavar="MODEL", help="Another model, to judge.")] = None,
    reflector: Annotated[str | None, typer.Option(metavar="MODEL", help="Another model, to reflect.")] = None,
    linking: Annotated[
        Literal["gold", "model", "none"],
        typer.Option(help="Whether a question's entities are given, found, or not looked for."),
    ] = "gold",
    sample: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many questions are drawn.")] = None,
    seed: Annotated[int, typer.Option(help="What all dice begin with.")] = 0,
    at_once: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time.")] = 4,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be repeated."),
    ] = None,
) -> None:
    """Ask the questions of a benchmark, and keep every call; a run that was stopped goes on where it was."""
    called = invocation(context)
    loaded = called.load(graph=graph, llm=model, llm_base_url=base_url, reflector_llm=reflector, judge_llm=judge)
    settings = loaded.settings
    if settings.llm is None:
        raise InvalidRequest(f"A benchmark needs a model. {SET_MODEL}")
    plan = _plan(
        benchmark=benchmark,
        data=data,
        graph=called.secrecy.message(settings.graph),
        method=method,
        model=settings.llm,
        judge=settings.judge_llm or "",
        reflector=settings.reflector_llm or "",
        linking=linking,
        sample=sample,
        seed=seed,
        settings=tuple(parameters or ()),
    )
    import anyio

    failed = anyio.run(_run, settings, plan, out, at_once, called.secrecy.redactor)
    if failed:
        warn(f"{failed} questions failed and are not counted; the same command asks them again.")
    _show([out], "", official=False)


@evaluate.command("score")
def score_run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    official: Annotated[
        bool, typer.Option("--official", help="Also as the published script scores, quirks and all.")
    ] = False,
) -> None:
    """Score a run again, in every metric."""
    run = _done([folder], official=official)[0]
    for name, figure in run.summary.metrics.items():
        say(f"{name}: {100 * figure.value:.2f} ({100 * figure.low:.2f} to {100 * figure.high:.2f}), {figure.count}")
    for name, figure in run.summary.measures.items():
        say(f"{name}: {figure.value:.4g} ({figure.low:.4g} to {figure.high:.4g}), {figure.count}")


@evaluate.command("table")
def table_of_runs(
    folders: Folders,
    form: Annotated[Literal["text", "markdown", "csv"], typer.Option(help="How it is written.")] = "text",
    metric: Metric = "",
    official: Annotated[
        bool, typer.Option("--official", help="The published script's scores, quirks and all.")
    ] = False,
) -> None:
    """Show runs beside each other and beside what the papers print."""
    _show(folders, metric, official=official, form=form)


@evaluate.command("plot")
def plot_runs(
    folders: Folders,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the pictures go.")],
    metric: Metric = "",
) -> None:
    """Draw runs as bars with their intervals and the papers' figures, as SVG."""
    from kg_boundary.private_files import private_folder
    from kg_eval.reports.plots import plots_of

    private_folder(out)
    for name, svg in plots_of(_done(folders, official=False), metric).items():
        path = out / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        say(f"Drew {path}.")


def _plan(**fields: object) -> "RunPlan":
    from pydantic import ValidationError

    from kg_eval.runs.plan import RunPlan

    try:
        return RunPlan.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidRequest(f"--{first['loc'][0]} {fields[str(first['loc'][0])]!r}: {first['msg']}.") from error


async def _run(settings: Settings, plan: "RunPlan", out: Path, at_once: int, redactor: Redactor) -> int:
    from kg_agents.llm import AgentError
    from kg_agents.sessions import connect_tools
    from kg_eval.runs.running import Models, run
    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    llm, judge, reflector = (
        _model(settings, name, redactor) for name in (settings.llm, settings.judge_llm, settings.reflector_llm)
    )
    assert llm is not None  # noqa: S101 - the command has seen to it
    try:
        async with opened(settings) as graph, connect_tools(build_server(graph, settings)) as tools:
            models = Models(llm, judge, reflector)
            return await run(plan, out, tools, models, at_once=at_once, on_progress=_tell)
    except AgentError as error:
        raise _failure(error) from error
    finally:
        for each in (llm, judge, reflector):
            if each is not None:
                await each.aclose()


def _tell(progress: "Progress") -> None:
    if progress.done == progress.questions or progress.done % 10 == 0:
        before = f", {progress.before} of them before" if progress.before else ""
        warn(f"{progress.done} of {progress.questions} questions done{before}.")


def _model(settings: Settings, name: str | None, redactor: Redactor) -> "OpenAiLlm | None":
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
        redactor=redactor,
    )


def _done(folders: list[Path], *, official: bool) -> "list[Done]":
    from kg_agents.llm import AgentError
    from kg_eval.reports.tables import done
    from kg_eval.runs.running import read_outcomes, read_plan

    try:
        return [
            done(folder.name or str(folder), read_plan(folder), read_outcomes(folder), official=official)
            for folder in folders
        ]
    except AgentError as error:
        raise _failure(error) from error


def _show(folders: list[Path], metric: str, *, official: bool, form: str = "text") -> None:
    from kg_eval.metrics.summary import OFFICIAL
    from kg_eval.reports.tables import as_csv, as_markdown, as_text, tables_of

    tables = tables_of(_done(folders, official=official), OFFICIAL if official else metric)
    written: Final = {"text": as_text, "markdown": as_markdown}
    say(as_csv(tables) if form == "csv" else "\n\n".join(map(written[form], tables)))


def _failure(error: Exception) -> InvalidRequest | BackendError:
    """Return what the command line says of an error of a run: wrong usage, or something that failed."""
    from kg_eval.questions import InvalidQuestions
    from kg_eval.runs.plan import InvalidPlan

    text = visible_line(" ".join(str(error).split()))
    return InvalidRequest(text) if isinstance(error, InvalidQuestions | InvalidPlan) else BackendError(text)
