"""kg-sextant eval: benchmarks on a user's own model and graph, with tables, plots and pages."""

import sys
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import BackendError, InvalidRequest
from kg_boundary.installation import install_command
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_plain_words, one_line
from kg_server.commands import options
from kg_server.commands.answering import SET_MODEL, as_published, exact, keep_solved, likeness, score_of
from kg_server.commands.invocation import invocation
from kg_server.commands.output import say, show, warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_eval.plan import RunPlan
    from kg_eval.reports.tables import Done

Folders = Annotated[list[Path], typer.Argument(metavar="DIR…", help="The folders of runs.")]
Metric = Annotated[
    Literal["tog-em", "hits@1", "f1", "set", "exact", "rouge-l", "judge"] | None,
    typer.Option(help="The metric; default: the one in which results on the benchmark are published."),
]


def add_reports(app: typer.Typer) -> None:
    """Add the commands to those of `eval`."""
    app.command("score")(score_run)
    app.command("table")(table_of_runs)
    app.command("plot")(plot_runs)
    app.command("page")(page_of_run)


def score_run(
    context: typer.Context,
    folder: options.RunFolder,
    official: options.Official = False,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", metavar="MODEL", help="First let this model judge each answer. May be repeated."),
    ] = None,
    base_url: options.BaseUrl = None,
    as_json: options.Json = False,
) -> None:
    """Score a run again in every metric. Verdicts of judges are kept and reused."""
    _needs_extra()
    for judge in judges or ():
        import anyio

        called = invocation(context)
        settings = called.load(model=judge, base_url=base_url).settings
        anyio.run(_judge, folder, settings, called.secrecy.redactor)
    summary = _done([folder], official=official)[0].summary
    metrics = (
        f"{name}: {100 * figure.value:.2f} ({100 * figure.low:.2f} to {100 * figure.high:.2f}), {figure.count}"
        for name, figure in summary.metrics.items()
    )
    measures = (
        f"{name}: {figure.value:.4g} ({figure.low:.4g} to {figure.high:.4g}), {figure.count}"
        for name, figure in summary.measures.items()
    )
    show(summary, (*metrics, *measures), as_json=as_json)


def table_of_runs(
    folders: Folders,
    form: Annotated[Literal["text", "markdown", "csv"], typer.Option(help="The format of the tables.")] = "text",
    metric: Metric = None,
    official: options.Official = False,
) -> None:
    """Compare runs with each other and with the papers' figures."""
    show_tables(folders, metric or "", official=official, form=form)


def plot_runs(
    folders: Folders,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the pictures.")],
    metric: Metric = None,
) -> None:
    """Draw runs as SVG pictures.

    Runs are bars beside the papers' figures; runs that differ in one parameter are lines over its values.
    """
    runs = _done(folders, official=False)
    from kg_eval.reports.plots import draw

    for path in draw(runs, out, metric or ""):
        say(f"Drew {path}.")


def page_of_run(
    folder: options.RunFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")],
    metric: Metric = None,
) -> None:
    """Write an HTML page of a run.

    It shows every question with its calls, evidence and verdict.
    """
    from kg_eval.reports.page import page_of

    (run,) = _done([folder], official=False)
    out.write_text(page_of(run, metric or ""), encoding="utf-8")
    say(f"Wrote {out}.")


async def _judge(folder: Path, settings: Settings, redactor: Redactor) -> None:
    from kg_agents.llm import AgentError
    from kg_agents.llm.dialogue import RunEnded
    from kg_eval.logs import judge_run
    from kg_server.commands.graphs import models_of

    async with models_of(settings, redactor) as (llm, *_):
        assert llm is not None  # noqa: S101 - the option that is given sets it
        try:
            await judge_run(folder, llm)
        except (AgentError, RunEnded) as error:
            raise failure(error) from error


def _done(folders: list[Path], *, official: bool) -> "list[Done]":
    _needs_extra()
    from kg_agents.llm import AgentError
    from kg_eval.logs import read_run
    from kg_eval.reports.tables import done

    try:
        return [done(folder.name, read_run(folder), official=official) for folder in map(Path.absolute, folders)]
    except AgentError as error:
        raise failure(error) from error


