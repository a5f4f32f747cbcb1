"""`kg-sextant doctor`: check the installation, the settings and a graph, and suggest fixes."""

import json
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer
from pydantic import SecretStr

from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.registry import URLS
from kg_boundary.installation import install_command
from kg_boundary.private_files import private_folder
from kg_boundary.secrets import STRONG
from kg_boundary.shown import counted, visible_line
from kg_server.commands import options
from kg_server.commands.invocation import Invocation, config_path, invocation
from kg_server.commands.loading import DEFAULT, LoadedSettings
from kg_server.commands.output import ExitCode, show, text_of
from kg_server.settings import APP, Settings

if TYPE_CHECKING:
    from kg_adapters.local.store import StoreInfo

Grade: TypeAlias = Literal["ok", "warn", "fail"]

PACKAGES: Final = (APP, "mcp", "pydantic", "pyoxigraph", "tantivy", "numpy", "onnxruntime")
COLOURS: Final[Mapping[Grade, str]] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; a detail is as usual, and shown only to those who want to see everything."""

    grade: Grade
    text: str
    detail: bool = False


def doctor(
    context: typer.Context,
    graph: options.GraphArguments = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare every file of a store with the checksums of its import.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Show every check and setting, not only problems and the settings that you changed."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check this installation, its settings and its graphs, and suggest fixes."""
    import anyio

    called = invocation(context)
    loaded = called.load_for_any(graph=graph)
    if as_json:
        worst = anyio.run(_report_as_json, called, loaded, deep)
    else:
        worst = anyio.run(_report, called, loaded, deep, everything)
    if worst == "fail":
        raise typer.Exit(ExitCode.REFUSED)


async def _report(called: Invocation, loaded: LoadedSettings, deep: bool, everything: bool) -> Grade:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    findings: list[Finding] = []
    async for finding in _findings(called, loaded, deep):
        findings.append(finding)
        if everything or not finding.detail:
            label = (f"{finding.grade:<5}", COLOURS[finding.grade])
            console.print(Text.assemble(label, visible_line(finding.text)))
    worst = _worst(findings)
    if hidden := sum(finding.detail for finding in findings if not everything):
        console.print(Text(f"{hidden} checks and settings are as usual; --all shows them.", "dim"))
    summary = {
        "ok": "No problems found.",
        "warn": "It works; see the warnings above.",
        "fail": "Fix the failures above and run again.",
    }
    console.print(Text(summary[worst], COLOURS[worst]))
    return worst


async def _report_as_json(called: Invocation, loaded: LoadedSettings, deep: bool) -> Grade:
    findings = [finding async for finding in _findings(called, loaded, deep)]
    worst = _worst(findings)
    show({"worst": worst, "findings": findings}, (), as_json=True)
    return worst


def _worst(findings: Sequence[Finding]) -> Grade:
    grades = {finding.grade for finding in findings}
    return "fail" if "fail" in grades else "warn" if "warn" in grades else "ok"


async def _findings(called: Invocation, loaded: LoadedSettings, deep: bool) -> AsyncIterator[Finding]:
    """Yield the result of each check, without secrets."""
    async for finding in _checked(called, loaded, deep):
        yield replace(finding, text=loaded.settings.redactor.message(finding.text))


async def _checked(called: Invocation, loaded: LoadedSettings, deep: bool) -> AsyncIterator[Finding]:
    yield Finding("ok", f"Python {platform.python_version()} at {sys.executable}", detail=True)
    for finding in (*_packages(), *_settings(called, loaded), *_folders(loaded.settings)):
        yield finding
    if loaded.settings.memory.database is not None:
        yield await _remembering(loaded.settings)
    yield await _comparing(loaded.settings)
    for name in loaded.settings.graphs:
        async for finding in _checked_graph(loaded.settings.of(name), deep):
            yield replace(finding, text=f"{name}: {finding.text}")
    if not loaded.settings.graphs:
        async for finding in _checked_graph(loaded.settings, deep):
            yield finding
    for finding in await _linking(loaded.settings):
        yield finding


