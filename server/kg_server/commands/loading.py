"""Read the settings from flags, the environment and a file, and know where each value came from."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from kg_adapters.errors import InvalidRequest
from kg_adapters.registry import URLS
from kg_boundary.regular_files import read_toml
from kg_boundary.shown import in_plain_words, shown_within
from kg_server.commands.graph_words import NamedGraph, graph_name, named_graphs
from kg_server.commands.options import flag_of
from kg_server.commands.output import warn
from kg_server.settings import ENVIRONMENT_PREFIX, FIELDS, OF_A_GRAPH, Settings, variable

OPENAI_VARIABLES: Final = {
    "OPENAI_API_KEY": ("embedding.api_key", "llm.api_key"),
    "OPENAI_BASE_URL": ("embedding.base_url", "llm.base_url"),
}
"""What the environment may hold for any program that speaks to OpenAI, and the settings that it stands for."""

DEFAULT: Final = "the default"
"""Where a setting comes from that nobody has set."""

_COMMAND_LINE: Final = "the command line"
_ENVIRONMENT: Final = "the environment"
_MAX_NAME: Final = 80
_GRAPHS: Final = "graphs"
_CREDENTIALS: Final = ("endpoint.token", "endpoint.user", "endpoint.password")
"""Settings for one service alone: a graph that sets any of them shares none."""
_WORDS: Final = TypeAdapter(list[str])
_TABLE: Final = TypeAdapter(dict[str, object])

_OLD_SECTIONS: Final = {"import": "imports"}
_RENAMED: Final = {
    "label_relations": "relations.labels",
    "alias_relations": "relations.aliases",
    "description_relations": "relations.descriptions",
    "type_relations": "relations.types",
    "label_keys": "relations.label_keys",
    "embedder": "embedding.embedder",
    "llm": "llm.model",
    "judge_llm": "llm.judge",
    "reflector_llm": "llm.reflector",
    "memory_max_count": "memory.memories",
    "memory_max_age_days": "memory.age_days",
    "memory_file_max_mb": "memory.store_mb",
}
"""Earlier names that differ from the present ones by more than the dot behind the section."""
_REMOVED: Final = frozenset(
    {
        "sparql_max_waiting",
        "wikidata_max_concurrency",
        "wikidata_maxlag_s",
        "wikidata_most_counted",
        "embedding_format",
        "embedding_price",
        "memory_abandoned_days",
        "memory_client_share",
        "memory_max_fact_kb",
        "memory_max_facts",
        "memory_max_mb",
        "memory_new_per_hour",
        "http_body_s",
        "http_headers_s",
        "http_max_requests",
        "http_max_streams",
        "stdio_max_requests",
    }
)
"""Earlier settings that have no effect any more."""
_WHY_GONE: Final = "its default suits every use"
_GONE: Final = {
    "http.host": "name it in --http HOST:PORT of serve",
    "http.port": "name it in --http HOST:PORT of serve",
    "http.max_connections": _WHY_GONE,
    "imports.stall_s": _WHY_GONE,
    "max_expansions": "a path search ends after timeout_s",
    "memory.facts": _WHY_GONE,
    "memory.triples_per_call": _WHY_GONE,
    "message_max_mb": _WHY_GONE,
    "sparql.worker_mb": "sparql.workers bounds how many there are",
}
"""Settings that this version refuses, and what to do instead."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and for each of `FIELDS` where its value came from, in words such as `the default`.

    Args:
        settings: The settings, of one graph or of several.
        origins: Where values came from; with several graphs, those that all of them share.
        name: The name of the only graph, where it has one.
    """

    settings: Settings
    origins: Mapping[str, str]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One value under the name that people wrote, and where they wrote it."""

    name: str
    written: str
    origin: str
    value: object

    @property
    def is_of_a_graph(self) -> bool:
        """Whether it is meant for one of several graphs, by its name."""
        return self.name.startswith(f"{_GRAPHS}.")

    def form(self, name: str) -> str:
        """Return another name of a setting, as people would write it in the same place."""
        if self.origin == _ENVIRONMENT:
            return variable(name)
        return flag_of(name) if self.origin == _COMMAND_LINE else name


class _Sourced(Settings, BaseSettings):
    """The settings as pydantic-settings reads them.

    Args:
        sources: Where values are written, the preferred first.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", enable_decoding=False, frozen=True
    )

    def __init__(self, *sources: PydanticBaseSettingsSource) -> None:
        BaseSettings.__init__(self, _build_sources=(sources, {}))


class _Environment(EnvSettingsSource):
    """The variables of a mapping, in place of those of this process."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {name.lower(): value for name, value in environ.items()}
        super().__init__(_Sourced)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._environ


