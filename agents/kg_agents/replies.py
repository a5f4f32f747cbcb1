"""Read the replies of models: headings, lists, and answers with what they cite."""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.matching import numbers_in
from kg_agents.llm.dialogue import Unreadable
from kg_agents.llm.texts import json_object

MAX_ANSWERS: Final = 500
"""How many answers are read."""

MAX_ANSWER: Final = 2_000
"""How many characters of one answer are."""

QUOTES: Final = " \t\r\n'\"`*_\u201c\u201d\u2018\u2019"
"""What may stand around what is meant."""

# On one line: a reply of many empty lines would otherwise be gone through again from each of them.
_MARKS: Final = r"(?:[^\w\n]|_)"
_FIELD: Final = re.compile(
    rf"^{_MARKS}*(thought|action|entity[ _]?ids?|entities|triples|(?:the )?(?:final )?answers?|facts)"
    rf"(?:{_MARKS}*\d+)?{_MARKS}*?:[ \t*_`]*",
    re.IGNORECASE | re.MULTILINE,
)
BULLET: Final = re.compile(r"^\s*[-*•]+\s+")
NUMBER: Final = re.compile(r"^\s*\(?(\d{1,3})[.)]\s+")
_BARE_ANSWER: Final = re.compile(
    rf"^{_MARKS}*(?:the )?(?:final )?answers?{_MARKS}*?(?:$|(?=[\[(]))", re.IGNORECASE | re.MULTILINE
)


def read_answers(reply: str) -> tuple[str, ...] | Unreadable:
    """Read a list of short answers."""
    lines = listed(_answer_in(reply))
    if len(lines) == 1 and (bracketed := re.fullmatch(r"[\[(](.*)[\])]", lines[0])):
        lines = [part.strip(QUOTES) for part in bracketed[1].split(",")]
    answers = tuple(dict.fromkeys(line[:MAX_ANSWER] for line in lines if line))[:MAX_ANSWERS]
    return answers or Unreadable("it holds no answer. Write `Answer:` and below it one answer on each line.")


def _answer_in(reply: str) -> str:
    """Return what stands under the heading of the answer, with a colon or without one, or else under none."""
    headings = [each for each in _FIELD.finditer(reply) if _field_name(each[1]) == "answer"]
    headings = headings or list(_BARE_ANSWER.finditer(reply))
    text = reply[headings[-1].end() :] if headings else reply
    return "\n".join(line for line in text.splitlines() if not _is_thought(line))


def _is_thought(line: str) -> bool:
    heading = _FIELD.match(line)
    return heading is not None and _field_name(heading[1]) == "thought"


def listed(text: str) -> list[str]:
    """Return the entries of a list without their bullets, and without their numbers where it is counted through."""
    lines = [BULLET.sub("", line) for line in text.splitlines()]
    lines = [line for line in lines if line.strip(QUOTES)]
    numbers = [NUMBER.match(line) for line in lines]
    if all(numbers) and numbers and numbers[0] and int(numbers[0][1]) == 1:
        lines = [NUMBER.sub("", line) for line in lines]
    return [line.strip(QUOTES) for line in lines]


def fields_of(reply: str) -> dict[str, str]:
    """Split a reply at its headings; of a heading that comes twice the last counts."""
    return {_field_name(heading[1]): text for heading, text in sections(reply, _FIELD) if heading}


def sections(text: str, heading: re.Pattern[str]) -> list[tuple[re.Match[str] | None, str]]:
    """Return the sections of a text, each with its heading; what stands before the first heading has none."""
    found = list(heading.finditer(text))
    begins, ends = [0, *(each.end() for each in found)], [*(each.start() for each in found), len(text)]
    return [(each, text[begin:end].strip()) for each, begin, end in zip((None, *found), begins, ends, strict=True)]


def _field_name(heading: str) -> str:
    folded = heading.lower()
    if folded.startswith("entit"):
        return "entities"
    return "answer" if "answer" in folded else folded


_MISSING: Final = re.compile(
    r"^[^\w\n]*(?:answer\W{1,4})?not in (?:the )?(?:graph|memory)\b[^\w\n]*(?P<why>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_OWN: Final = re.compile(r"^[^\w\n]*(?:my )?own knowledge[^\w\n]*?(?::|$)", re.IGNORECASE | re.MULTILINE)
_NUMBERS: Final = r"\d{1,3}(?:\s*[-\u2013]\s*\d{1,3})?"
_CITED: Final = re.compile(rf"\s*[\[(]((?:facts? )?{_NUMBERS}(?:\s*[,;]\s*{_NUMBERS})*)[\])]\s*\.?$", re.IGNORECASE)
_MAX_REASON: Final = 300
_LIST: Final = TypeAdapter(list[object])


def _written(value: object) -> object:
    """Return numbers that stand in a list, as some models write them, as a text."""
    return ", ".join(map(str, _LIST.validate_python(value))) if isinstance(value, list) else value


Numbers: TypeAlias = Annotated[str, BeforeValidator(_written)]
"""Numbers of facts or results in a form that a model fills in, as `3, 7-9`."""


class Form(BaseModel):
    """What a model fills in; a text or list that does not apply is empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def of(cls, reply: str, *marks: str) -> Self | None:
        """Return the form that a reply fills in, perhaps in part; None where it is another text.

        Args:
            reply: The reply.
            marks: The fields of which one at least has to be there.
        """
        found = json_object(reply)
        if found is None or not found.keys() & set(marks):
            return None
        empty = {name: "" if field.annotation is str else list[str]() for name, field in cls.model_fields.items()}
        try:
            return cls.model_validate(empty | found)
        except ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a model concludes.

    Args:
        answers: Its answers.
        own: What it knows by itself.
        missing: Why the graph does not hold the answer; None where the model does not say that.
    """

    answers: tuple[Cited, ...] = ()
    own: tuple[str, ...] = ()
    missing: str | None = None


def read_conclusion(reply: str) -> Conclusion | Unreadable:
    """Read what a model concludes: answers, that there are none, what it knows by itself, or several of these."""
    own_at = _OWN.search(reply)
    main, behind = (reply[: own_at.start()], reply[own_at.end() :]) if own_at else (reply, "")
    own = read_answers(behind) if behind.strip() else ()
    known = () if isinstance(own, Unreadable) else own
    missing = _MISSING.search(main)
    if missing is not None:
        return Conclusion((), known, missing["why"].strip()[:_MAX_REASON])
    answers = read_answers(main)
    if isinstance(answers, Unreadable):
        return Conclusion((), known, "") if known else answers
    return Conclusion(tuple(map(cited_in, answers)), known)


def cited_in(line: str) -> Cited:
    """Return an answer with the numbers in brackets behind it."""
    found = _CITED.search(line)
    if found is None or not found.start():
        return Cited(line)
    return Cited(line[: found.start()].strip()[:MAX_ANSWER], numbers_in(found[1]))
