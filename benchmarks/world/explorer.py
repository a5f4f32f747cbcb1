"""A model of ODA that plays by rules: it looks at what a question needs next, keeps what leads there, and answers.

It knows nothing of the world. What it knows of a question is the expression that says it in other words; it works that
out from the facts that the prompt before it shows, and where one is missing it asks for it.
"""

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.world.one_call import Calls
from benchmarks.world.questions import YES_NO, Asked
from benchmarks.world.sights import Sights
from benchmarks.world.worked_out import Absent, Reasoner, Wanting
from kg_server.compose.parser import parse
from kg_server.compose.syntax import Operand, Route, WhereCall, calls_in


def explore(_: str, prompt: str, asked: Asked, calls: Calls) -> str:
    """Return the reply of a model of ODA to a turn."""
    return _turn(prompt, asked, calls) if calls.compose else _answer(["Not in the graph: no way to it"])


def _turn(prompt: str, asked: Asked, calls: Calls) -> str:
    (call,) = parse(calls.compose or "")
    sights = Sights(prompt, set(_relations(call)))
    reasoner = Reasoner(sights)
    try:
        found = reasoner.result(call)
    except Wanting as want:
        kept = reasoner.used | set(want.kept)
        new = sorted(fact.number for fact in sights.facts if fact.new and fact.number in kept)
        return f"Thought: This is needed next.\nKeep: {_list(new) or 'none'}\nAction: {want.action}"
    except Absent as absent:
        return _answer([f"Not in the graph: {absent}"])
    if asked.kind == YES_NO:
        return _answer([_cited(str(bool(found.by)).lower(), found.behind or reasoner.used)])
    lines = [_cited(text, behind) for text, behind in found.by.items()][: 1 if calls.first else None]
    said = (f"{each.action}[{each.about}] {each.found}" for each in reversed(sights.done))
    return _answer(lines or [f"Not in the graph: {next(said, 'what is asked for')}"])


def _answer(lines: Sequence[str]) -> str:
    return "\n".join(("Thought: The facts hold what there is.", "Keep: none", "Action: Answer", "Answer:", *lines))


def _cited(text: str, behind: Iterable[int]) -> str:
    return f"{text} [{_list(sorted(behind))}]"


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _relations(operand: Operand) -> Iterator[str]:
    """Yield what the relations of an expression are called."""
    for call in calls_in(operand):
        routes: list[Route | None] = [getattr(call, "route", None)]
        if isinstance(call, WhereCall):
            routes += [clause.route for clause in call.clauses]
        for route in filter(None, routes):
            yield from (leg.name.text for leg in route.legs)
