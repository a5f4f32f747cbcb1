"""A model that replies by script, for tests of agents and for replays."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kg_agents.llm import Completion, LlmError, Message, Usage

Scripted: TypeAlias = str | Completion | LlmError | Callable[[str], str]
"""A reply, an error to raise, or what makes a reply from the last message."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: what for, and the conversation."""

    purpose: str
    messages: tuple[Message, ...]

    @property
    def prompt(self) -> str:
        """The last message."""
        return self.messages[-1].content


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
        self.asked: list[Asked] = []

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        temperature: float,
        max_tokens: int,
        top_p: float | None = None,
    ) -> Completion:
        """See `Llm`.

        Raises:
            LlmError: It is the next entry of the script, or the script is over.
        """
        del temperature, max_tokens, top_p
        self.asked.append(Asked(purpose, tuple(messages)))
        left = self._by_purpose.get(purpose, self._left)
        if not left:
            raise LlmError(f"The script holds no more replies for {purpose!r}.")
        reply = left.pop(0)
        if isinstance(reply, LlmError):
            raise reply
        if isinstance(reply, Completion):
            return reply
        text = reply if isinstance(reply, str) else reply(messages[-1].content)
        return Completion(text, Usage(sum(len(each.content) for each in messages) // 4, len(text) // 4, calls=1))
