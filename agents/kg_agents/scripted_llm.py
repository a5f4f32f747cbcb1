"""A model that replies by script, for tests of agents and for replays."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kg_agents.llm import Completion, LlmError, LlmRequest, Usage

Scripted: TypeAlias = str | Completion | LlmError | Callable[[str], str | Completion]
"""A reply, an error to raise, or what makes a reply from the last message."""


class ScriptedLlm:
    """Replies in order, and keeps what it was asked.

    Args:
        replies: The replies to all calls but those whose purpose has replies of its own.
        by_purpose: Replies of their own, by purpose.
    """

    name = "scripted"

    def __init__(
        self, replies: Iterable[Scripted] = (), by_purpose: Mapping[str, Iterable[Scripted]] | None = None
    ) -> None:
        self._left = list(replies)
        self._by_purpose = {purpose: list(each) for purpose, each in (by_purpose or {}).items()}
        self.asked: list[LlmRequest] = []

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`.

        Raises:
            LlmError: It is the next entry of the script, or the script is over.
        """
        self.asked.append(request)
        left = self._by_purpose.get(request.purpose, self._left)
        if not left:
            raise LlmError(f"The script holds no more replies for {request.purpose!r}.")
        reply = left.pop(0)
        if isinstance(reply, LlmError):
            raise reply
        text = reply(request.prompt) if callable(reply) else reply
        if isinstance(text, Completion):
            return text
        asked = sum(len(each.content) for each in request.messages)
        return Completion(text, Usage(asked // 4, len(text) // 4, calls=1))
