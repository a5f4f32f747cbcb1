"""What kind of answer a query has."""

import re
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import InvalidRequest

Form: TypeAlias = Choice["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]

_FORMS: Final[dict[str, Form]] = {
    "SELECT": "SELECT",
    "ASK": "ASK",
    "CONSTRUCT": "CONSTRUCT",
    "DESCRIBE": "DESCRIBE",
}
_TOKEN: Final = re.compile(r"[\s\ufeff]+|#[^\r\n]*|(?P<iri><[^<>\s]*>)|(?P<prefix>[^\s:<>#{}]*:)|(?P<word>[A-Za-z]+)")


def query_form(text: str) -> Form:
    """Return the form of a query: the first keyword behind its prologue, which comments do not mislead.

    Raises:
        InvalidRequest: The text starts otherwise, as an update does, or cannot be sent as UTF-8.
    """
    at = 0
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        word = (token["word"] or "").upper()
        if word in _FORMS:
            _check_encodable(text)
            return _FORMS[word]
        if word and word not in {"BASE", "PREFIX"}:
            break
    raise InvalidRequest("The text is not a query that reads. Ask with SELECT, ASK, CONSTRUCT or DESCRIBE.")


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"The query holds half of a character (a lone surrogate) at position {error.start}. Remove it."
        ) from error