def _needs_extra() -> None:
    """Raise InvalidRequest where the packages that benchmarks need are not installed."""
    if find_spec("inspect_ai") is None or find_spec("matplotlib") is None:
        raise InvalidRequest(f"Benchmarks need more packages. Run: {install_command('eval')}")


def show_tables(folders: list[Path], metric: str, *, official: bool, form: str = "text") -> None:
    """Print the tables of runs."""
    from kg_eval.metrics.scores import OFFICIAL
    from kg_eval.reports.tables import as_csv, as_markdown, as_text, tables_of

    tables = tables_of(_done(folders, official=official), OFFICIAL if official else metric)
    written: Final = {"text": as_text, "markdown": as_markdown}
    say(as_csv(tables) if form == "csv" else "\n\n".join(map(written[form], tables)))


def failure(error: Exception) -> InvalidRequest | BackendError:
    """Return the error of a run as wrong usage or as a failure."""
    from kg_eval.plan import InvalidPlan
    from kg_eval.questions import InvalidQuestions

    text = one_line(str(error))
    return InvalidRequest(text) if isinstance(error, InvalidQuestions | InvalidPlan) else BackendError(text)


NO_LIMIT: Final = 10**9
LEARNED: Final = "learned"
WHO_REFLECTS: Final = "graph-counselor does, with reflections above 0, and oda with --set manner=paper."

evaluate = typer.Typer(help="Run benchmarks on your own model and graph.", no_args_is_help=True)
add_reports(evaluate)


@evaluate.command("run")
def run_benchmark(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for the run. To resume a stopped run, repeat the command.")
    ],
    benchmark: Annotated[
        str, typer.Option(help="The benchmark: qald10, creak, t-rex, webqsp, grbench, world, jsonl, …")
    ],
    data: Annotated[Path, typer.Option(metavar="FILE", help="The file or folder of the benchmark's questions.")],
    method: Annotated[str, typer.Option(help="The method: direct, cot, tog, graph-cot, oda, tools, …")] = "oda",
    graph: options.Graphs = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    judge: options.Judge = None,
    reflector: options.Reflector = None,
    linking: Annotated[
        Literal["gold", "model", "none"],
        typer.Option(
            help="Where the entities of a question come from: the benchmark (gold), the model, or nowhere (none)."
        ),
    ] = "gold",
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Ask only N questions, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of random choices.")] = 0,
    at_once: options.AtOnce = 4,
    parameters: options.Parameters = None,
    learn: options.Learn = False,
) -> None:
    """Run a method on a benchmark.

    Every call is recorded.
    """
    _needs_extra()
    called = invocation(context)
    loaded = called.load_for_any(graph=graph, model=model, base_url=base_url, reflector=reflector, judge=judge)
    settings = loaded.settings
    if settings.llm.model is None:
        raise InvalidRequest(f"A benchmark needs a model. {SET_MODEL}")
    plan = _plan(
        benchmark=benchmark,
        data=data,
        graph=_graph_of(settings, called.secrecy.redactor),
        method=method,
        model=settings.llm.model,
        judge=settings.llm.judge or "",
        reflector=settings.llm.reflector or "",
        linking=linking,
        sample=sample,
        seed=seed,
        settings=tuple(parameters or ()),
        learn=learn,
    )
    if plan.reflector and not _reflects(plan):
        if reflector is not None:
            raise InvalidRequest(f"--reflector {reflector!r}: {method} asks no model to reflect. {WHO_REFLECTS}")
        plan = plan.model_copy(update={"reflector": ""})
    import anyio

    failed = anyio.run(_run, settings, plan, out, at_once, called.secrecy.redactor)
    if failed:
        warn(f"{failed} questions failed and are not counted; run the same command again to retry them.")
    show_tables([out], "", official=False)


def _graph_of(settings: Settings, redactor: Redactor) -> str | tuple[str, ...]:
    """Return the graph of a run, or several as words that name each."""
    several = [redactor.message(f"{name}={settings.of(name).graph}") for name in settings.graphs]
    return tuple(several) or redactor.message(settings.graph)


def _plan(**fields: object) -> "RunPlan":
    from pydantic import ValidationError

    from kg_eval.plan import RunPlan

    try:
        return RunPlan.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        flag, problem = str(first["loc"][0]), in_plain_words(first["msg"])
        raise InvalidRequest(f"--{flag} {fields[flag]!r}: {problem}.") from error


