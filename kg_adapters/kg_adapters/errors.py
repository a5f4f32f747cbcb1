"""The one tree of errors.

KGError
├── InvalidRequest        the caller asked for something that cannot mean anything
├── UnknownEntity         the graph does not mention this entity
│   └── UnknownName       nothing in the graph is named like this
├── UnknownRelation       no triple of the graph has this relation
├── Unsupported           this graph cannot do what was asked, and never will
├── InvalidSource         a file or store that was to be read is not what it should be
│   ├── GraphReplaced     another graph took its place while it was asked
│   └── StoreDamaged      a file of a store is not what the import wrote
└── BackendError          the graph itself failed
    ├── BackendTimeout    it did not answer in time
    └── BackendUnavailable  it cannot be reached at all
        └── ModelUnavailable  what compares meanings does not answer; letters can stand in
            └── ModelBusy     it works here, for others

A message is written for the model or the person who reads it: what was asked, what went wrong, what to try next.
"""

from collections.abc import Sequence
from typing import Final

from kg_boundary.shown import in_quotes, visible_line, visible_lines

RETRY_S: Final = 10.0
"""After how many seconds at most what failed is asked for again."""


class KGError(Exception):
    """Anything that this project raises on purpose.

    Messages repeat what graphs, files and services say, so what cannot be seen is escaped in them, line breaks too.

    Args:
        message: What went wrong, in full sentences.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(self._seen(message))

    @staticmethod
    def _seen(message: str) -> str:
        return visible_line(message)


class InvalidRequest(KGError):
    """The request itself is wrong, whatever the graph holds. The message may have several lines, as to point at one."""

    @staticmethod
    def _seen(message: str) -> str:
        return visible_lines(message)


class UnknownEntity(KGError):
    """The graph mentions no such entity.

    Args:
        entity: The id as it was asked for.
        suggestions: Ids with labels that may have been meant, best first.
        hint: The next step, a full sentence.
    """

    def __init__(self, entity: str, *, suggestions: Sequence[str] = (), hint: str = "") -> None:
        self.entity = entity
        self.suggestions = tuple(suggestions)
        super().__init__(_unknown("entity", entity, suggestions, hint))


class UnknownName(UnknownEntity):
    """Nothing in the graph bears a name.

    Args:
        name: The name as it was asked for.
        near: What has a name like it, or shares words with it, and is something else.
        hint: What it is instead, a full sentence.
    """

    def __init__(self, name: str, *, near: Sequence[str] = (), hint: str = "") -> None:
        self.entity = name
        self.suggestions = tuple(near)
        like = f" Near, not the same: {'; '.join(near)}." if near else ""
        instead = f" {hint}" if hint else ""
        KGError.__init__(self, f"No entity matches {in_quotes(name)}.{instead}{like}")


class UnknownRelation(KGError):
    """No triple of the graph has this relation.

    Args:
        relation: The id as it was asked for.
        suggestions: Ids with labels that may have been meant, best first.
        hint: The next step, a full sentence.
    """

    def __init__(self, relation: str, *, suggestions: Sequence[str] = (), hint: str = "") -> None:
        self.relation = relation
        self.suggestions = tuple(suggestions)
        super().__init__(_unknown("relation", relation, suggestions, hint))


class Unsupported(KGError):
    """This graph cannot do what was asked."""


class InvalidSource(KGError):
    """A file or store that was to be read is damaged, of another version or not what its name says."""


class StoreDamaged(InvalidSource):
    """A file of a store is not what the import wrote."""


class GraphReplaced(InvalidSource):
    """Another graph took the place of the one that was asked, before it had said everything.

    Whoever asks again from the start is answered by the new one: `kg_adapters.protocol`.
    """


class BackendError(KGError):
    """The graph failed to answer."""


class BackendTimeout(BackendError):
    """The graph did not answer before the deadline."""


class BackendUnavailable(BackendError):
    """The graph cannot be reached."""


class ModelUnavailable(BackendUnavailable):
    """What compares meanings does not answer now; the graph does."""


class ModelBusy(ModelUnavailable):
    """What compares meanings has more to do than it can in time."""


def causes(error: BaseException) -> list[BaseException]:
    """Return an error and everything that it came from, each once: causes, contexts and members of groups."""
    found = [error]
    for each in found:
        members: tuple[object, ...] = getattr(each, "exceptions", ())
        for other in (each.__cause__, each.__context__, *members):
            if isinstance(other, BaseException) and not any(other is known for known in found):
                found.append(other)
    return found


def _unknown(kind: str, asked: str, suggestions: Sequence[str], hint: str) -> str:
    parts = [f"This graph has no {kind} {in_quotes(asked)}."]
    if suggestions:
        parts.append(f"Did you mean {' or '.join(suggestions)}?")
    if hint:
        parts.append(hint)
    return " ".join(parts)
