"""An OpenAI-compatible embedding service on loopback that answers by script."""

import base64
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loopback_service import Reply, answering


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, and with which `Authorization`; nothing else may stand in it."""

    authorization: str | None
    model: str
    input: list[str]
    encoding_format: str


Script: TypeAlias = Callable[[Asked], Reply]


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: where it is, and every request."""

    url: str
    requests: list[Asked]


@contextmanager
def serving(*scripts: Script) -> Generator[Service]:
    """Run a service that follows each script once, in order, and then the last one again and again."""
    requests: list[Asked] = []
    left = list(scripts)

    def answer_one(body: bytes, authorization: str | None) -> Reply:
        requests.append(Asked(authorization, **json.loads(body)))
        return (left.pop(0) if len(left) > 1 else left[0])(requests[-1])

    with answering(answer_one) as url:
        yield Service(url, requests)


def vector_of(text: str) -> list[float]:
    """Return what the service says about a text: two numbers, far from unit length."""
    return [float(len(text)), 10.0]


def answer(asked: Asked) -> Reply:
    """Answer as OpenAI does, the last text first."""
    rows = [vector_of(text) for text in asked.input]
    as_text = asked.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": place, "embedding": _written(row, as_text=as_text)}
        for place, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": 10 * len(rows), "total_tokens": 10 * len(rows)}
    return Reply({"object": "list", "data": data[::-1], "model": asked.model, "usage": usage})


def failing(status: int, message: str = "Something is wrong.") -> Script:
    """Refuse with a status and a message; a client that tries again need not wait."""
    content = {"error": {"message": message, "type": "error", "code": None}}
    return lambda _: Reply(content, status, {"retry-after-ms": "1"})


def _written(row: Sequence[float], *, as_text: bool) -> object:
    return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode() if as_text else list(row)
