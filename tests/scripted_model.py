"""An OpenAI-compatible chat service on loopback that replies by script, as a whole or in parts."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from loopback_service import Reply, answering


class Turn(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="forbid")

    role: str
    content: str
    tool_calls: list[dict[str, object]] = []
    tool_call_id: str = ""


class Asked(BaseModel):
    """What a request asks for; nothing else may stand in it."""

    model_config = ConfigDict(extra="forbid")

    model: str
    messages: list[Turn]
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    top_p: float | None = None
    stop: list[str] | None = None
    seed: int | None = None
    tools: list[dict[str, object]] | None = None
    response_format: dict[str, object] | None = None

    @property
    def prompt(self) -> str:
        """The last message."""
        return self.messages[-1].content


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is no reply: a status, a body and more headers."""

    status: int
    content: Mapping[str, object] | bytes = field(default_factory=dict[str, object])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Scripted: TypeAlias = str | Failure | Callable[[Asked], "str | Failure"]


@dataclass(frozen=True, slots=True)
class Model:
    """A running service: where it is, every request, and the keys that came with them."""

    url: str
    asked: list[Asked]
    keys: list[str | None]


def completion(text: str | None, **usage: int) -> dict[str, object]:
    """Return a chat completion as such services send it."""
    counted = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, **usage}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": counted}


def calling(*calls: tuple[str, object]) -> Failure:
    """Return an answer that calls functions, by name and arguments."""
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"id{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls, start=1)
        ],
    }
    return Failure(200, {**completion(None), "choices": [{"message": message, "finish_reason": "tool_calls"}]})


@contextmanager
def serving_model(*script: Scripted) -> Generator[Model]:
    """Run a service that gives each reply once, in order, and then the last one again and again."""
    asked: list[Asked] = []
    keys: list[str | None] = []
    left = list(script)

    def answer(body: bytes, authorization: str | None) -> Reply:
        asked.append(Asked.model_validate_json(body))
        keys.append(authorization)
        entry = left.pop(0) if len(left) > 1 else left[0]
        reply = entry(asked[-1]) if callable(entry) else entry
        failure = reply if isinstance(reply, Failure) else Failure(200, completion(reply))
        return Reply(failure.content, failure.status, failure.headers)

    with answering(answer) as url:
        yield Model(url, asked, keys)
