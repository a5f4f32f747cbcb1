"""The last look at what a server answers: nothing that is secret leaves it, whichever adapter let it through."""

import json
from collections.abc import Callable
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, TypeAdapter

from kg_boundary.secrets import Redactor


class _Refusal(BaseModel):
    """What is looked at of an answer."""

    isError: bool = False  # noqa: N815 - this is how the protocol writes it


_ANSWER: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


class WithholdingSecrets:
    """Middleware that takes secrets out of every answer; of refusals also those that are words.

    Args:
        redactor: Takes them out.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and look at the answer.

        Raises:
            MCPError: The error that the message is answered with.
        """
        try:
            result = await call_next(ctx)
        except MCPError as error:
            shown = self._redactor.text(error.error.message)
            raise MCPError(code=error.error.code, message=shown, data=error.error.data) from error
        if isinstance(result, BaseModel):
            result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return None if result is None else self._shown(result)

    def _shown(self, result: dict[str, Any]) -> dict[str, object]:
        written = json.dumps(result, ensure_ascii=False).encode(errors="replace")
        without = _ANSWER.validate_json(self._redactor.data(written))
        if _Refusal.model_validate(result).isError:
            without["content"] = _in_texts(without.get("content"), self._redactor.text)
        return without


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
