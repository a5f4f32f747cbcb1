"""Which features name the nodes of a `graph.json`.

The known ones are those by which the published Graph-CoT finds nodes of the graphs of GRBench (`NODE_TEXT_KEYS` of its
retriever), as far as they are not called `name` or `title`; a docket is called by its case before its number.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_boundary.json_stream import Json
from kg_boundary.shown import in_quotes

_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "opinion": ("plain_text",),
    "opinion_cluster": ("syllabus",),
    "docket": ("case_name", "pacer_case_id"),
    "court": ("full_name",),
}
_NAMES: Final = ("name", "title", "label")
_LONGEST_LABEL: Final = 200


class LabelKeys:
    """Which features name the nodes of each type.

    Args:
        chosen: Each as `TYPE=FEATURE`; the first one of a type gives the name, further ones other names. They come
            before those of the published graphs.

    Raises:
        InvalidRequest: One of them is not written so.
    """

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        keys: dict[str, tuple[str, ...]] = {}
        for kind, feature in map(_key, chosen):
            keys[kind] = (*keys.get(kind, ()), feature)
        self._keys = {**_KNOWN, **keys}

    def names(self, kind: str, features: Mapping[str, Json]) -> list[str]:
        """Return the label of a node and its other names; nothing where no feature names it.

        Without a key for its type, the label is its name or title, else something that ends so, else the first short
        text. A longer text gives its beginning.
        """
        chosen = [text for key in self._keys.get(kind, ()) if (text := _text(features.get(key)))]
        if chosen:
            return list(dict.fromkeys(chosen))
        texts = {name: value for name, value in features.items() if isinstance(value, str) and value.strip()}
        for name in (*_NAMES, *(name for name in texts if name.lower().endswith(_NAMES))):
            if name in texts:
                return [texts[name]]
        return [text for text in texts.values() if len(text) <= _LONGEST_LABEL][:1]


def _key(text: str) -> tuple[str, str]:
    kind, _, feature = (part.strip() for part in text.partition("="))
    if not (kind and feature):
        raise InvalidRequest(
            f"{in_quotes(text)} does not say which feature names a type of nodes. Write it as TYPE=FEATURE: "
            "opinion=plain_text."
        )
    return kind.removesuffix("_nodes"), feature


def _text(value: Json) -> str:
    """Return a text or number as a name: in one line, and cut behind a word where it is long."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = " ".join(str(value).split())
    if len(text) <= _LONGEST_LABEL:
        return text
    start = text[: _LONGEST_LABEL - 1]
    return (start.rpartition(" ")[0] or start) + "…"
