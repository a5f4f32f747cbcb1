"""The last look at what a server refuses: it names files of this machine, and never tells where they lie."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, TypeAdapter

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


class NamingFiles:
    """Middleware that lets refusals name files without their folders; the log has the whole text.

    Args:
        names: What shortens them.
    """

    def __init__(self, names: FileNames) -> None:
        self._names = names

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and look at its refusal.

        Raises:
            MCPError: The error that the message is answered with.
        """
        try:
            result = await call_next(ctx)
        except MCPError as error:
            shown = self._shown(error.error.message)
            raise MCPError(code=error.error.code, message=shown, data=error.error.data) from error
        if isinstance(result, BaseModel) and getattr(result, "is_error", False):
            result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        if not isinstance(result, dict) or not result.get("isError"):
            return result
        return {**result, "content": [self._block(each) for each in _BLOCKS.validate_python(result["content"])]}

    def _block(self, block: dict[str, object]) -> dict[str, object]:
        text = block.get("text")
        return {**block, "text": self._shown(text)} if isinstance(text, str) else block

    def _shown(self, text: str) -> str:
        shown = self._names.shown(text)
        if shown != text:
            logger.warning("A client was told this without its folders: %s", text)
        return shown