def load_settings(
    flags: Mapping[str, object], environ: Mapping[str, str], toml_path: Path | None = None
) -> LoadedSettings:
    """Build the settings from flags, then the environment, then a file; the first that has a value wins.

    Args:
        flags: Values from the command line by the name of the setting; None stands for a flag that was not given. That
            of `graph` may be a list of graphs, each as `named_graphs` reads it.
        environ: The environment; only names that start with `KG_SEXTANT_`, and those of `OPENAI_VARIABLES`, are read.
        toml_path: A TOML file to read, or None.

    Raises:
        InvalidRequest: A name is unknown, a value has the wrong form, or the file cannot be read.
    """
    of_file, of_environment = [*_file_entries(toml_path)], [*_environment_entries(environ)]
    tables = _tables((*of_file, *of_environment))
    words = _words(flags.get("graph"))
    in_file = _present(each for each in of_file if not each.is_of_a_graph)
    in_environment = _present(each for each in of_environment if not each.is_of_a_graph)
    in_flags = _present(_flag_entries({**flags, "graph": words[0] if len(words) == 1 else None}))
    entries = {**in_file, **in_environment, **in_flags}
    _warn_of_old_names(entries)
    settings = _validated(
        entries,
        InitSettingsSource(_Sourced, _nested(in_flags)),
        _Environment({variable(name): str(entry.value) for name, entry in in_environment.items()}),
        InitSettingsSource(_Sourced, _nested(in_file)),
    )
    _require_one_choice(entries.get("graph"), tables)
    words = words or _words(entries["graph"].value if "graph" in entries else None)
    listed = [NamedGraph(name, None) for name, own in tables.items() if "graph" in own]
    chosen = named_graphs(words, tables) if words else listed
    given = {each.name: each.graph for each in chosen if each.name is not None}
    of_each = {
        name: _of_graph(name, given.get(name), tables.get(name, {}), {**in_file, **in_environment}, in_flags)
        for name in {**tables, **given}
    }
    _require_credentials_of_one({name: of_each[name] for name in given})
    _require_notes_of_one({name: of_each[name] for name in given})
    graphs = {
        name: _validated(each, InitSettingsSource(_Sourced, _nested(each)), before=f"{_GRAPHS}.{name}.")
        for name, each in of_each.items()
    }
    # What is not served has secrets too, which the environment of this run may hold.
    known = {"redactor": settings.model_copy(update={"graphs": graphs}).redactor} if graphs else {}
    if len(given) > 1:
        served = {"graphs": {name: graphs[name] for name in given}}
        return LoadedSettings(settings.model_copy(update={**served, **known}), _origins(entries))
    for name in given:
        return LoadedSettings(graphs[name].model_copy(update=known), _origins(of_each[name]), name)
    return LoadedSettings(settings.model_copy(update=known), _origins(entries))


def _validated(entries: Mapping[str, _Entry], *sources: PydanticBaseSettingsSource, before: str = "") -> Settings:
    """Return the settings that sources hold, the preferred first; they were read from the entries.

    Args:
        entries: The values by the names of their settings.
        sources: What pydantic-settings reads.
        before: How the names of these settings begin, in messages.

    Raises:
        InvalidRequest: A value has the wrong form.
    """
    try:
        read = _Sourced(*sources)
    except ValidationError as error:
        raise InvalidRequest(_invalid(error, entries, before)) from error
    return Settings.model_validate({name: getattr(read, name) for name in read.model_fields_set})


def _origins(entries: Mapping[str, _Entry]) -> dict[str, str]:
    return {name: entries[name].origin if name in entries else DEFAULT for name in FIELDS}


def _words(graph: object) -> tuple[str, ...]:
    """Return the words that name graphs; none where there are none, or where the value is wrong."""
    if isinstance(graph, list):
        return tuple(_WORDS.validate_python(graph))
    return (graph,) if isinstance(graph, str) else ()


def _tables(entries: Iterable[_Entry]) -> dict[str, dict[str, _Entry]]:
    """Return what each graph sets, by its name and the name of the setting.

    Raises:
        InvalidRequest: A graph's name has a wrong form, or a setting is unknown or not one of a graph.
    """
    tables: dict[str, dict[str, _Entry]] = {}
    for entry in entries:
        if not entry.is_of_a_graph:
            continue
        _, name, *rest = entry.name.split(".")
        setting = ".".join(rest) or "graph"
        if setting not in FIELDS:
            raise InvalidRequest(_unknown(replace(entry, name=setting), f"{_GRAPHS}.{name}."))
        if setting.partition(".")[0] not in OF_A_GRAPH:
            raise InvalidRequest(
                f"{entry.written} in {entry.origin} cannot be set for one graph: it holds for all, as "
                f"{replace(entry, name=setting).form(setting)}."
            )
        tables.setdefault(graph_name(name), {})[setting] = entry
    return tables


