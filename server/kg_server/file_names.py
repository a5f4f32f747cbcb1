"""The last look at what a server refuses: it names files of this machine, and never tells where they lie."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from mcp.server.context import HandlerResult
from pydantic import BaseModel, TypeAdapter

from kg_server.last_look import LastLook, as_json, is_refusal

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
