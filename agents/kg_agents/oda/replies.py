"""What the model of ODA replies: read with patience, judged strictly."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final, Literal, TypeAlias

from kg_agents.dialogue import Unreadable
from kg_agents.graph_values import Labels, Triple
from kg_agents.reply_texts import BULLET, MAX_ANSWER, NUMBER, QUOTES, fields_of, listed

ActionName: TypeAlias = Literal["GetNeighbor", "GetPath", "Search", "Look", "Answer"]

_MAX_PIECES: Final = 10
_MAX_LINES: Final = 200
_MAX_SHOWN: Final = 120
_NAMES: Final[Sequence[tuple[ActionName, str]]] = (
    ("GetNeighbor", r"get[ _]?neighbou?rs?|neighbou?r[ _]?exploration"),
    ("GetPath", r"get[ _]?paths?|path[ _]?discovery"),
    ("Answer", r"answer"),
)
_SEPARATOR: Final = re.compile(r"->|[,|\u2192]")
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


@dataclass(frozen=True, slots=True)
class Selection:
    """The triples that the model selects, and why."""

    triples: tuple[Triple, ...]
    thought: str = ""


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


def read_selection(reply: str, candidates: Sequence[Triple], labels: Labels, most: int) -> Selection | Unreadable:
    """Read which candidate triples the model selects, at most `most`; what is no candidate is not among them.

    Args:
        reply: What the model said.
        candidates: The triples that it may choose from.
        labels: What their ids are called.
        most: How many it may select.
    """
    fields = fields_of(reply)
    thought = " ".join(fields.get("thought", "").split())
    # Without a heading, what stands in a thought may be a selection, and need not be one.
    written, loose = fields.get("triples", reply), "triples" not in fields and "thought" in fields
    spelled = _spellings(candidates, labels)
    found: dict[Triple, None] = {}
    strange: list[str] = []
    for line in _triple_lines(written):
        meant = _meant(line, spelled)
        if len(meant) == 1:
            found.update(dict.fromkeys(meant))
        elif meant:
            several = " or ".join(map(",".join, meant))
            strange.append(f"{line[:_MAX_SHOWN]!r} may be any of {several}. Copy one of them as it stands.")
        elif _SEPARATOR.search(line):
            strange.append(f"{line[:_MAX_SHOWN]!r} is none of the candidate triples. Copy candidates as they stand.")
    if found or loose or not strange:
        return Selection(tuple(found)[:most], thought)
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
        for name, pattern in _NAMES
        if (place := re.search(rf"^[^\w\n]*(?:{pattern})\b", reply, re.IGNORECASE | re.MULTILINE)) is not None
    ]
    return min(found)[1] if found else None


def _only_name(before: str, line: str) -> ActionName | None:
    named: list[ActionName] = []
    for name, pattern in _NAMES:
        if re.search(rf"{before}(?:{pattern})\b", line, re.IGNORECASE):
            named.append(name)
    return named[0] if len(named) == 1 else None


def _mentioned(written: str, offered: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the offered ids in the order in which they, or else their labels, are mentioned."""
    places = _places(written, {each: each for each in offered}, r"(?<![\w:/]){}(?!\w)")
    if not places:
        labels = {each: label.casefold() for each, label in offered.items() if label}
        places = _places(written.casefold(), labels, r"(?<!\w){}(?!\w)")
    if not places:
        places = _places(written.casefold(), {each: each.casefold() for each in offered}, r"(?<![\w:/]){}(?!\w)")
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


def _keys(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield every way to cut a line into three parts."""
    line = line.strip()
    listed = line.startswith("[") and line.endswith("]")
    pieces = _SEPARATOR.split(line[1:-1] if listed else line.strip("|"))
    if not 3 <= len(pieces) <= _MAX_PIECES:
        return
    for first, second in combinations(range(1, len(pieces)), 2):
        head, relation, tail = (",".join(part) for part in (pieces[:first], pieces[first:second], pieces[second:]))
        yield _folded(head), _folded(relation), _folded(tail)


def _meant(line: str, spelled: Mapping[tuple[str, str, str], Sequence[Triple]]) -> Sequence[Triple]:
    """Return the candidates that a line may mean; one that is written from its other end is meant as well."""
    keys = list(_keys(line))
    for way in (keys, [(tail, relation, head) for head, relation, tail in keys]):
        for key in way:
            if key in spelled:
                return spelled[key]
    return ()


def _spellings(candidates: Sequence[Triple], labels: Labels) -> dict[tuple[str, str, str], Sequence[Triple]]:
    """Return the candidates under every way to write them: what is written in ids alone is that one."""
    spelled: dict[tuple[str, str, str], dict[Triple, None]] = {}
    for triple in candidates:
        head, relation, tail = triple
        ways = (
            _ways(head, labels.nodes.get(head)),
            _ways(relation, labels.relations.get(relation)),
            _ways(tail, labels.nodes.get(tail)),
        )
        for key in product(*ways):
            spelled.setdefault((key[0], key[1], key[2]), {})[triple] = None
    meant: dict[tuple[str, str, str], Sequence[Triple]] = {key: tuple(each) for key, each in spelled.items()}
    for head, relation, tail in candidates:
        meant[_folded(head), _folded(relation), _folded(tail)] = ((head, relation, tail),)
    return meant


def _ways(id: str, label: str | None) -> list[str]:
    ways = [id] if label is None else [id, label, f"{label} ({id})", f"{id} ({label})"]
    return [_folded(each) for each in ways]


def _folded(text: str) -> str:
    return " ".join(_SEPARATOR.sub(",", text.strip(QUOTES + "<>")).casefold().split())
