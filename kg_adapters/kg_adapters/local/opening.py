"""Opens local graphs by name: a sample, a store, or RDF files that are imported into the cache."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from anyio import to_thread

from kg_adapters.open_options import SAMPLES, OpenOptions
from kg_adapters.protocol import KGAdapter


async def open_local(rest: str, options: OpenOptions) -> KGAdapter:
    """Open `sample`, `sample:world`, a store folder, or an RDF file or folder; the import runs in a thread.

    Raises:
        InvalidSource: The file or store cannot be read.
    """
    return await to_thread.run_sync(partial(_open, rest, options), abandon_on_cancel=True)


def _open(name: str, options: OpenOptions) -> KGAdapter:
    from kg_adapters.local.reloading import ReloadingAdapter  # noqa: PLC0415 - see below
    from kg_adapters.local.store import open_store  # noqa: PLC0415 - heavy, and importing kg_adapters stays cheap

    return ReloadingAdapter(open_store(_folder(name, options)), options.sparql)


def _folder(name: str, options: OpenOptions) -> Path:
    from kg_adapters.local.build import ImportOptions  # noqa: PLC0415 - see above
    from kg_adapters.local.cache import cached_store, earlier_store, sample_store  # noqa: PLC0415 - see above
    from kg_adapters.local.store import is_store  # noqa: PLC0415 - see above
    from kg_adapters.local.swap import recover  # noqa: PLC0415 - see above

    if name in SAMPLES:
        return sample_store(options.cache_folder, name)
    path = Path(name)
    if not path.exists():
        recover(path)
    if is_store(path):
        return path
    chosen = ImportOptions(
        graphs=options.graphs, chosen=options.chosen, prefixes=options.prefixes, limits=options.reading
    )
    if options.languages is not None:
        chosen = replace(chosen, vocabulary=replace(chosen.vocabulary, languages=options.languages))
    if not options.imports:
        return earlier_store([path], options.cache_folder, chosen)
    return cached_store([path], options.cache_folder, chosen, options.progress)
