"""What a reply that is still being written gives as answers."""

import json
import re
from typing import Final

from pydantic_core import from_json

from kg_agents.chat_replies import list_in, object_in
from kg_agents.dialogue import MAX_REPLY
from kg_agents.llm import Completion
from kg_agents.texts import without_thinking
from kg_agents.tools.final import ANSWER

ANSWERING: Final = frozenset({"tools", "turn", "step", "answer"})
"""The purposes of the requests whose reply may be the final answer."""

_FINISH: Final = re.compile(
    r"^[^\w\n]*(?:action[^\w\n:]*:[^\w\n]*)?finish[^\w\n\[]*\[([^\n]*)", re.IGNORECASE | re.MULTILINE
)
_HEADING: Final = re.compile(r"^[^\w\n]*(?:the )?(?:final )?answers?[^\w\n:]*:[ \t*_`]*", re.IGNORECASE | re.MULTILINE)
_ABSENT: Final = re.compile(r"^[^\w\n]*(not in (?:the )?(?:graph|memory)\b[^\n]*)", re.IGNORECASE | re.MULTILINE)
_ASIDE: Final = re.compile(r"^[^\w\n]*own knowledge\b.*", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_CITED: Final = re.compile(r"\[[\d \t,-]*(?:\][ \t]*)?$", re.MULTILINE)


def drafted(reply: Completion) -> str:
    """Return the answers in the reply so far, one on each line; empty where it gives none yet."""
    for call in reply.calls:
        if call.name == ANSWER.name:
            return _filled_in(call.arguments)
    text = without_thinking(reply.text[:MAX_REPLY])
    if text.startswith(("{", "```")):
        return _filled_in(text[text.find("{") :] if "{" in text else "")
    return _written(text)


def _filled_in(form: str) -> str:
    """Return the answers of a JSON object that is not written to its end."""
    try:
        given = object_in(from_json(form or "{}", allow_partial="trailing-strings"))
    except ValueError:
        return ""
    texts = (object_in(each).get("text", each) for each in list_in(given.get("answers")))
    answers = [
        each if isinstance(each, str) else json.dumps(each) for each in texts if isinstance(each, str | int | float)
    ]
    missing = given.get("not_in_graph") or given.get("reason")
    return "\n".join(answers) or (missing if isinstance(missing, str) else "")


def _written(text: str) -> str:
    """Return the answers of a reply in lines."""
    if finish := _FINISH.search(text):
        return finish[1].removesuffix("]")
    if headings := [*_HEADING.finditer(text)]:
        cited = _CITED.sub("", _ASIDE.sub("", text[headings[-1].end() :])).strip()
        return "\n".join(map(str.rstrip, cited.splitlines()))
    absent = _ABSENT.search(text)
    return absent[1] if absent else ""
