"""Files of a user's own that parameters of agents name."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator


def _existing_file(path: str) -> str:
    if path and not Path(path).is_file():
        raise ValueError("there is no such file")
    return path


def _existing_folder(path: str) -> str:
    if path and not Path(path).is_dir():
        raise ValueError("there is no such folder")
    return path


OwnFile: TypeAlias = Annotated[str, AfterValidator(_existing_file)]
"""The path of a file; empty for none."""

OwnFolder: TypeAlias = Annotated[str, AfterValidator(_existing_folder)]
"""The path of a folder; empty for none."""
