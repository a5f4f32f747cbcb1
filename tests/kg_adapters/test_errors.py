"""The tree of errors and the messages that a model reads."""

import pytest

from kg_adapters import errors
from kg_adapters.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    InvalidRequest,
    InvalidSource,
    KGError,
    UnknownEntity,
    UnknownRelation,
    causes,
)


def test_every_error_belongs_to_one_tree() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert [error for error in found if not issubclass(error, KGError)] == []
    assert issubclass(BackendTimeout, BackendError)
    assert issubclass(BackendUnavailable, BackendError)


def test_what_an_error_came_from_is_listed_once_even_where_it_is_its_own_cause() -> None:
    own, missing, late = KGError("own"), OSError("missing"), TimeoutError("late")
    own.__cause__, own.__context__ = own, ExceptionGroup("several", [missing, late])
    late.__cause__ = own
    assert causes(own) == [own, own.__context__, missing, late]


@pytest.mark.parametrize(("error", "kind"), [(UnknownEntity, "entity"), (UnknownRelation, "relation")])
def test_an_unknown_id_is_named_with_suggestions_and_the_next_step(
    error: type[UnknownEntity | UnknownRelation], kind: str
) -> None:
    caught = error("Q0", suggestions=["Tokyo (Q1490)", "Kyoto (Q34600)"], hint="Retrieve finds the id of a name.")
    assert str(caught) == (
        f"This graph has no {kind} 'Q0'. Did you mean Tokyo (Q1490) or Kyoto (Q34600)? Retrieve finds the id of a name."
    )
    assert caught.suggestions == ("Tokyo (Q1490)", "Kyoto (Q34600)")


def test_a_message_stays_on_its_line_and_holds_nothing_unseen() -> None:
    assert str(InvalidSource("a\nb\u202e.ttl is damaged.")) == r"a\nb\u202e.ttl is damaged."
    assert str(BackendError("a\x1b[2J\u2028b")) == r"a\u001b[2J\u2028b"


def test_only_a_wrong_request_is_pointed_at_on_several_lines() -> None:
    assert str(InvalidRequest("Here:\n\u202ex\n^")) == "Here:\n\\u202ex\n^"


def test_an_unknown_id_without_suggestions_says_only_that() -> None:
    entity, relation = UnknownEntity("a\nb"), UnknownRelation("r")
    assert (str(entity), entity.entity) == ("This graph has no entity 'a\\nb'.", "a\nb")
    assert (str(relation), relation.relation) == ("This graph has no relation 'r'.", "r")