def _of_graph(
    name: str,
    graph: str | None,
    own: Mapping[str, _Entry],
    shared: Mapping[str, _Entry],
    in_flags: Mapping[str, _Entry],
) -> dict[str, _Entry]:
    """Return the entries of one graph: a flag wins over what it sets, and that over what all share.

    Args:
        name: Its name.
        graph: What the command line names as the graph, or None.
        own: What it sets.
        shared: What the environment and the file hold for all graphs.
        in_flags: What the command line holds.
    """
    entries = {**shared, **own, **in_flags}
    if not own.keys().isdisjoint(_CREDENTIALS):
        entries = {each: entry for each, entry in entries.items() if each not in _CREDENTIALS or each in own}
    entries["graph"] = (
        own.get("graph", _Entry("graph", f"graphs.{name}", _COMMAND_LINE, name))
        if graph is None
        else _Entry("graph", "the graph", _COMMAND_LINE, graph)
    )
    return entries


def _require_one_choice(graph: _Entry | None, tables: Mapping[str, Mapping[str, _Entry]]) -> None:
    """Refuse a setting `graph` beside graphs by their names, none of which it chooses.

    What is chosen on the command line, or in the environment over a file, wins as for every setting.
    """
    named = {name: own["graph"].origin for name, own in tables.items() if "graph" in own}
    if graph is None or graph.origin == _COMMAND_LINE or str(graph.value).lower() in named:
        return
    if named and (graph.origin != _ENVIRONMENT or _ENVIRONMENT in named.values()):
        raise InvalidRequest(
            f"{graph.written} in {graph.origin} is one graph, beside those by their names: {', '.join(named)}. Remove "
            f"{graph.written} to serve these, or name that graph too, as {graph.form(f'{_GRAPHS}.NAME')}."
        )


def _require_credentials_of_one(graphs: Mapping[str, Mapping[str, _Entry]]) -> None:
    """Refuse to send credentials that all graphs share to several hosts."""
    hosts: dict[str, str] = {}
    for name, entries in graphs.items():
        shared = next((entries[each] for each in _CREDENTIALS if each in entries), None)
        graph = str(entries["graph"].value)
        if shared is None or shared.is_of_a_graph or not graph.startswith(URLS):
            continue
        hosts.setdefault(graph.split("/")[2].lower(), name)
        if len(hosts) > 1:
            raise InvalidRequest(
                f"{shared.written} in {shared.origin} would be sent to the endpoints of "
                f"{' and '.join(hosts.values())}, on different hosts. "
                f"Set it for each of them, as {shared.form(f'graphs.{name}.{shared.name}')}."
            )


def _require_notes_of_one(graphs: Mapping[str, Mapping[str, _Entry]]) -> None:
    """Refuse to read the same notes for several graphs."""
    for name, entries in graphs.items():
        notes = entries.get("notes")
        if notes is not None and not notes.is_of_a_graph and len(graphs) > 1:
            raise InvalidRequest(
                f"{notes.written} in {notes.origin} would give {' and '.join(graphs)} the same notes. Name those "
                f"of each graph in the settings file, as notes in [{_GRAPHS}.{name}], or put them beside it: "
                "people.notes.md beside people.ttl, notes.md in a store or folder."
            )


def present_name(name: str) -> str | None:
    """Return the present name of a setting, given that or an earlier one; None where there is none."""
    if name in FIELDS or name in _REMOVED:
        return name
    by_rule = _with_section(name)
    return _RENAMED.get(name) or (by_rule if by_rule in FIELDS else None)


def _with_section(name: str) -> str:
    """Return an earlier name of a setting with the dot behind its section."""
    section, _, rest = name.partition("_")
    return f"{_OLD_SECTIONS.get(section, section)}.{rest}"


def _present(entries: Iterator[_Entry]) -> dict[str, _Entry]:
    """Return entries by the present names of their settings.

    Raises:
        InvalidRequest: A name is unknown.
    """
    present: dict[str, _Entry] = {}
    # The present name of a setting wins over an earlier one, and both over a variable that other programs read too.
    for entry in sorted(entries, key=lambda each: (each.written not in OPENAI_VARIABLES, each.name in FIELDS)):
        name = present_name(entry.name)
        if name is None:
            raise InvalidRequest(_gone(entry) or _unknown(entry))
        present[name] = entry
    return present


def _nested(entries: Mapping[str, _Entry]) -> dict[str, object]:
    nested: dict[str, object] = {}
    sections: dict[str, dict[str, object]] = {}
    for name, entry in entries.items():
        section, dot, rest = name.partition(".")
        if dot:
            nested[section] = sections.setdefault(section, {})
            sections[section][rest] = entry.value
        elif name not in _REMOVED:
            nested[name] = entry.value
    return nested


