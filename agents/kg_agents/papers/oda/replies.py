"""Read the replies of ODA's model: turns in text and JSON, and the paper's actions and reflections."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal, TypeAlias

from pydantic import Field

from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.matching import numbers_in
from kg_agents.evidence.values import IdLabels, Triple, split_graph
from kg_agents.llm.dialogue import Unreadable
from kg_agents.replies import (
    BULLET,
    MAX_ANSWER,
    MAX_ANSWERS,
    NUMBER,
    QUOTES,
    Conclusion,
    Form,
    Numbers,
    fields_of,
    listed,
    read_conclusion,
    sections,
)

ActionName: TypeAlias = Literal["GetNeighbor", "GetPath", "Search", "Look", "Answer"]

_MAX_LINES: Final = 200
_MAX_SHOWN: Final = 120
_NAMES: Final[Mapping[ActionName, str]] = {
    "GetNeighbor": r"get[ _]?neighbou?rs?|neighbou?r[ _]?exploration",
    "GetPath": r"get[ _]?paths?|path[ _]?discovery",
    "Answer": r"answer",
}
_SEPARATOR: Final = re.compile(r"->|[,|\u2192]")
_AROUND: Final = f"{QUOTES}<>"
_BETWEEN: Final = re.compile(rf"[{re.escape(_AROUND)}]*(?:->|[,|\u2192])[{re.escape(_AROUND)}]*")
_NONE: Final = frozenset({"", "none", "nothing", "no triples", "(none)", "n/a", "[]"})


@dataclass(frozen=True, slots=True)
class Action:
    """What the model wants to do, and why.

    Args:
        name: The action.
        entities: The ids that it is about, in order; none for an answer.
        thought: The reason that the model gave.
        about: The relation that is looked at, or the name that is searched for; empty where there is none.
    """

    name: ActionName
    entities: tuple[str, ...] = ()
    thought: str = ""
    about: str = ""

    def __str__(self) -> str:
        inside = ", ".join((*self.entities, self.about) if self.about else self.entities)
        return f"{self.name}[{inside}]" if inside else self.name


def read_action(reply: str, offered: Mapping[str, str | None], done: Iterable[str]) -> Action | Unreadable:
    """Read an action.

    Args:
        reply: What the model said.
        offered: The ids that it may choose from, with their labels.
        done: The actions that were taken already, as text.
    """
    fields = fields_of(reply)
    name = _action_name(fields, reply)
    if name is None:
        known = "GetNeighbor, GetPath or Answer" if len(offered) > 1 else "GetNeighbor or Answer"
        return Unreadable(f"it does not name one action. Write a line `Action: ` with {known}.")
    thought = " ".join(fields.get("thought", "").split())
    if name == "Answer":
        return Action("Answer", (), thought)
    written = f"{fields.get('action', reply)}\n{fields.get('entities', '')}"
    action = Action(name, tuple(_mentioned(written, offered)), thought)
    wanted = 1 if name == "GetNeighbor" else 2
    if len(action.entities) != wanted:
        return Unreadable(_wrong_number(name, action.entities, offered, wanted))
    # A path has no direction: what links two entities links them the other way round as well.
    if {str(action), str(replace(action, entities=action.entities[::-1]))} & set(done):
        return Unreadable(f"{action} was taken already. Choose another action.")
    return action


def read_selection(
    reply: str, candidates: Sequence[Triple], labels: IdLabels, most: int
) -> tuple[Triple, ...] | Unreadable:
    """Read which candidate triples the model selects, at most `most`; what is no candidate is not among them.

    Args:
        reply: What the model said.
        candidates: The triples that it may choose from.
        labels: What their ids are called.
        most: How many it may select.
    """
    fields = fields_of(reply)
    # Without a heading, what stands in a thought may be a selection, and need not be one.
    written, loose = fields.get("triples", reply), "triples" not in fields and "thought" in fields
    spelled = _spellings(candidates, labels)
    found: dict[Triple, None] = {}
    strange: list[str] = []
    for line in _triple_lines(written):
        meant = spelled.get(_folded(line), {})
        if len(meant) == 1:
            found.update(meant)
        elif meant:
            several = " or ".join(map(",".join, meant))
            strange.append(f"{line[:_MAX_SHOWN]!r} may be any of {several}. Copy one of them as it stands.")
        elif _SEPARATOR.search(line):
            strange.append(f"{line[:_MAX_SHOWN]!r} is none of the candidate triples. Copy candidates as they stand.")
    if found or loose or not strange:
        return tuple(found)[:most]
    return Unreadable(strange[0])


def read_facts(reply: str, most: int) -> tuple[str, ...] | Unreadable:
    """Read sentences that the model believes, at most `most`: nobody says which ones there are."""
    written = listed(fields_of(reply).get("facts", reply))
    facts = tuple(dict.fromkeys(each[:MAX_ANSWER] for each in written))[:most]
    return facts or Unreadable("it holds no fact. Write `Facts:` and below it one sentence on each line.")


def _action_name(fields: Mapping[str, str], reply: str) -> ActionName | None:
    """Return the action that a line names: the one under the heading, at its beginning or alone, or else the first."""
    written = fields.get("action")
    if written is not None:
        line = written.partition("\n")[0]
        return _only_name(r"^[^\w\n]*", line) or _only_name(r"\b", line)
    found: list[tuple[int, ActionName]] = [
        (place.start(), name)
        for name, pattern in _NAMES.items()
        if (place := re.search(rf"^[^\w\n]*(?:{pattern})\b", reply, re.IGNORECASE | re.MULTILINE)) is not None
    ]
    return min(found)[1] if found else None


def _only_name(before: str, line: str) -> ActionName | None:
    named: list[ActionName] = [
        name for name, pattern in _NAMES.items() if re.search(rf"{before}(?:{pattern})\b", line, re.IGNORECASE)
    ]
    return named[0] if len(named) == 1 else None


def _mentioned(written: str, offered: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the offered ids in the order in which they, or else their labels, are mentioned."""
    places = _places(written, {each: each for each in offered}, r"(?<![\w:/]){}(?!\w)")
    if not places:
        labels = {each: label.casefold() for each, label in offered.items() if label}
        places = _places(written.casefold(), labels, r"(?<!\w){}(?!\w)")
    if not places:
        # Where there are several graphs, an id may be written without its own.
        ids = {each: split_graph(each)[0].casefold() for each in offered}
        places = _places(written.casefold(), ids, r"(?<![\w:/]){}(?!\w)")
    yield from (each for _, each in sorted(places))


