"""Opens local graphs by name: a sample, a store, or RDF files that are imported into the cache."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from kg_adapters.open_options import SAMPLES, OpenOptions, ignore_progress
from kg_adapters.protocol import KGAdapter

if TYPE_CHECKING:
    from kg_adapters.local.store import LocalStore


async def open_local(rest: str, options: OpenOptions) -> KGAdapter:
    """Open `sample`, `sample:world`, a store folder, or an RDF file or folder; the import runs in a thread.

    Raises:
        InvalidSource: The file or store cannot be read.
    """
    # An import takes none of the threads in which other graphs answer.
    return await to_thread.run_sync(partial(_open, rest, options), abandon_on_cancel=True, limiter=CapacityLimiter(1))


def _open(name: str, options: OpenOptions) -> KGAdapter:
    from kg_adapters.local.reloading import ReloadingAdapter  # noqa: PLC0415 - heavy, and importing kg_adapters is cheap

    store = _store(name, options)
    cached = options.imports and store.folder != Path(name)
    again = partial(_again, name, options) if cached else None
    return ReloadingAdapter(store, options.sparql, prepares=options.prepares_sparql, name=options.name, again=again)


def _again(name: str, options: OpenOptions, store: "LocalStore") -> None:
    """Make a damaged store of the cache again from what it was made of."""
    from kg_adapters.local.cache import discard  # noqa: PLC0415 - see above

    discard(store)
    # Whoever watched the first import has gone.
    _store(name, replace(options, progress=ignore_progress))


def _store(name: str, options: OpenOptions) -> "LocalStore":
    from kg_adapters.local.cache import open_cached, open_earlier, open_sample  # noqa: PLC0415 - see above
    from kg_adapters.local.import_options import ImportOptions  # noqa: PLC0415 - see above
    from kg_adapters.local.store import is_store, open_store  # noqa: PLC0415 - see above
    from kg_adapters.local.swap import recover  # noqa: PLC0415 - see above

    if name in SAMPLES:
        return open_sample(options.cache_folder, name)
    path = Path(name)
    if not path.exists():
        recover(path)
    if is_store(path):
        return open_store(path)
    chosen = ImportOptions(
        sparql=not options.prepares_sparql,
        graphs=options.graphs,
        chosen=options.chosen,
        prefixes=options.prefixes,
        limits=options.reading,
    )
    if options.languages is not None:
        chosen = replace(chosen, vocabulary=replace(chosen.vocabulary, languages=options.languages))
    if not options.imports:
        return open_earlier([path], options.cache_folder, chosen)
    return open_cached([path], options.cache_folder, chosen, options.progress)
