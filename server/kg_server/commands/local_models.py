"""Language models that run on this machine, found at the ports where their servers usually listen."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio
import httpx2
import typer
from pydantic import BaseModel

from kg_boundary.bodies import ASKED_FOR, read_body
from kg_boundary.shown import visible_line
from kg_server.commands.output import warn
from kg_server.settings import Settings

TIMEOUT_S: Final = 0.5
"""How many seconds a server has to list its models: it is on this machine."""
MOST_SHOWN: Final = 10
_MOST_BYTES: Final = 1_000_000
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that a server on this machine offers, and the settings that choose it."""

    name: str
    base_url: str


class _Listed(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Listed] = []


async def find_local_models(ports: Sequence[int]) -> list[LocalModel]:
    """Return the models that servers at these ports of this machine list, without those that only embed texts.

    A port without such a server yields none.
    """
    found: dict[int, list[LocalModel]] = {}
    async with (
        httpx2.AsyncClient(timeout=TIMEOUT_S, trust_env=False, headers=ASKED_FOR) as client,
        anyio.create_task_group() as tasks,
    ):
        for port in dict.fromkeys(ports):
            tasks.start_soon(_list, client, port, found)
    return [model for port in dict.fromkeys(ports) for model in found.get(port, ())][:MOST_SHOWN]


async def _list(client: httpx2.AsyncClient, port: int, found: dict[int, list[LocalModel]]) -> None:
    base_url, body = f"http://127.0.0.1:{port}/v1", bytearray()
    # Usually no such server runs at a port.
    with suppress(httpx2.HTTPError, OSError, ValueError), anyio.move_on_after(TIMEOUT_S):
        async with client.stream("GET", f"{base_url}/models") as response:
            if response.status_code != _OK:
                return
            encoding = response.headers.get("Content-Encoding", "")
            await read_body(response.aiter_raw(), encoding, max_bytes=_MOST_BYTES, received=body)
        names = [each.id for each in _Models.model_validate_json(bytes(body)).data]
        found[port] = [LocalModel(name, base_url) for name in names if name.strip() and "embed" not in name.casefold()]


def with_local_model(settings: Settings) -> Settings:
    """Return the settings with a model on this machine that is picked at a terminal, if any model runs.

    Without a terminal, the options that choose each model are printed.
    """
    found = anyio.run(find_local_models, settings.llm.local_ports)
    if not found:
        return settings
    words = [shlex.join(["--model", each.name, "--base-url", each.base_url]) for each in found]
    warn("No model is set, but some run on this machine:")
    for number, each in enumerate(words, start=1):
        warn(f"  {number}. {visible_line(each)}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        warn("Add one of these to the command, or set llm.model and llm.base_url.")
        return settings
    picked = typer.prompt("Which one shall answer? Its number, or Enter for none", "", show_default=False, err=True)
    if not (picked.isdecimal() and 0 < int(picked) <= len(found)):
        return settings
    model = found[int(picked) - 1]
    # A key is for the service that it was set for.
    llm = {"model": model.name, "base_url": model.base_url, "api_key": None}
    return settings.model_copy(update={"llm": settings.llm.model_copy(update=llm)})
