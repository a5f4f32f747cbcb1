"""The state of one run: the conversation, what the results state, and what was done."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kg_agents.answers import Step
from kg_agents.chat_requests import estimated_tokens
from kg_agents.dialogue import Dialogue, NoRoom
from kg_agents.json_texts import json_object
from kg_agents.llm import Function, FunctionCall, LlmRequest, Message
from kg_agents.texts import clipped
from kg_agents.tools.final import ANSWER
from kg_agents.tools.readings import Reading
from kg_agents.tools.settings import ToolsSettings

LEFT_OUT: Final = "(left out here to save room; call again if it is needed)"
MAX_THOUGHT: Final = 2_000
_NAME: Final = re.compile(r"[\w-]{1,64}", re.ASCII)


@dataclass
class Run:
    """One question on its way to an answer.

    Args:
        question: The question.
        talk: The dialogue with the model.
        tools: The tools that it may call.
        messages: The conversation so far.
        results: Where in the conversation each result stands, by its number.
        readings: What each result states, by its number.
        asked: The numbers of the calls that were made, by what they asked.
        failures: How many calls in a row the server did not answer.
        ids: The ids of all calls in the conversation.
        ending: Why the model can only answer now, in a word; empty as long as it can call.
        returned: Whether an answer by a call went back.
        asked_again: Whether an answer without a call went back.
        unreadable: How many answers could not be read.
    """

    question: str
    talk: Dialogue
    tools: tuple[Function, ...] = ()
    messages: list[Message] = field(default_factory=list[Message])
    readings: dict[int, Reading] = field(default_factory=dict[int, Reading])
    asked: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[Step] = field(default_factory=list[Step])
    ids: set[str] = field(default_factory=set[str])
    failures: int = 0
    ending: str = ""
    returned: bool = False
    asked_again: bool = False
    unreadable: int = 0

    def request(self, settings: ToolsSettings, room: int) -> LlmRequest:
        """Return what the model is asked next, with the oldest results left out where there is no room for them.

        Raises:
            NoRoom: Not even without them.
        """
        offered = (ANSWER,) if self.ending else (*self.tools, ANSWER)
        request = LlmRequest(
            tuple(self.messages),
            "tools",
            settings.temperature,
            settings.reply_tokens,
            seed=settings.seed,
            tools=offered,
        )
        while estimated_tokens(request) > room:
            request = replace(request, messages=_shorter(request.messages, room))
        return request

    def say(self, thought: str, calls: Sequence[FunctionCall]) -> tuple[FunctionCall, ...]:
        """Add a reply to the conversation, and return its calls as they stand there."""
        named = tuple(map(self._named, calls))
        self.messages.append(Message("assistant", clipped(thought, MAX_THOUGHT), tuple(map(_sendable, named))))
        return named

    def reply(self, call: FunctionCall, text: str) -> None:
        """Add the result of a call to the conversation."""
        self.messages.append(Message("tool", text, call_id=call.id))

    def close(self, ending: str) -> None:
        """Let the model do nothing but answer."""
        self.ending = ending
        self.messages.append(
            Message("user", f"No more calls can be made. Call {ANSWER.name} with what the results show.")
        )

    def _named(self, call: FunctionCall) -> FunctionCall:
        """Return a call with an id of its own, and a name that can be one."""
        own = call.id if call.id and call.id not in self.ids else f"call{len(self.ids) + 1:05d}"
        self.ids.add(own)
        name = call.name if _NAME.fullmatch(call.name) else "unknown"
        return FunctionCall(own, name, call.arguments)


def _sendable(call: FunctionCall) -> FunctionCall:
    """Return a call that any service takes back: services refuse arguments that are not a JSON object."""
    arguments = json_object(call.arguments)
    return replace(call, arguments="{}" if arguments is None else json.dumps(arguments, ensure_ascii=False))


def _shorter(messages: tuple[Message, ...], room: int) -> tuple[Message, ...]:
    """Return a conversation without its oldest long result.

    Raises:
        NoRoom: There is none.
    """
    place = next(
        (at for at, each in enumerate(messages) if each.role == "tool" and len(each.content) > 3 * len(LEFT_OUT)), None
    )
    if place is None:
        raise NoRoom.within(room, "the question, the tools and the calls that were made")
    first = messages[place].content.partition("\n")[0][: len(LEFT_OUT)]
    return (*messages[:place], replace(messages[place], content=f"{first}\n{LEFT_OUT}"), *messages[place + 1 :])
