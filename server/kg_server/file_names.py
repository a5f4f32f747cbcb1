"""Hide file names that a client has no business with, and withhold secrets."""

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, TypeAdapter

from kg_boundary.secrets import Redactor


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


logger = logging.getLogger(__name__)

_BLOCKS: Final = TypeAdapter(list[dict[str, object]])
_PART: Final = r"[^\s/\\'\"`,;:()<>|*?]+"


class FileNames:
    """Puts the name of a file or folder in place of its whole path.

    A path is what begins with one of the folders that are known, or with a folder at the root of this machine, so that
    neither an IRI nor the path within one is taken for it.

    Args:
        folders: Folders that are known, in whose names there may be spaces.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        known = {str(form) for folder in folders for form in (folder.absolute(), folder.resolve())}
        self._known = [(folder, Path(folder).name) for folder in sorted(known, key=len, reverse=True) if folder != "/"]
        roots = "|".join(re.escape(entry.name) for entry in Path("/").iterdir())
        self._path = re.compile(
            rf"(?<![\w/.:~%-])(?:file://)?(?:/(?:{roots})|[A-Za-z]:)(?:[/\\]{_PART})*[/\\]({_PART})[/\\]?"
        )

    def shown(self, text: str) -> str:
        """Return a text in which paths are names."""
        for folder, name in self._known:
            text = text.replace(f"{folder}/", "").replace(folder, name)
        return self._path.sub(r"\1", text)


class NamingFiles(LastLook):
    """Lets refusals name files without their folders; the log has the whole text.

    Args:
        names: What shortens them.
    """

    def __init__(self, names: FileNames) -> None:
        self._names = names

    def answer(self, result: BaseModel | dict[str, Any]) -> HandlerResult:
        """Return a refusal in which files are named without their folders, and any other answer as it is."""
        if not is_refusal(result):
            return result
        refusal = as_json(result)
        return {**refusal, "content": [self._block(each) for each in _BLOCKS.validate_python(refusal["content"])]}

    def text(self, text: str) -> str:
        """Return a text in which files are named without their folders."""
        shown = self._names.shown(text)
        if shown != text:
            logger.warning("A client was told this without its folders: %s", text)
        return shown

    def _block(self, block: dict[str, object]) -> dict[str, object]:
        text = block.get("text")
        return {**block, "text": self.text(text)} if isinstance(text, str) else block
