"""Which parts of a question may be names."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

MAX_WORDS: Final = 40

_WORD: Final = re.compile(r"[^\W_]+(?:['.\u2019-][^\W_]+)*\.?|&", re.UNICODE)
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$")
_QUOTED: Final = re.compile('[\u201c"]([^\u201c\u201d"\n]{2,200})[\u201d"]')
_ARTICLES: Final = frozenset(("a", "an", "the"))
_INSIDE_NAMES: Final = frozenset(("of", "the", "de", "von", "van", "la"))
_SMALL: Final = frozenset(
    "a about all an and any are as at be been born by can did do does find for from give had has have he her his how i "  # noqa: SIM905 - a list of words reads best as words
    "in into is it its list many me much name of off on or she show so tell than that the their them then there they "
    "this through to under up was were what when where which who whom whose why will with you your".split()
)


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """A question in words."""

    question: str
    words: Sequence[re.Match[str]]

    @classmethod
    def of(cls, question: str) -> Self:
        """Return the first words of a question."""
        return cls(question, list(_WORD.finditer(question))[:MAX_WORDS])

    def names_of(self, length: int, taken: Collection[range]) -> Mapping[str, range]:
        """Return what may be names of so many words, with the places of these, where none of them is taken."""
        spans = (range(first, first + length) for first in range(len(self.words) - length + 1))
        free = (span for span in spans if not any(overlap(span, each) for each in taken))
        return {self._text(span): span for span in free if self._may_be_name(span)}

    @property
    def has_capitals(self) -> bool:
        """Whether names are written as such."""
        return any(map(self._is_capital, range(len(self.words))))

    def unknown_names(self, known: Collection[range]) -> Mapping[str, range]:
        """Return the names that are written as such, in quotes or with capitals, and are not known as a whole."""
        return {
            self._text(span): span
            for span in (*self._quoted(), *self._capitals())
            if not any(each.start <= span.start and span.stop <= each.stop for each in known)
        }

    def _quoted(self) -> list[range]:
        found: list[range] = []
        for quoted in _QUOTED.finditer(self.question):
            places = [place for place, word in enumerate(self.words) if quoted.start() < word.start() < quoted.end()]
            found += [range(places[0], places[-1] + 1)] if places else []
        return found

    def _capitals(self) -> list[range]:
        """Return the longest parts of words with capitals, joined by what stands inside names."""
        found: list[range] = []
        place = 0
        while place < len(self.words):
            end = place
            for at in range(place, len(self.words)):
                if at > place and not self._joined(at):
                    break
                if self._is_capital(at):
                    end = at + 1
                elif at == place or self.words[at][0].lower() not in _INSIDE_NAMES:
                    break
            found += [range(place, end)] if end > place else []
            place = max(end, place + 1)
        return found

    def _joined(self, place: int) -> bool:
        """Say whether nothing but a blank stands before a word, and no possessive."""
        before, word = self.words[place - 1], self.words[place]
        return not self.question[before.end() : word.start()].strip() and not _POSSESSIVE.search(before[0])

    def _is_capital(self, place: int) -> bool:
        word = self.words[place][0]
        return place > 0 and word[0].isupper() and not self._is_small(place)

    def _text(self, span: range) -> str:
        end = self.words[span[-1]].end()
        text = _POSSESSIVE.sub("", self.question[self.words[span[0]].start() : end].rstrip("."))
        return f"{text})" if text.count("(") > text.count(")") and self.question[end : end + 1] == ")" else text

    def _may_be_name(self, span: range) -> bool:
        """Say whether a part of a question may be a name: neither its first nor its last word is a small one."""
        begins = span[0] + 1 if len(span) > 1 and self.words[span[0]][0].lower() in _ARTICLES else span[0]
        return not any(self._is_small(place) for place in (begins, span[-1]))

    def _is_small(self, place: int) -> bool:
        """Say whether no name begins or ends with a word; one with a capital in a question may be part of a name."""
        word = self.words[place][0]
        return word.lower() in _SMALL and (place == 0 or word[0].islower())


def overlap(one: range, other: range) -> bool:
    """Say whether two parts of a question share a word."""
    return one.start < other.stop and other.start < one.stop


def other_forms(name: str) -> list[str]:
    """Return a name without what may be too much in it: an article, quotes, what is in brackets, a possessive."""
    plain = " ".join(name.strip(" \t'\"\u201c\u201d").split())
    unbracketed = " ".join(re.sub(r"\([^()]*\)", " ", plain).split())
    led = re.sub(r"^(?:the|a|an)\s+", "", plain, flags=re.IGNORECASE)
    forms = (plain, unbracketed, led, _POSSESSIVE.sub("", plain))
    return [form for form in dict.fromkeys(forms) if form and form != name]
