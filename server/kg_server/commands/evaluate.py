"""`kg-sextant eval`: benchmarks on a user's own model and graph."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.secrets import Redactor
from kg_boundary.validation import in_plain_words
from kg_server.commands.ask import SET_MODEL
from kg_server.commands.evaluation_reports import add_reports, failure, show
from kg_server.commands.invocation import invocation
from kg_server.commands.models import model_of
from kg_server.commands.output import warn
from kg_server.commands.solved import keep_solved
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_eval.runs.plan import RunPlan
    from kg_eval.runs.running import Progress

NO_LIMIT: Final = 10**9
LEARNED: Final = "learned"
WHO_REFLECTS: Final = "graph-counselor does, with reflections above 0, and oda with --set manner=paper."

evaluate = typer.Typer(help="Run benchmarks on your own model and graph.", no_args_is_help=True)
add_reports(evaluate)


@evaluate.command("run")
def run_benchmark(  # noqa: PLR0913, PLR0917 - one argument for each option
    context: typer.Context,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the run; run the same command again to resume.")
    ],
    benchmark: Annotated[str, typer.Option(help="qald10, creak, t-rex, webqsp, grbench, world, jsonl, …")],
    data: Annotated[Path, typer.Option(metavar="FILE", help="The file or folder of its questions.")],
    method: Annotated[str, typer.Option(help="direct, cot, tog, graph-cot, oda, tools, …")] = "oda",
    graph: Annotated[str | None, typer.Option(help="`sample`, RDF files, a store, or an endpoint's URL.")] = None,
    model: Annotated[str | None, typer.Option(help="The language model.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The URL of its service: any OpenAI-compatible one.")] = None,
    judge: Annotated[str | None, typer.Option(metavar="MODEL", help="Another model, to judge.")] = None,
    reflector: Annotated[str | None, typer.Option(metavar="MODEL", help="Another model, to reflect.")] = None,
    linking: Annotated[
        Literal["gold", "model", "none"],
        typer.Option(help="Whether a question's entities are given, found, or not looked for."),
    ] = "gold",
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Ask only this many questions, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of all random choices.")] = 0,
    at_once: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time.")] = 4,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; may be repeated."),
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Keep what is solved in DIR, and show it to the model as examples.")
    ] = False,
) -> None:
    """Ask the questions of a benchmark, and keep every call; after a stop, run it again to resume."""
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
    show([out], "", official=False)


def _plan(**fields: object) -> "RunPlan":
    from pydantic import ValidationError

    from kg_eval.runs.plan import RunPlan

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
    suite: Annotated[Path, typer.Argument(metavar="FILE", help="The suite (TOML).")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the runs are kept, each in a folder of its own.")],
    model: Annotated[str | None, typer.Option(help="The language model, where the suite names none.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The URL of its service: any OpenAI-compatible one.")] = None,
    at_once: Annotated[int, typer.Option(min=1, help="How many questions are asked at a time.")] = 4,
) -> None:
    """Make the runs of a suite one after the other; after a stop, run it again to resume."""
    import anyio

    from kg_agents.llm import AgentError
    from kg_eval.runs.suite import read_suite

    called = invocation(context)
    settings = called.load(llm=model, llm_base_url=base_url).settings
    try:
        plans = read_suite(suite, {"model": settings.llm} if settings.llm is not None else {})
    except AgentError as error:
        raise failure(error) from error
    for name, plan in plans.items():
        warn(f"{name}:")
        flags = {"graph": plan.graph, "llm": plan.model, "llm_base_url": base_url}
        of_plan = called.load(**flags, judge_llm=plan.judge or None, reflector_llm=plan.reflector or None).settings
        if failed := anyio.run(_run, of_plan, plan, out / name, at_once, called.secrecy.redactor):
            warn(f"{failed} questions failed and are not counted; run the same command again to retry them.")
    show([out / name for name in plans], "", official=False)


async def _run(settings: Settings, plan: "RunPlan", out: Path, at_once: int, redactor: Redactor) -> int:
    from kg_agents.llm import AgentError
    from kg_agents.sessions import connect_tools
    from kg_eval.runs.running import Models, run
    from kg_server.app import build_server
    from kg_server.commands.graphs import opened

    llm, judge, reflector = (
        model_of(settings, name, redactor) for name in (settings.llm, settings.judge_llm, settings.reflector_llm)
    )
    assert llm is not None  # noqa: S101 - the command has seen to it
    alone = _alone(settings, plan, out)
    try:
        async with opened(settings) as graph, connect_tools(build_server(graph, alone)) as tools:
            models = Models(llm, judge, reflector)
            learn = partial(keep_solved, alone, graph)
            return await run(plan, out, tools, models, at_once=at_once, on_progress=_tell, learn=learn)
    except AgentError as error:
        raise failure(error) from error
    finally:
        for each in (llm, judge, reflector):
            if each is not None:
                await each.aclose()


def _alone(settings: Settings, plan: "RunPlan", out: Path) -> Settings:
    """Return settings for one client that begins memories for thousands of questions, as their evidence is compared.

    What a run learns stays in its folder: what others have learned would change its figures.
    """
    limits: dict[str, object] = {"memory_new_per_hour": NO_LIMIT, "memory_client_share": 1.0, "learn": plan.learn}
    return settings.model_copy(update={**limits, "data_folder": out / LEARNED} if plan.learn else limits)


def _tell(progress: "Progress") -> None:
    if progress.done == progress.questions or progress.done % 10 == 0:
        before = f", {progress.before} of them before" if progress.before else ""
        warn(f"{progress.done} of {progress.questions} questions done{before}.")
