"""The last look at what a server answers, whatever made it."""

from abc import ABC, abstractmethod
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel


class LastLook(ABC):
    """Middleware that shows answers and errors as its two methods want them."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and look at the answer.

        Raises:
            MCPError: The error that the message is answered with.
        """
        try:
            result = await call_next(ctx)
        except MCPError as error:
            message = self.text(error.error.message)
            raise MCPError(code=error.error.code, message=message, data=error.error.data) from error
        return result if result is None else self.answer(result)

    @abstractmethod
    def text(self, text: str) -> str:
        """Return a text of an error as it is shown."""

    @abstractmethod
    def answer(self, result: BaseModel | dict[str, Any]) -> HandlerResult:
        """Return an answer as it is shown."""


def is_refusal(result: BaseModel | dict[str, Any]) -> bool:
    """Say whether a tool's answer is an error."""
    if isinstance(result, BaseModel):
        return bool(getattr(result, "is_error", False))
    return bool(result.get("isError"))


def as_json(result: BaseModel | dict[str, Any]) -> dict[str, Any]:
    """Return an answer as it is sent."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True) if isinstance(result, BaseModel) else result