def _places(text: str, names: Mapping[str, str], pattern: str) -> list[tuple[int, str]]:
    """Return where each name is first found; a name inside a longer one that is found is not meant."""
    places: list[tuple[int, str]] = []
    for name in sorted(set(names.values()), key=len, reverse=True):
        searched = re.compile(pattern.format(re.escape(name)))
        if (found := searched.search(text)) is not None:
            places += [(found.start(), each) for each, called in names.items() if called == name]
            text = searched.sub("\0" * len(name), text)
    return places


def _wrong_number(name: ActionName, named: Sequence[str], offered: Mapping[str, str | None], wanted: int) -> str:
    ids = ", ".join(offered)
    if len(offered) < wanted:
        return f"GetPath needs two candidate entities and there is only {ids}. Choose GetNeighbor or Answer."
    count = "one of the candidate entities" if wanted == 1 else "two different candidate entities"
    given = f"it names {', '.join(named)}" if named else "it names none of them"
    return f"{name} takes {count}, and {given}. They are {ids}. Write `Entity_id: ` with ids."


def _triple_lines(text: str) -> Iterator[str]:
    """Yield what may be one triple each: lines, and bracketed groups inside a line."""
    for line in text.splitlines()[:_MAX_LINES]:
        if line.strip(QUOTES + ".[]()").lower() in _NONE:
            continue
        groups = re.findall(r"\(((?:[^()]|\([^()]*\))*)\)", line)
        triples = [group for group in groups if group.count(",") >= 2]
        yield from triples or [NUMBER.sub("", BULLET.sub("", line))]


def _spellings(candidates: Sequence[Triple], labels: IdLabels) -> Mapping[str, Mapping[Triple, None]]:
    """Return the candidates under every way to write them: what is written in ids alone is that one.

    One that is written from its other end is meant as well, unless that way is how another is written.
    """
    ways: tuple[dict[str, dict[Triple, None]], ...] = ({}, {}, {})
    for triple in candidates:
        head, relation, tail = triple
        ends = (_ways(each, labels.nodes.get(each)) for each in (head, tail))
        called = _ways(relation, labels.relations.get(relation))
        for start, name, end in product(next(ends), called, next(ends)):
            ways[1].setdefault(_folded(f"{start},{name},{end}"), {})[triple] = None
            ways[0].setdefault(_folded(f"{end},{name},{start}"), {})[triple] = None
        ways[2][_folded(",".join(triple))] = {triple: None}
    backwards, forwards, ids = ways
    return backwards | forwards | ids


def _ways(id: str, label: str | None) -> list[str]:
    if label is None:
        return [id]
    ids = dict.fromkeys((id, split_graph(id)[0]))
    return [label, *(way for each in ids for way in (each, f"{label} ({each})", f"{each} ({label})"))]


def _folded(text: str) -> str:
    """Return a line in one form, whatever separates its parts and whatever quotes them."""
    inside = text.strip().removeprefix("[").removesuffix("]").strip("|")
    return " ".join(_BETWEEN.sub(",", inside.strip(_AROUND)).casefold().split())


MAX_SEARCHED: Final = 200
"""How long a text may be that is searched for."""