async def _checked_graph(settings: Settings, deep: bool) -> AsyncIterator[Finding]:
    opening: tuple[Callable[[Settings], Awaitable[Finding]], ...] = (partial(_intact, deep=deep), _answering)
    # To open an endpoint takes no request: whether it is there, only an answer shows.
    for check in (_reaching, *(reversed(opening) if settings.graph.startswith(URLS) else opening)):
        try:
            finding = await check(settings)
            yield finding
            if finding.grade == "fail":
                return
        except (KGError, OSError) as error:
            yield Finding("fail", f"Graph {settings.graph}: {error}")
            return
    async for finding in _noted(settings):
        yield finding


def _packages() -> Iterator[Finding]:
    for name in PACKAGES:
        try:
            yield Finding("ok", f"{name} {version(name)}", detail=name != APP)
        except PackageNotFoundError:
            yield Finding("fail", f"{name} is not installed. Install {APP} again: {install_command()}")


def _settings(called: Invocation, loaded: LoadedSettings) -> Iterator[Finding]:
    file = called.settings_file
    yield Finding("ok", f"Settings file: {file}" if file else f"No settings file; it would be {config_path()}")
    for name, origin in loaded.origins.items():
        value = loaded.settings.value(name)
        shown = json.dumps(value, ensure_ascii=False, default=str)
        yield Finding("ok", f"{name} = {shown}, from {origin}", detail=origin == DEFAULT)
        if isinstance(value, SecretStr) and len(value.get_secret_value()) < STRONG:
            yield Finding(
                "warn",
                f"{name} has fewer than {STRONG} characters: where a service repeats it, it is hidden in messages as a "
                "word, and cannot be told from words in answers; choose a longer one",
            )


def _folders(settings: Settings) -> Iterator[Finding]:
    yield _writable(settings.cache_folder, "cache")
    yield _writable(settings.data_folder, "data")


def _writable(folder: Path, kind: str) -> Finding:
    try:
        private_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = f"set {kind}_folder to one that can be written (KG_SEXTANT_{kind.upper()}_FOLDER)"
        return Finding("fail", f"The {kind} folder {folder} cannot be written ({error.strerror}): {advice}")
    return Finding("ok", f"The {kind} folder {folder} can be written", detail=True)


async def _remembering(settings: Settings) -> Finding:
    """Return whether the database of memories answers; its tables are made if need be."""
    from kg_server.app import memories_of

    try:
        store = memories_of(settings)
        try:
            await store.check()
        finally:
            await store.aclose()
    except BackendUnavailable as error:
        # What callers are not shown, the administrator needs.
        reason = " ".join(str(error.__cause__ or error).split())
        return Finding("fail", settings.redactor.message(f"The memory database cannot be used: {reason}"))
    except KGError as error:
        return Finding("fail", str(error))
    return Finding("ok", "The memory database answers")


async def _comparing(settings: Settings) -> Finding:
    """Try what compares meanings; without it everything works, only less well."""
    from kg_adapters.embedding import OpenAiEmbedder
    from kg_server.embedders import embedder_of, guarded

    if settings.embedding.embedder == "lexical":
        return Finding("ok", "Texts are compared by their letters, as the setting embedding.embedder says")
    available = await embedder_of(settings)
    if available.fallback_reason is not None:
        return Finding("warn", available.fallback_reason)
    embedder = available.embedder
    try:
        await (guarded(embedder, settings) if isinstance(embedder, OpenAiEmbedder) else embedder).embed(["capital"])
    except KGError as error:
        return Finding(
            "fail",
            f"The embedder {settings.embedding.embedder} fails: {error} Until then texts are compared by letters.",
        )
    finally:
        if isinstance(embedder, OpenAiEmbedder):
            await embedder.aclose()
    return Finding("ok", f"Meanings are compared by {embedder.fingerprint}")


async def _reaching(settings: Settings) -> Finding:
    """Return how the graph is reached, and which settings would improve its answers."""
    from kg_server.commands.graphs import endpoint_of, wikidata_of

    wikidata, endpoint = wikidata_of(settings), endpoint_of(settings)
    if wikidata is not None:
        from kg_adapters.wikidata.opening import advice

        text = f"Wikidata is asked at most {wikidata.per_minute} times a minute, as {wikidata.user_agent}"
        advised = advice(wikidata)
        return Finding("warn" if advised else "ok", ". ".join((text, *advised)))
    return Finding("ok", "The graph is on this machine" if endpoint is None else f"The endpoint is at {endpoint.host}")


