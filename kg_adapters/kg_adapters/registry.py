"""Opens a graph by what people call it, with the adapter that is registered for such names."""

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from kg_adapters.errors import InvalidRequest, Unsupported
from kg_adapters.open_options import SAMPLES, AdapterFactory, OpenOptions
from kg_adapters.protocol import KGAdapter
from kg_boundary.shown import in_quotes

__all__ = [
    "ENTRY_POINTS",
    "SAMPLES",
    "URLS",
    "WIKIDATA",
    "AdapterFactory",
    "OpenOptions",
    "hidden_path",
    "load_adapter",
    "open_graph",
    "path_of",
    "require_graph",
]

ENTRY_POINTS: Final = "kg_sextant.adapters"
LOCAL, SPARQL, WIKIDATA = "local", "sparql", "wikidata"
URLS: Final = ("http://", "https://")
_BUILT_IN: Final = {
    LOCAL: "kg_adapters.local.opening:open_local",
    SPARQL: "kg_adapters.sparql.opening:open_sparql",
    WIKIDATA: "kg_adapters.wikidata.opening:open_wikidata",
}
_LONGEST_NAME: Final = 4_096


async def open_graph(name: str, options: OpenOptions) -> KGAdapter:
    """Open the graph called `name`.

    It is `sample`, `sample:world`, a file, a folder, a store, the URL of a SPARQL endpoint, `wikidata`, `wikidata:URL`
    for a mirror of it, or `SCHEME:REST` of an installed adapter. See `path_of` for paths that are called like graphs.

    Raises:
        InvalidRequest: The name is none of these.
        InvalidSource: A file or store cannot be read.
        Unsupported: An installed adapter cannot be loaded.
    """
    point, rest = _point(name)
    graph = await _factory(point)(rest, options)
    return _remembering(graph, options.answers_kept_s) if graph.remote and options.answers_kept_s else graph


def load_adapter(name: str) -> None:
    """Import what `open_graph` needs for a graph of this name, and leave it to that to report what is missing."""
    with suppress(InvalidRequest, Unsupported):
        point, _ = _point(name)
        _factory(point)
        if point.name != LOCAL:
            import_module("kg_adapters.caching")


def require_graph(name: str) -> None:
    """Look whether `open_graph` would know what to do with a name, without opening anything.

    Raises:
        InvalidRequest: It would not.
    """
    _point(name)


def path_of(name: str) -> Path | None:
    """Return the path that a name stands for, or None where it stands for another graph or for nothing.

    Names of graphs come before paths: `wikidata` is Wikidata, and a folder called so is `./wikidata`.
    """
    return None if _is_name_of_graph(name) or not _exists(name) else Path(name)


def hidden_path(name: str) -> Path | None:
    """Return the path that has the same name as the graph that a name stands for, or None."""
    return Path(name) if _is_name_of_graph(name) and _exists(name) else None


def _is_name_of_graph(name: str) -> bool:
    scheme, colon, _ = name.partition(":")
    if name in SAMPLES or name.startswith(URLS) or scheme == WIKIDATA:
        return True
    return bool(colon) if scheme in _BUILT_IN else scheme in _installed()


def _installed() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _point(name: str) -> tuple[EntryPoint, str]:
    """Return the adapter that opens a graph of this name, and what it is to open."""
    scheme, rest = _read(name)
    if scheme in _BUILT_IN:
        return EntryPoint(scheme, _BUILT_IN[scheme], ENTRY_POINTS), rest
    installed = _installed()
    if scheme not in installed:
        raise InvalidRequest(_expected(name, installed))
    return installed[scheme], rest


def _read(name: str) -> tuple[str, str]:
    """Return the name of an adapter, and what it is to open."""
    if name in SAMPLES or path_of(name) is not None:
        return LOCAL, name
    if name.startswith(URLS):
        return SPARQL, name
    scheme, _, rest = name.partition(":")
    return scheme, rest


def _remembering(graph: KGAdapter, kept_s: float) -> KGAdapter:
    from kg_adapters.caching import CacheLimits, CachingAdapter  # noqa: PLC0415 - rarely needed

    return CachingAdapter(graph, CacheLimits(expiry_s=kept_s))


def _exists(name: str) -> bool:
    if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:
        return False
    try:
        return Path(name).exists() or _was_moved_aside(Path(name))
    except OSError:  # a part of it is too long
        return False


def _was_moved_aside(path: Path) -> bool:
    from kg_adapters.local.swap import is_moved_aside  # noqa: PLC0415 - rarely needed

    return is_moved_aside(path)


def _factory(point: EntryPoint) -> AdapterFactory:
    try:
        factory: object = point.load()
    except (ImportError, AttributeError) as error:
        raise Unsupported(
            f"The adapter {in_quotes(point.name)} cannot be loaded from {point.value}: {error}."
        ) from error
    if not isinstance(factory, AdapterFactory):
        raise Unsupported(f"The adapter {in_quotes(point.name)} is broken: {point.value} is not a function.")
    return factory


def _expected(name: str, adapters: Mapping[str, EntryPoint]) -> str:
    from kg_adapters.files.sources import expected_endings  # noqa: PLC0415 - rarely needed

    shown = repr(name if len(name) <= 80 else name[:80] + "…")
    schemes = "".join(f", {scheme}:…" for scheme in sorted(adapters) if scheme not in _BUILT_IN)
    return (
        f"There is no graph {shown}. Expected {', '.join(SAMPLES)}, the path of a file ({expected_endings()}), of a "
        "folder with RDF files or of a store that kg-sextant import built, the URL of a SPARQL endpoint, "
        f"{WIKIDATA}{schemes}."
    )
