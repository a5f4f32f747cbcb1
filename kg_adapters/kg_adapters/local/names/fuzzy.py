"""Fuzzy look-up of names: the tantivy index of their trigrams and words."""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import tantivy

from kg_adapters.folding import bare_words
from kg_adapters.local.checksums import file_sha256

# One thread keeps the build small and its result the same every time; the heap is what it may hold in memory.
_HEAP: Final = 64_000_000
_MAX_GRAMS: Final = 40
_MAX_WORDS: Final = 12
# A term that more than this share of the names has is left out, unless it is among the rarest few of its kind.
_COMMON: Final = 0.02
_GRAMS_KEPT_ANYWAY: Final = 6
_WORDS_KEPT_ANYWAY: Final = 1
_WORD_WEIGHT: Final = 2.0
_SEGMENT_FILES: Final = "?" * 32 + ".*"
# Of how many letters words that no name has are also looked for with one slip, and what such a word is worth.
_MISSPELT: Final = range(3, 24)
_MISSPELT_WEIGHT: Final = 5.0


class FuzzyNames:
    """Finds names by the letters and words that they share with a text.

    Raises:
        OSError: A file is missing.
        ValueError: The folder holds no such index.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._open(folder)
        except ValueError:
            # Opening takes a lock file, which nobody can write into a store that is read-only: links are as good.
            with tempfile.TemporaryDirectory(prefix="kg-sextant-") as links:
                _link(folder, Path(links))
                self._open(Path(links))

    def find(self, folded: str, limit: int) -> list[int]:
        """Return the numbers of the names that are most like a folded text, best first."""
        parts = [(tantivy.Occur.Should, query) for query in self._queries(folded)]
        found = self._searcher.search(tantivy.Query.boolean_query(parts), limit, count=False)
        values = self._searcher.fast_field_values("name", [address for _, address in found.hits])
        return [int(value) for value in values if value is not None]

    def _open(self, folder: Path) -> None:
        if not all(lock.is_file() for lock in folder.glob("*.lock")):
            raise ValueError("a lock that is a pipe would be waited for")
        index = tantivy.Index.open(str(folder))
        # A store never changes: nothing needs to watch its files.
        index.config_reader(reload_policy="manual")
        self._schema = index.schema
        self._searcher = index.searcher()

    def _queries(self, folded: str) -> Iterator[tantivy.Query]:
        words = bare_words(folded).split()
        unknown = (word for word in words[:_MAX_WORDS] if not self._searcher.doc_freq("words", word))
        yield from (self._misspelt(word) for word in unknown if len(word) in _MISSPELT)
        for gram in self._rarest("grams", _grams(folded), _MAX_GRAMS, _GRAMS_KEPT_ANYWAY):
            yield tantivy.Query.term_query(self._schema, "grams", gram, "basic")
        for word in self._rarest("words", words, _MAX_WORDS, _WORDS_KEPT_ANYWAY):
            query = tantivy.Query.term_query(self._schema, "words", word, "basic")
            yield tantivy.Query.boost_query(query, _WORD_WEIGHT)

    def _misspelt(self, word: str) -> tantivy.Query:
        """Return the query for words one slip away: a short one may have no three letters in a row with them."""
        query = tantivy.Query.fuzzy_term_query(
            self._schema, "words", word, distance=1, transposition_cost_one=True, prefix=False
        )
        return tantivy.Query.boost_query(query, _MISSPELT_WEIGHT)

    def _rarest(self, field: str, terms: Iterable[str], limit: int, kept_anyway: int) -> list[str]:
        """Return the terms that tell names apart: what nearly every name has costs time and says nothing."""
        counted = sorted((self._searcher.doc_freq(field, term), term) for term in set(terms))
        known = [(count, term) for count, term in counted if count][:limit]
        common = self._searcher.num_docs * _COMMON
        return [term for place, (count, term) in enumerate(known) if place < kept_anyway or count <= common]


def build_fuzzy_names(names: Iterable[str], folder: Path) -> None:
    """Write the index of folded names, numbered as they come, into an existing empty folder.

    Raises:
        OSError: It cannot be written.
    """
    try:
        _build(names, folder)
    except ValueError as error:
        # This is how tantivy says that the disk is full.
        raise OSError(str(error)) from error


def _build(names: Iterable[str], folder: Path) -> None:
    index = tantivy.Index(_schema(), path=str(folder))
    grams = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(3, 3)).build()
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("grams", grams)
    index.register_tokenizer("words", words)
    writer = index.writer(_HEAP, 1)
    for number, name in enumerate(names):
        bare = bare_words(name)
        document = tantivy.Document()
        document.add_text("grams", f" {bare} ")
        document.add_text("words", bare)
        document.add_unsigned("name", number)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    _name_by_content(folder)


def _name_by_content(folder: Path) -> None:
    """Call the segments, whose names tantivy draws, by what they hold: the same names make the same files."""
    meta = folder / "meta.json"
    text = meta.read_text(encoding="utf-8")
    for drawn in {file.stem for file in folder.glob(_SEGMENT_FILES)}:
        parts = sorted(folder.glob(f"{drawn}.*"))
        content = hashlib.sha256("".join(file_sha256(part) for part in parts).encode()).digest()
        named = UUID(bytes=content[:16])
        for part in parts:
            part.rename(part.with_name(named.hex + part.suffix))
        text = text.replace(str(UUID(drawn)), str(named))
    meta.write_text(text, encoding="utf-8")
    kept = sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))
    (folder / ".managed.json").write_text(json.dumps(kept), encoding="utf-8")


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("grams", tokenizer_name="grams", index_option="basic")
    builder.add_text_field("words", tokenizer_name="words", index_option="basic")
    builder.add_unsigned_field("name", fast=True)
    return builder.build()


def _grams(folded: str) -> set[str]:
    text = f" {bare_words(folded)} "
    return {text[start : start + 3] for start in range(len(text) - 2)}


def _link(folder: Path, links: Path) -> None:
    for file in folder.iterdir():
        if not file.name.endswith(".lock"):
            (links / file.name).symlink_to(file.resolve())
