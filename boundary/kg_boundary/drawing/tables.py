"""Facts in a notebook: the picture, and below it the same facts as a table."""

from contextlib import suppress
from html import escape
from typing import Final

from kg_boundary.drawing.picture import MOST_WHOLE, Picture, shown_label
from kg_boundary.drawing.svg import CannotDraw, svg_of

_MOST_ROWS: Final = 50
_MOST_DRAWN: Final = 60


def notebook_html(picture: Picture) -> str:
    """Return facts as HTML without scripts: a picture where the extra `draw` is installed, and always a table."""
    facts = list(dict.fromkeys(picture.facts))
    marked = sorted(facts, key=lambda fact: fact not in picture.evidence)
    rows = "".join(_row(picture, fact) for fact in marked[:_MOST_ROWS])
    more = f"<p>and {len(facts) - _MOST_ROWS:,} more facts</p>" if len(facts) > _MOST_ROWS else ""
    said = "".join(f"<p><b>{_shown(text)}</b></p>" for text in (picture.title, picture.caption) if text)
    head = "<tr><th>head</th><th>relation</th><th>tail</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{more}" if facts else ""
    if 0 < len(facts) <= _MOST_DRAWN:
        with suppress(CannotDraw):
            return f"<div>{svg_of(picture)}<details><summary>Facts</summary>{table}</details></div>"
    return f"<div>{said}{table}</div>"


def _row(picture: Picture, fact: tuple[str, str, str]) -> str:
    head, relation, tail = fact
    cells = (picture.name(head), picture.relation_name(relation), picture.name(tail))
    return f"<tr>{''.join(f'<td>{_shown(cell)}</td>' for cell in cells)}</tr>"


def _shown(text: str) -> str:
    return f"<bdi>{escape(shown_label(text, MOST_WHOLE))}</bdi>"
