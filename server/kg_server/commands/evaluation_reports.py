"""What becomes of runs of benchmarks: scores, tables, pictures and pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_boundary.secrets import Redactor
from kg_boundary.shown import visible_line
from kg_server.commands.invocation import invocation
from kg_server.commands.models import model_of
from kg_server.commands.output import say
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_eval.reports.tables import Done

Folders = Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of runs.")]
Metric = Annotated[
    Literal["tog-em", "hits@1", "f1", "set", "exact", "rouge-l", "judge"] | None,
    typer.Option(help="The metric; by default the one that the benchmark is published in."),
]


def add_reports(app: typer.Typer) -> None:
    """Add the commands to those of `eval`."""
    app.command("score")(score_run)
    app.command("table")(table_of_runs)
    app.command("plot")(plot_runs)
    app.command("page")(page_of_run)


def score_run(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    official: Annotated[
        bool, typer.Option("--official", help="Also score as the published script does, quirks included.")
    ] = False,
    judge: Annotated[str | None, typer.Option(metavar="MODEL", help="A model that judges each answer first.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The URL of its service: any OpenAI-compatible one.")] = None,
) -> None:
    """Score a run again, in every metric; what a judge says is kept, so that nothing is judged twice."""
    if judge is not None:
        import anyio

        called = invocation(context)
        settings = called.load(llm=judge, llm_base_url=base_url).settings
        anyio.run(_judge, folder, settings, called.secrecy.redactor)
    run = _done([folder], official=official)[0]
    for name, figure in run.summary.metrics.items():
        say(f"{name}: {100 * figure.value:.2f} ({100 * figure.low:.2f} to {100 * figure.high:.2f}), {figure.count}")
    for name, figure in run.summary.measures.items():
        say(f"{name}: {figure.value:.4g} ({figure.low:.4g} to {figure.high:.4g}), {figure.count}")


def table_of_runs(
    folders: Folders,
    form: Annotated[Literal["text", "markdown", "csv"], typer.Option(help="How it is written.")] = "text",
    metric: Metric = None,
    official: Annotated[
        bool, typer.Option("--official", help="The published script's scores, quirks included.")
    ] = False,
) -> None:
    """Show runs beside each other and beside what the papers print."""
    show(folders, metric or "", official=official, form=form)


def plot_runs(
    folders: Folders,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the pictures go.")],
    metric: Metric = None,
) -> None:
    """Draw runs as bars with the papers' figures, and sweeps of a parameter as lines, with intervals, as SVG."""
    from kg_boundary.private_files import private_folder
    from kg_eval.reports.lines import sweeps_of
    from kg_eval.reports.plots import plots_of

    private_folder(out)
    runs = _done(folders, official=False)
    for name, svg in {**plots_of(runs, metric or ""), **sweeps_of(runs, metric or "")}.items():
        path = out / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        say(f"Drew {path}.")


def page_of_run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page (HTML).")],
    metric: Metric = None,
) -> None:
    """Write a page with every question of a run, its calls, evidence and verdict, which opens from disk."""
    from kg_agents.llm import AgentError
    from kg_eval.reports.page import page_of
    from kg_eval.runs.journal import read_lines

    (run,) = _done([folder], official=False)
    try:
        lines = [read_lines(path) for path in sorted(folder.glob("questions/*.jsonl"))]
    except AgentError as error:
        raise failure(error) from error
    out.write_text(page_of(run, lines, metric or ""), encoding="utf-8")
    say(f"Wrote {out}.")


async def _judge(folder: Path, settings: Settings, redactor: Redactor) -> None:
    from kg_agents.dialogue import RunEnded
    from kg_agents.llm import AgentError
    from kg_eval.runs.running import read_outcomes
    from kg_eval.runs.verdicts import judge_run

    llm = model_of(settings, settings.llm, redactor)
    assert llm is not None  # noqa: S101 - the option that is given sets it
    try:
        await judge_run(folder, read_outcomes(folder), llm)
    except (AgentError, RunEnded) as error:
        raise failure(error) from error
    finally:
        await llm.aclose()


def _done(folders: list[Path], *, official: bool) -> "list[Done]":
    from kg_agents.llm import AgentError
    from kg_eval.reports.tables import done
    from kg_eval.runs.running import read_outcomes, read_plan
    from kg_eval.runs.verdicts import read_verdicts

    try:
        return [
            done(folder.name, read_plan(folder), read_outcomes(folder), read_verdicts(folder)[0], official=official)
            for folder in map(Path.absolute, folders)
        ]
    except AgentError as error:
        raise failure(error) from error


def show(folders: list[Path], metric: str, *, official: bool, form: str = "text") -> None:
    """Print the tables of runs."""
    from kg_eval.metrics.summary import OFFICIAL
    from kg_eval.reports.tables import as_csv, as_markdown, as_text, tables_of

    tables = tables_of(_done(folders, official=official), OFFICIAL if official else metric)
    written: Final = {"text": as_text, "markdown": as_markdown}
    say(as_csv(tables) if form == "csv" else "\n\n".join(map(written[form], tables)))


def failure(error: Exception) -> InvalidRequest | BackendError:
    """Return what the command line says of an error of a run: wrong usage, or something that failed."""
    from kg_eval.questions import InvalidQuestions
    from kg_eval.runs.plan import InvalidPlan

    text = visible_line(" ".join(str(error).split()))
    return InvalidRequest(text) if isinstance(error, InvalidQuestions | InvalidPlan) else BackendError(text)