def _reflects(plan: "RunPlan") -> bool:
    from kg_agents.llm import AgentError
    from kg_eval.methods.catalog import method_of, reflects

    try:
        return reflects(method_of(plan.method, plan.settings))
    except AgentError as error:
        raise failure(error) from error


@evaluate.command("suite")
def run_suite(
    context: typer.Context,
    suite: Annotated[Path, typer.Argument(metavar="FILE", help="The suite: a TOML file that lists runs.")],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="The folder for the runs, each in its own subfolder. To resume, repeat the command."
        ),
    ],
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="The language model of runs for which the suite names none.")
    ] = None,
    base_url: options.BaseUrl = None,
    at_once: options.AtOnce = 4,
) -> None:
    """Make all runs of a suite, one after the other."""
    _needs_extra()
    import anyio

    from kg_agents.llm import AgentError
    from kg_eval.plan import read_suite

    called = invocation(context)
    settings = called.load(model=model, base_url=base_url).settings
    try:
        plans = read_suite(suite, {"model": settings.llm.model} if settings.llm.model is not None else {})
    except AgentError as error:
        raise failure(error) from error
    for name, plan in plans.items():
        warn(f"{name}:")
        others = {"judge": plan.judge or None, "reflector": plan.reflector or None}
        of_plan = called.load_for_any(graph=plan.graphs, model=plan.model, base_url=base_url, **others).settings
        if failed := anyio.run(_run, of_plan, plan, out / name, at_once, called.secrecy.redactor):
            warn(f"{failed} questions failed and are not counted; run the same command again to retry them.")
    show_tables([out / name for name in plans], "", official=False)


async def _run(settings: Settings, plan: "RunPlan", out: Path, at_once: int, redactor: Redactor) -> int:
    from kg_agents.llm import AgentError, Models
    from kg_agents.tools.client import ComparingTools, ExactTools, connect_tools
    from kg_eval.methods.catalog import WITHOUT_GRAPH, method_of, needs_exact_scores
    from kg_eval.player import player_of
    from kg_eval.running import run
    from kg_server.app import build_server
    from kg_server.commands.graphs import models_of, served

    with TemporaryDirectory(prefix="kg-sextant-") as temporary:
        try:
            player = player_of(plan.model, plan.benchmark, plan.data)
            in_paper = needs_exact_scores(method_of(plan.method, plan.settings))
            settings = exact(settings) if in_paper else settings
            alone = _alone(settings, plan, out / LEARNED if plan.learn else Path(temporary))
            if plan.method not in WITHOUT_GRAPH:
                plan = plan.model_copy(update=await score_of(alone))
            async with (
                models_of(settings, redactor) as (llm, judge, reflector),
                served(settings) as graphs,
                connect_tools(build_server(graphs, alone)) as connected,
            ):
                assert llm is not None  # noqa: S101 - the command has seen to it
                models = Models(player or llm, judge, reflector)
                learn = partial(keep_solved, alone, graphs)
                tools = ComparingTools(ExactTools(connected) if in_paper else connected, partial(likeness, alone))
                # The tables go to standard output; the progress that inspect_ai shows does not.
                with redirect_stdout(sys.stderr):
                    return await run(plan, out, tools, models, at_once=at_once, learn=learn)
        except AgentError as error:
            raise failure(error) from error


def _alone(settings: Settings, plan: "RunPlan", folder: Path) -> Settings:
    """Return settings in which memories of thousands of questions may be kept, as their evidence is compared.

    They are kept in a folder of their own: they would crowd out those of the user, whose records would change figures.
    """
    from kg_agents.papers.graph_counselor import CounselorSettings
    from kg_eval.methods.catalog import AgentMethod, method_of

    method = method_of(plan.method, plan.settings)
    if isinstance(method, AgentMethod) and isinstance(method.settings, CounselorSettings):
        settings = as_published(settings, method.settings)
    memory = settings.memory.model_copy(update={"memories": NO_LIMIT, "store_mb": NO_LIMIT, "database": None})
    return settings.model_copy(update={"memory": memory, "learn": plan.learn, "data_folder": folder})
