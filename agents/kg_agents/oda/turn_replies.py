"""Reading a turn: which facts to keep, and what to do next or what the answer is."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kg_agents.conclusions import Conclusion, read_conclusion
from kg_agents.dialogue import Unreadable
from kg_agents.oda.replies import Action, ActionName
from kg_agents.oda.turn_forms import TurnForm, turn_form

MAX_SEARCHED: Final = 200
"""How long a text may be that is searched for."""

_NAMES: Final[Mapping[ActionName, str]] = {
    "GetNeighbor": r"get[ _]?neighbou?rs?",
    "GetPath": r"get[ _]?paths?",
    "Search": r"search",
    "Look": r"look",
    "Answer": r"answer",
}
_FIELD: Final = re.compile(r"^[^\w\n]*(thought|keep|action)\W*?:[ \t*_`]*", re.IGNORECASE | re.MULTILINE)
_CONCLUDING: Final = re.compile(
    r"^[^\w\n]*(?:(?:the )?(?:final )?answers?|own knowledge|not in (?:the )?(?:graph|memory))\b",
    re.IGNORECASE | re.MULTILINE,
)
_RANGE: Final = re.compile(r"(\d{1,4})(?:\s*(?:-|\u2013|\.\.)\s*(\d{1,4}))?")
_CALL: Final = re.compile(
    rf"(?P<name>{'|'.join(f'(?:{pattern})' for pattern in _NAMES.values())})\b[*_`]*[ \t]*[:=]?[ \t]*"
    r"(?:\[(?P<square>[^\n]*)\]|\((?P<round>[^\n]*)\)|(?P<bare>[^\n]*))",
    re.IGNORECASE,
)
_EMPTY: Final = re.compile(r"\W*(?:(?:the |final )*answers?\b\W*)*", re.IGNORECASE)
_CANDIDATE: Final = re.compile(r"c?\s*(\d{1,3})", re.IGNORECASE)
_NO_ACTION: Final = Unreadable(
    "it names no action. Write a line `Action: ` with GetNeighbor, GetPath, Look, Search or Answer."
)
_NOTHING: Final = "\"'`*_ \t.“”"


@dataclass(frozen=True, slots=True)
class Turn:
    """What a model does in one turn.

    Args:
        kept: The numbers of the facts that it keeps.
        action: What it does next.
        conclusion: Its answers, where it answers.
    """

    kept: tuple[int, ...]
    action: Action
    conclusion: Conclusion | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """What a turn may name.

    Args:
        facts: How many facts have a number.
        candidates: The entities to look at, by id, the first numbered 1.
        known: The ids of all entities that were shown, by what they are called in lower case.
        done: The actions that were taken.
    """

    facts: int
    candidates: tuple[str, ...]
    known: Mapping[str, tuple[str, ...]]
    done: Collection[str]


def read_turn(reply: str, offer: Offer) -> Turn | Unreadable:
    """Return what a reply keeps and does, or why it cannot be told."""
    if (form := turn_form(reply)) is not None:
        return _filled_in(form, offer)
    fields = _fields(reply)
    thought = " ".join(fields.get("thought", "").split())
    kept = _kept(fields.get("keep", ""), offer.facts)
    if isinstance(kept, Unreadable):
        return kept
    written = fields.get("action", "")
    call = _CALL.match(written.lstrip("*_`- ")) or _CALL.search(written)
    if call is None or _name(call["name"]) == "Answer":
        concluding = _CONCLUDING.search(written or reply)
        return _answering(kept, thought, (written or reply)[concluding.start() :]) if concluding else _NO_ACTION
    inside = _inside(call)
    return _acting(kept, _action(_name(call["name"]), inside.strip(), thought, offer), offer)


def _filled_in(form: TurnForm, offer: Offer) -> Turn | Unreadable:
    """Return the turn that a form describes, or why it cannot be taken."""
    if strange := next((each for each in form.keep if not 1 <= each <= offer.facts), None):
        return _no_fact(str(strange))
    kept, thought = tuple(dict.fromkeys(form.keep)), " ".join(form.thought.split())
    call = _CALL.match(form.action.strip())
    if call is None and not form.action.strip().startswith("Answer"):
        return _NO_ACTION
    if call is not None and (name := _name(call["name"])) != "Answer":
        return _acting(kept, _action(name, _inside(call).strip(), thought, offer), offer)
    conclusion = form.conclusion
    if not conclusion.answers and conclusion.missing is None and not conclusion.own:
        return Unreadable("it answers with nothing. Fill in `answers` or, where the graph holds none, `not_in_graph`.")
    return Turn(kept, Action("Answer", thought=thought), conclusion)


def _acting(kept: tuple[int, ...], action: Action | Unreadable, offer: Offer) -> Turn | Unreadable:
    return action if isinstance(action, Unreadable) else _new(Turn(kept, action), offer)


def _inside(call: re.Match[str]) -> str:
    """Return what an action is called with."""
    return next((each for each in (call["square"], call["round"], call["bare"]) if each is not None), "")


def _no_fact(written: str) -> Unreadable:
    return Unreadable(f"there is no fact {written}. Keep facts by their numbers, as in `Keep: 3, 7-9`, or none.")


def _new(turn: Turn, offer: Offer) -> Turn | Unreadable:
    """Return a turn whose action was not taken before; to look at other facts is another action."""
    action = turn.action
    other_way = str(Action(action.name, action.entities[::-1], about=action.about))
    if action.name != "Look" and {str(action), other_way} & set(offer.done):
        return Unreadable(f"{action} was done already. Do something else, or answer.")
    return turn


def _fields(reply: str) -> dict[str, str]:
    found = list(_FIELD.finditer(reply))
    ends = [*(each.start() for each in found), len(reply)]
    return {each[1].lower(): reply[each.end() : end].strip() for each, end in zip(found, ends[1:], strict=True)}


def _kept(written: str, facts: int) -> tuple[int, ...] | Unreadable:
    """Return the numbers in a list such as `3, 7-9`."""
    numbers: dict[int, None] = {}
    for found in _RANGE.finditer(_CONCLUDING.split(written)[0]):
        first = int(found[1])
        last = int(found[2] or first)
        if not 1 <= first <= last <= facts:
            return _no_fact(found[0])
        numbers.update(dict.fromkeys(range(first, last + 1)))
    return tuple(numbers)


def _answering(kept: tuple[int, ...], thought: str, written: str) -> Turn | Unreadable:
    if _EMPTY.fullmatch(written):
        return Unreadable("there is no answer below Answer. Write one on each line, with the numbers of its facts.")
    conclusion = read_conclusion(written)
    if isinstance(conclusion, Unreadable):
        return conclusion
    return Turn(kept, Action("Answer", thought=thought), conclusion)


def _action(name: ActionName, inside: str, thought: str, offer: Offer) -> Action | Unreadable:
    if name in {"Search", "Look"}:
        text = inside.strip(_NOTHING)[:MAX_SEARCHED]
        return Action(name, (), thought, text) if text else Unreadable(f"{name} needs a name, as in {name}[a name].")
    first, comma, rest = inside.partition(",")
    if name == "GetNeighbor" and (whole := _entity(inside, offer)) is not None:
        first, comma, rest = whole, "", ""
    source = _entity(first, offer)
    if source is None:
        return _strange(first, offer)
    if name == "GetNeighbor":
        return Action(name, (source,), thought, rest.strip(_NOTHING) if comma else "")
    target = _entity(rest, offer)
    if target is None or target == source:
        return _strange(rest, offer) if target is None else Unreadable("GetPath takes two different entities.")
    return Action(name, (source, target), thought)


def _entity(written: str, offer: Offer) -> str | None:
    """Return the entity that a number, a name or an id stands for, where it is one."""
    text = written.strip(_NOTHING)
    if (numbered := _CANDIDATE.fullmatch(text)) and 1 <= int(numbered[1]) <= len(offer.candidates):
        return offer.candidates[int(numbered[1]) - 1]
    named = offer.known.get(text.casefold(), ())
    return named[0] if len(named) == 1 else None


def _strange(written: str, offer: Offer) -> Unreadable:
    named = offer.known.get(written.strip(_NOTHING).casefold(), ())
    if named:
        return Unreadable(f"{written.strip()!r} may be {' or '.join(named)}. Write the number or the id.")
    most = f"c1 to c{len(offer.candidates)}" if offer.candidates else "none"
    return Unreadable(f"{written.strip()!r} is not a candidate. There are {most}; or Search[name] first.")


def _name(written: str) -> ActionName:
    return next(name for name, pattern in _NAMES.items() if re.fullmatch(pattern, written, re.IGNORECASE))