async def _intact(settings: Settings, *, deep: bool) -> Finding:
    """Open the graph as a server does, and compare files of its store with the hashes noted at import.

    Args:
        settings: They name the graph.
        deep: Whether every file is compared; otherwise the index alone.
    """
    from anyio import to_thread

    from kg_adapters.local.store import open_store, verify_index, verify_store
    from kg_adapters.protocol import SupportsEngineNote
    from kg_server.commands.graphs import opened, store_of

    async with opened(settings) as graph:
        name, note = graph.name, graph.engine_note if isinstance(graph, SupportsEngineNote) else ""
    folder = store_of(settings.graph, settings)
    if folder is None:
        return Finding("ok", f"Graph {name} opens; {note}" if note else f"Graph {name} opens")
    if not deep:
        store = await to_thread.run_sync(open_store, folder)
        size = await to_thread.run_sync(verify_index, store)
        rest = "names, vectors and the SPARQL part are checked when they are first used, or by doctor --deep"
        return _held(store.info, f"The index of store {folder} is intact ({size:,} bytes compared; {rest})")
    found = await to_thread.run_sync(verify_store, folder)
    if found.unsealed:
        places = " and ".join(found.unsealed)
        text = f"{places} in store {folder}: some vectors there are unfinished and unused; import with --embed again"
        return Finding("warn", text)
    return _held(found.info, f"Store {folder} is intact, all {found.size:,} bytes in {found.files} files compared")


def _held(info: "StoreInfo", text: str) -> Finding:
    counts = info.counts
    triples, entities = counted(counts.triples, "triple"), counted(counts.entities, "entity", "entities")
    held = f"{triples}, {entities}, {info.skipped:,} skipped at import"
    return Finding("warn" if info.skipped else "ok", f"{text}: {held}")


async def _answering(settings: Settings) -> Finding:
    """Make one tool call as a client would."""
    from kg_server.commands.graphs import connected

    async with connected(settings) as (_, client):
        tools = (await client.list_tools()).tools
        started = time.perf_counter()
        result = await client.call_tool("Schema", {})
        took_ms = 1_000 * (time.perf_counter() - started)
    if result.is_error:
        return Finding("fail", f"The first tool call was refused: {text_of(result)}")
    return Finding("ok", f"{len(tools)} tools; the first call took {took_ms:.0f} ms")


async def _noted(settings: Settings) -> AsyncIterator[Finding]:
    """Check the notes of the graph: their form, preferred relations, and the calls of their examples."""
    from kg_server.commands.notes import CHECK_S, checked_notes

    try:
        found = await checked_notes(settings, CHECK_S)
    except KGError as error:
        yield Finding("fail", f"The notes cannot be checked: {error}")
        return
    if found is None:
        yield Finding("ok", "The graph has no notes", detail=True)
        return
    for problem in found.told():
        yield Finding("warn", problem)
    if not found.problems:
        yield Finding("ok", f"Notes {found.file}: {counted(len(found.notes.examples), 'example')} checked")


async def _linking(settings: Settings) -> Sequence[Finding]:
    """Return the rules of `links` that link nothing, as none of the graphs that have them has a fact of their relation.

    A graph that cannot be opened has been reported; nothing is known of its rules.
    """
    from kg_adapters.links import relation_of_link, split_link
    from kg_server.commands.graphs import opened

    linking: dict[str, bool] = {}
    for own in map(settings.of, settings.graphs) if settings.graphs else (settings,):
        if not own.links:
            continue
        try:
            async with opened(own) as graph:
                relations = {rule: relation_of_link(rule, graph.prefixes) for rule in own.links}
                described = await graph.describe([each for each in relations.values() if each is not None])
        except (KGError, OSError):
            linking |= dict.fromkeys(own.links, True)
            continue
        for rule, relation in relations.items():
            used = relation is not None and relation in described and "relation" in described[relation].roles
            linking[rule] = used or linking.get(rule, False)
    return [
        Finding(
            "warn",
            f"links: {rule} links nothing: no graph that has it has a fact of {split_link(rule)[0]}, or none knows "
            "its prefix; write the relation as an IRI, or add the prefix to the setting prefixes",
        )
        for rule, links in linking.items()
        if not links
    ]
