"""A model of Graph Counselor that plays by rules: it asks for what a question says, reads the result, and finishes.

As the player of `tools`, it knows nothing of the world: the expression is data, and the answer is read from the step.
"""

import re
from typing import Final

from benchmarks.world.one_call import Calls
from benchmarks.world.player import read_result, refused
from benchmarks.world.questions import YES_NO, Asked

_DATA: Final = re.compile(r"<data>\n(.*?)\n</data>", re.DOTALL)
_OWN: Final = re.compile(r"(?:\d+\. )?(?:Plan|Thought|Action)\b")
_MARK: Final = re.compile(r"^Observation \d+: ")


def counsel(purpose: str, prompt: str, asked: Asked, calls: Calls) -> str:
    """Return the reply of a model of Graph Counselor to a step, or as its judge."""
    if purpose == "judge":
        return "The step says it.\n[yes]"
    steps = _DATA.findall(prompt)[-1].splitlines()
    seen = "\n".join(_MARK.sub("", line) for line in steps if not _OWN.match(line)).strip()
    action = _finish(asked, calls, seen) if seen and seen != "(nothing)" else calls.compose or "Finish[none]"
    return f"Thought: This is needed next.\nAction: {action}"


def _finish(asked: Asked, calls: Calls, seen: str) -> str:
    """Return what an observation says, as the end of the steps."""
    found = [] if refused(seen) else list(read_result(calls.compose or "", seen))[: 1 if calls.first else None]
    if asked.kind == YES_NO and not refused(seen):
        found = [str(bool(found)).lower()]
    first = seen.partition("\n")[0].replace("[", "(").replace("]", ")")
    return f"Finish[{', '.join(_quoted(text) for text in found) or f'Not in the graph: {first}'}]"


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text else text
