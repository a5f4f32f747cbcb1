"""Wikidata's entities as JSON: the dump, an array with one of them a line, and the file of one or several.

Each gives its labels, aliases and descriptions in the chosen languages, and its truthy claims as the edges and values
of `wdt:` relations: those of the best rank, without what is unknown. Dates are as precise as they are known to be, and
quantities have their unit (https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.files.rdf import Problem
from kg_adapters.labels import Vocabulary
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_adapters.prefixes import WELL_KNOWN
from kg_adapters.terms import XSD, Literal
from kg_adapters.wikidata import values
from kg_boundary.shown import in_quotes

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_ENTITY: Final = "http://www.wikidata.org/entity/"
_DIRECT: Final = "http://www.wikidata.org/prop/direct/"
_LABEL, _ALIAS, _DESCRIPTION = (
    ox.NamedNode(iri)
    for iri in (WELL_KNOWN["rdfs"] + "label", WELL_KNOWN["skos"] + "altLabel", WELL_KNOWN["schema"] + "description")
)
_WKT: Final = ox.NamedNode("http://www.opengis.net/ont/geosparql#wktLiteral")
_URI: Final = ox.NamedNode(XSD + "anyURI")
_ID: Final = re.compile(r"[QPL][1-9][0-9]{0,11}(?:-[FS][1-9][0-9]{0,5})?")
_TAG: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,7}")
_AMOUNT: Final = re.compile(r"[+-]?\d{1,126}(?:\.\d{1,126})?")
_UNITS: Final = {
    "Q11573": "M",
    "Q828224": "KiloM",
    "Q174728": "CentiM",
    "Q174789": "MilliM",
    "Q11570": "KiloGM",
    "Q41803": "GM",
    "Q11574": "SEC",
    "Q7727": "MIN",
    "Q25235": "HR",
    "Q573": "DAY",
    "Q577": "YR",
}
"""Units as QUDT calls them; any other is the datatype of its quantities itself, and called by its label."""
_NO_UNIT: Final = "1"


class _Misshapen(Exception):
    """A part of an entity is not what the format says; the message names it."""


class EntityReader:
    """Reads the entities of one file.

    Args:
        name: What messages call the file.
        problem: Called for every entity that cannot be read; it raises, or lets the rest be read.
        languages: The languages of names, the preferred first; an entity without a name in any gets one in another.
        limits: How long one entity may be.
    """

    def __init__(self, name: str, problem: Problem, languages: Sequence[str], limits: ReadingLimits) -> None:
        self._name = name
        self._problem = problem
        self._vocabulary = Vocabulary(languages=tuple(languages))
        self._limits = limits

    def read(self, stream: IO[bytes]) -> Iterator[ox.Quad]:
        """Yield the statements.

        Raises:
            InvalidSource: The file is no JSON of entities.
            Refused: An entity is too long.
        """
        first = self._line(stream)
        while first and not first.strip():
            first = self._line(stream)
        if first.strip() == b"[" or _is_whole(first):
            yield from self._by_line(first, stream)
        else:
            for entity in _entities(self._parsed(first + stream.read(), "the file")):
                yield from self._statements(entity, "the file")

    def _line(self, stream: IO[bytes]) -> bytes:
        line = stream.readline(self._limits.literal_bytes + 1)
        if len(line) > self._limits.literal_bytes:
            raise Refused(
                f"an entity has over {self._limits.literal_mb:,} MB; {setting('imports.literal_mb')} allows more"
            )
        return line

    def _by_line(self, first: bytes, stream: IO[bytes]) -> Iterator[ox.Quad]:
        line, number = first, 1
        while line:
            text = line.strip().removesuffix(b",")
            if text not in {b"", b"[", b"]"}:
                place = f"line {number:,}"
                try:
                    yield from self._statements(self._parsed(text, place), place)
                except InvalidSource as error:
                    self._problem(str(error).removesuffix("."), error)
            line, number = self._line(stream), number + 1

    def _parsed(self, text: bytes, place: str) -> Json:
        try:
            content: Json = json.loads(text)
        except json.JSONDecodeError as error:
            raise InvalidSource(f"{self._name}, {place}, column {error.colno:,}: {error.msg}.") from error
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            raise InvalidSource(f"{self._name}, {place}: it is not JSON that can be read.") from error
        return content

    def _statements(self, entity: Json, place: str) -> Iterator[ox.Quad]:
        """Yield all statements of one entity, or none where a part of it is misshapen."""
        try:
            found = list(self._entity(_mapping(entity, "the entity")))
        except _Misshapen as error:
            self._problem(f"{self._name}, {place}: {error}.", error)
        except UnicodeEncodeError as error:
            self._problem(f"{self._name}, {place}: a text holds half of a surrogate pair, not a character.", error)
        else:
            yield from found

    def _entity(self, entity: Mapping[str, Json]) -> Iterator[ox.Quad]:
        key = _id(entity.get("id"))
        head = ox.NamedNode(_ENTITY + key)
        yield from self._names(head, entity)
        for relation, statements in _mapping(entity.get("claims"), "claims").items():
            predicate = ox.NamedNode(_DIRECT + _id(relation))
            for snak in _truthy(statements):
                value = _value(snak)
                if value is not None:
                    yield ox.Quad(head, predicate, value)

    def _names(self, head: ox.NamedNode, entity: Mapping[str, Json]) -> Iterator[ox.Quad]:
        for part, relation in (("labels", _LABEL), ("descriptions", _DESCRIPTION)):
            texts = _mapping(entity.get(part) or entity.get("lemmas" if part == "labels" else part), part)
            for text in self._chosen({tag: [_text(each)] for tag, each in texts.items()}, always=part == "labels"):
                yield ox.Quad(head, relation, text)
        aliases = _mapping(entity.get("aliases"), "aliases")
        listed = {tag: [_text(each) for each in _list(several, "aliases")] for tag, several in aliases.items()}
        for text in self._chosen(listed, always=False):
            yield ox.Quad(head, _ALIAS, text)

    def _chosen(self, texts: Mapping[str, Sequence[str]], *, always: bool) -> Iterator[ox.Literal]:
        tags = [tag for tag in texts if _TAG.fullmatch(tag) is not None]
        wanted = [tag for tag in tags if self._vocabulary.rank(tag) < self._vocabulary.rank(None)]
        if always and not wanted:
            wanted = sorted(tags, key=lambda tag: (tag != "en", tag))[:1]
        for tag in wanted:
            yield from (ox.Literal(_sayable(text), language=tag.lower()) for text in texts[tag])


def _is_whole(line: bytes) -> bool:
    """Say whether a line is an entity by itself."""
    text = line.strip().removesuffix(b",")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return False
    try:
        content: Json = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "id" in content


def _entities(content: Json) -> Sequence[Json]:
    if isinstance(content, list):
        return content
    if isinstance(content, dict) and isinstance(inner := content.get("entities"), dict):
        return list(inner.values())
    return [content]


def _truthy(statements: Json) -> Iterator[Mapping[str, Json]]:
    """Yield the main snaks of the best rank that have a value."""
    known = [_mapping(each, "a statement") for each in _list(statements, "claims")]
    best = "preferred" if any(each.get("rank") == "preferred" for each in known) else "normal"
    for each in known:
        snak = _mapping(each.get("mainsnak"), "mainsnak")
        if each.get("rank", "normal") == best and snak.get("snaktype") == "value":
            yield snak


def _value(snak: Mapping[str, Json]) -> ox.NamedNode | ox.Literal | None:  # noqa: PLR0911 - one for each type
    """Return what a snak says; None for kinds of values that are not known."""
    told = _mapping(snak.get("datavalue"), "datavalue")
    value = told.get("value")
    match told.get("type"):
        case "string":
            text = _sayable(_string(value))
            return ox.Literal(text, datatype=_URI) if snak.get("datatype") == "url" else ox.Literal(text)
        case "wikibase-entityid":
            return ox.NamedNode(_ENTITY + _entity_id(_mapping(value, "value")))
        case "monolingualtext":
            parts = _mapping(value, "value")
            tag = _string(parts.get("language"))
            text = _sayable(_string(parts.get("text")))
            return ox.Literal(text, language=tag.lower()) if _TAG.fullmatch(tag) is not None else ox.Literal(text)
        case "time":
            return _time(_mapping(value, "value"))
        case "quantity":
            return _quantity(_mapping(value, "value"))
        case "globecoordinate":
            parts = _mapping(value, "value")
            longitude, latitude = _number(parts.get("longitude")), _number(parts.get("latitude"))
            return ox.Literal(f"Point({longitude} {latitude})", datatype=_WKT)
        case _:
            return None


def _time(parts: Mapping[str, Json]) -> ox.Literal | None:
    precision = parts.get("precision")
    time = values.year_of_json(_string(parts.get("time")))
    date = values.date(time, precision if isinstance(precision, int) else values.DAY)
    return None if date is None else _literal(date)


def _quantity(parts: Mapping[str, Json]) -> ox.Literal:
    amount, unit = _string(parts.get("amount")), _string(parts.get("unit") or _NO_UNIT).rpartition("/")[2]
    if _AMOUNT.fullmatch(amount) is None:
        raise _Misshapen(f"{in_quotes(amount)} is not an amount")
    if unit in _UNITS:
        return ox.Literal(amount.removeprefix("+"), datatype=ox.NamedNode("http://qudt.org/vocab/unit/" + _UNITS[unit]))
    if unit not in {_NO_UNIT, "Q199"}:
        return ox.Literal(amount.removeprefix("+"), datatype=ox.NamedNode(_ENTITY + _id(unit)))
    return _literal(values.quantity(amount, None))


def _literal(literal: Literal) -> ox.Literal:
    return ox.Literal(_sayable(literal.value), datatype=ox.NamedNode(literal.datatype.value))


def _entity_id(parts: Mapping[str, Json]) -> str:
    if "id" in parts:
        return _id(parts["id"])
    kind = {"item": "Q", "property": "P", "lexeme": "L"}.get(_string(parts.get("entity-type")), "")
    return _id(f"{kind}{parts.get('numeric-id')}")


def _id(value: Json) -> str:
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise _Misshapen(f"expected an id such as Q42, found {_shown(value)}")
    return value


def _mapping(value: Json, part: str) -> Mapping[str, Json]:
    # PHP writes an object without members as a list.
    if value is None or value == []:
        return {}
    if not isinstance(value, dict):
        raise _Misshapen(f"{part}: expected an object {{…}}, found {_shown(value)}")
    return value


def _list(value: Json, part: str) -> Sequence[Json]:
    if not isinstance(value, list):
        raise _Misshapen(f"{part}: expected a list […], found {_shown(value)}")
    return value


def _text(value: Json) -> str:
    return _string(_mapping(value, "a text").get("value"))


def _string(value: Json) -> str:
    if not isinstance(value, str):
        raise _Misshapen(f"expected a text, found {_shown(value)}")
    return value


def _number(value: Json) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Misshapen(f"expected a number, found {_shown(value)}")
    return value


def _sayable(text: str) -> str:
    text.encode()
    return text


def _shown(value: Json) -> str:
    return in_quotes(json.dumps(value)[:60])
