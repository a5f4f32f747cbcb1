"""The last look at what a server answers: nothing that is secret leaves it, whichever adapter let it through."""

import json
from collections.abc import Callable
from typing import Any

from mcp.server.context import HandlerResult
from pydantic import BaseModel, TypeAdapter

from kg_boundary.secrets import Redactor
from kg_server.last_look import LastLook, as_json, is_refusal

_ANSWER: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


class WithholdingSecrets(LastLook):
    """Takes secrets out of every answer; of refusals also those that are words.

    Args:
        redactor: Takes them out.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def answer(self, result: BaseModel | dict[str, Any]) -> HandlerResult:
        """Return an answer without secrets."""
        written = json.dumps(as_json(result), ensure_ascii=False).encode(errors="replace")
        without = _ANSWER.validate_json(self._redactor.data(written))
        if is_refusal(result):
            without["content"] = _in_texts(without.get("content"), self._redactor.text)
        return without

    def text(self, text: str) -> str:
        """Return a text of an error without secrets."""
        return self._redactor.text(text)


def _in_texts(value: object, shown: Callable[[str], str]) -> object:
    """Return JSON with every text in it changed."""
    match value:
        case str():
            return shown(value)
        case list():
            return [_in_texts(each, shown) for each in TypeAdapter(list[object]).validate_python(value)]
        case dict():
            return {name: _in_texts(each, shown) for name, each in _ANSWER.validate_python(value).items()}
        case _:
            return value