_TURN_NAMES: Final[Mapping[ActionName, str]] = {**_NAMES, "Search": r"search", "Look": r"look"}
_FIELD: Final = re.compile(r"^[^\w\n]*(thought|keep|action)\W*?:[ \t*_`]*", re.IGNORECASE | re.MULTILINE)
_CONCLUDING: Final = re.compile(
    r"^[^\w\n]*(?:(?:the )?(?:final )?answers?|own knowledge|not in (?:the )?(?:graph|memory))\b",
    re.IGNORECASE | re.MULTILINE,
)
_CALL: Final = re.compile(
    rf"(?P<name>{'|'.join(f'(?:{pattern})' for pattern in _TURN_NAMES.values())})\b[*_`]*[ \t]*[:=]?[ \t]*"
    r"(?:\[(?P<square>[^\n]*)\]|\((?P<round>[^\n]*)\)|(?P<bare>[^\n]*))",
    re.IGNORECASE,
)
_EMPTY: Final = re.compile(r"\W*(?:(?:the |final )*answers?\b\W*)*", re.IGNORECASE)
_CANDIDATE: Final = re.compile(r"c?\s*(\d{1,3})", re.IGNORECASE)
_NO_ACTION: Final = Unreadable(
    "it names no action. Write a line `Action: ` with GetNeighbor, GetPath, Look, Search or Answer."
)
_NOTHING: Final = "\"'`*_ \t.“”"


class AnswerForm(Form):
    """One answer, and the numbers of the facts that it rests on."""

    text: str
    facts: Numbers = Field(description="All facts that yield it, as 3, 7-9; with text `all`, those that list it")


class TurnForm(Form):
    """What a turn keeps, does and answers."""

    thought: str
    keep: Numbers = Field(description="The new facts to keep, as 3, 7-9, or empty")
    action: str = Field(description="One action with its arguments, as GetNeighbor[c1, relation], or Answer")
    answers: list[AnswerForm] = Field(description="With Answer: each answer")
    not_in_graph: str = Field(description="With Answer, where the graph does not hold it: what is missing")
    own_knowledge: list[str] = Field(description="What you know by yourself, or nothing")

    @property
    def conclusion(self) -> Conclusion:
        """What it concludes."""
        answers = tuple(
            Cited(text[:MAX_ANSWER], numbers_in(each.facts)) for each in self.answers if (text := each.text.strip())
        )
        missing = None if answers else self.not_in_graph.strip() or None
        own = tuple(text[:MAX_ANSWER] for each in self.own_knowledge if (text := each.strip()))
        return Conclusion(answers[:MAX_ANSWERS], own[:MAX_ANSWERS], missing)


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
    """Return what a reply keeps and does, or why it cannot be read."""
    form = TurnForm.of(reply, "action")
    if form is not None:
        keep, thought, written = form.keep, form.thought, form.action.strip()
        call = _CALL.match(written)
    else:
        fields = {heading[1].lower(): text for heading, text in sections(reply, _FIELD) if heading}
        keep, thought, written = (fields.get(name, "") for name in ("keep", "thought", "action"))
        call = _CALL.match(written.lstrip("*_`- ")) or _CALL.search(written)
    kept, thought = _kept(keep, offer.facts), " ".join(thought.split())
    if isinstance(kept, Unreadable):
        return kept
    if call is not None and (name := _name(call["name"])) != "Answer":
        action = _action(name, _inside(call).strip(), thought, offer)
        return action if isinstance(action, Unreadable) else _new(Turn(kept, action), offer)
    conclusion = _answering(written or reply) if form is None else _filled_in(form)
    return conclusion if isinstance(conclusion, Unreadable) else Turn(kept, Action("Answer", (), thought), conclusion)


def _filled_in(form: TurnForm) -> Conclusion | Unreadable:
    """Return the conclusion that a form describes, or why it cannot be taken."""
    if not form.action.strip().lower().startswith("answer"):
        return _NO_ACTION
    conclusion = form.conclusion
    if not conclusion.answers and conclusion.missing is None and not conclusion.own:
        return Unreadable("it answers with nothing. Fill in `answers` or, where the graph holds none, `not_in_graph`.")
    return conclusion


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


def _kept(written: str, facts: int) -> tuple[int, ...] | Unreadable:
    """Return the numbers in a list such as `3, 7-9`."""
    numbers = numbers_in(_CONCLUDING.split(written)[0])
    strange = next((each for each in numbers if not 1 <= each <= facts), None)
    return numbers if strange is None else _no_fact(str(strange))


def _answering(text: str) -> Conclusion | Unreadable:
    """Return the conclusion that a text holds, or why it holds none."""
    concluding = _CONCLUDING.search(text)
    if concluding is None:
        return _NO_ACTION
    if _EMPTY.fullmatch(written := text[concluding.start() :]):
        return Unreadable("there is no answer below Answer. Write one on each line, with the numbers of its facts.")
    return read_conclusion(written)


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
    return next(name for name, pattern in _TURN_NAMES.items() if re.fullmatch(pattern, written, re.IGNORECASE))