def _flag_entries(flags: Mapping[str, object]) -> Iterator[_Entry]:
    for name, value in flags.items():
        if value is not None:
            # Some commands take the graph as an argument, others as an option.
            yield _Entry(name, "the graph" if name == "graph" else flag_of(name), _COMMAND_LINE, value)


def _environment_entries(environ: Mapping[str, str]) -> Iterator[_Entry]:
    for variable_, names in OPENAI_VARIABLES.items():
        if environ.get(variable_):
            yield from (_Entry(name, variable_, _ENVIRONMENT, environ[variable_]) for name in names)
    for written in sorted(environ):
        if written.startswith(ENVIRONMENT_PREFIX):
            name = written.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            if name.startswith(f"{_GRAPHS}."):
                # Variables cannot have the hyphens of a graph's name.
                section, graph, *rest = name.split(".")
                name = ".".join((section, graph.replace("_", "-"), *rest))
            yield _Entry(name, written, _ENVIRONMENT, environ[written])


def _file_entries(path: Path | None) -> Iterator[_Entry]:
    if path is None:
        return
    try:
        table = read_toml(path)
    except OSError as error:
        raise InvalidRequest(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InvalidRequest(f"The settings file {path} is not valid TOML: {error}.") from error
    yield from _table_entries(table, "", f"the file {path}")


def _table_entries(table: Mapping[str, object], before: str, origin: str) -> Iterator[_Entry]:
    """Yield the values of a table of settings; all their names begin alike."""
    for key, value in table.items():
        inner = _table(value)
        name = f"{before}{key}"
        if inner is None:
            yield _Entry(name, name, origin, value)
        elif name == _GRAPHS:
            names = [graph_name(graph) for graph in inner]
            for graph, own in inner.items():
                place = f"{_GRAPHS}.{graph_name(graph)}"
                if names.count(graph_name(graph)) > 1:
                    raise InvalidRequest(
                        f"Two graphs in {origin} are called {graph_name(graph)}: capital letters make no other name. "
                        "Give one of them another."
                    )
                settings = _table(own)
                # A graph may be called as it is: `[graphs.wikidata]`.
                yield _Entry(place, place, origin, graph if settings is not None else own)
                yield from _table_entries(settings or {}, f"{place}.", origin)
        elif any(_table(each) is not None for each in inner.values()):
            raise InvalidRequest(f"{shown_within(name, _MAX_NAME)} in {origin} holds a table, which no setting is.")
        else:
            yield from (_Entry(f"{name}.{each}", f"{name}.{each}", origin, it) for each, it in inner.items())


def _table(value: object) -> dict[str, object] | None:
    return _TABLE.validate_python(value) if isinstance(value, dict) else None


def _warn_of_old_names(entries: Mapping[str, _Entry]) -> None:
    """Print one line that names the settings written by their old names, and the present ones."""
    old = [
        f"{entry.written} ({'has no effect' if name in _REMOVED else f'now {entry.form(name)}'})"
        for name, entry in entries.items()
        if name != entry.name or name in _REMOVED
    ]
    if old:
        warn(f"Old names of settings, which only this version accepts: {', '.join(old)}.")


def _gone(entry: _Entry) -> str | None:
    """Return why a setting of an earlier version is refused, or None for any other name."""
    advice = _GONE.get(entry.name) or _GONE.get(_with_section(entry.name))
    if advice is None:
        return None
    return f"{entry.written} in {entry.origin} is no longer a setting: {advice}. Remove it."


def _unknown(entry: _Entry, before: str = "") -> str:
    close = difflib.get_close_matches(entry.name, FIELDS, n=1)
    known = f"Did you mean {entry.form(before + close[0])}?" if close else f"Known are {', '.join(FIELDS)}."
    return f"Unknown setting: {shown_within(entry.written, _MAX_NAME)} in {entry.origin}. {known}"


def _invalid(error: ValidationError, entries: Mapping[str, _Entry], before: str) -> str:
    """Return what is wrong, and never the value: it may be a secret that was written at the wrong place."""
    first = error.errors(include_url=False)[0]
    parts = [str(part) for part in first["loc"]]
    name = next((each for each in (parts[0], ".".join(parts[:2])) if each in FIELDS), parts[0])
    entry = entries.get(name)
    place = f"The setting {before}{name}" if entry is None else f"{entry.written} in {entry.origin}"
    purpose = f" {FIELDS[name].description}" if name in FIELDS else ""
    return f"{place} is wrong: {in_plain_words(first['msg'])}.{purpose}"
