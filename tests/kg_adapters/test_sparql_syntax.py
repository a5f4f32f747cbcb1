"""Where the engine's messages point, and what is shown of the query there."""

import pytest

from kg_adapters.sparql_guard import SyntaxProblem, read_engine_error

QUERY = "ASK {\n?s ?p ?o .\n?x ?y }"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ('error at 1:5: expected one of "(", "{"', SyntaxProblem(4, "unexpected '{'; expected one of ( {")),
        ('error at 2:7: expected ";"', SyntaxProblem(12, "unexpected '?o'; expected one of ;")),
        ('error at 3:7: expected "."', SyntaxProblem(23, "unexpected '}'; expected one of .")),
        # Of keywords alone the end of the longest is reported.
        ("error at 2:7: expected one of FROM, ASK", SyntaxProblem(8, "unexpected '?p'")),
        ("error at 1:2: expected one of SELECT, ASK", SyntaxProblem(0, "unexpected 'ASK'")),
        ('error at 2:7: expected one of "{", WHERE', SyntaxProblem(12, "unexpected '?o'; expected one of { WHERE")),
        (r'error at 1:5: expected one of "\"", "{"', SyntaxProblem(4, "unexpected '{'; expected one of \" {")),
        # No place is behind the end.
        ('error at 3:99: expected "}"', SyntaxProblem(24, "unexpected end of the query; expected one of }")),
        ("error at 1:9: expected The SELECT contains a variable that is unbound", None),
        ("Too deep.\nat frame 7", SyntaxProblem(None, "Too deep.")),
        ("x" * 121, SyntaxProblem(None, "x" * 120)),
    ],
)
def test_an_engines_message_is_told_with_its_place(message: str, problem: SyntaxProblem | None) -> None:
    found = read_engine_error(QUERY, message)
    assert found == problem if problem is not None else found.what.startswith("with GROUP BY or an aggregate")


@pytest.mark.parametrize(("number", "more"), [(8, ""), (9, " …")])
def test_eight_of_what_was_expected_are_named(number: int, more: str) -> None:
    marks = [f"<{each}>" for each in range(number)]
    found = read_engine_error("ASK", "error at 1:1: expected one of " + ", ".join(f'"{mark}"' for mark in marks))
    assert found.what == f"unexpected 'ASK'; expected one of {' '.join(marks[:8])}{more}"


@pytest.mark.parametrize(
    ("line", "at", "shown", "caret"),
    [
        ("a" * 200, 0, 120, 0),
        ("a" * 200, 60, 120, 60),
        ("a" * 200, 61, 120, 60),
        ("a" * 200, 190, 70, 60),
        ("a" * 120, 119, 61, 60),
    ],
)
def test_of_a_long_line_sixty_characters_before_the_place_are_shown(line: str, at: int, shown: int, caret: int) -> None:
    told, before, mark = SyntaxProblem(at + 2, "odd").describe(f"b\n{line}\nc").split("\n")
    assert told == f" at line 2, column {at + 1}: odd"
    assert (before, mark) == ("a" * shown, f"{' ' * caret}^")


def test_the_text_as_a_whole_has_no_place() -> None:
    assert SyntaxProblem(None, "too odd").describe("ASK") == ": too odd."


def test_the_first_line_begins_with_the_first_character() -> None:
    assert SyntaxProblem(0, "odd").describe("?ask\n") == " at line 1, column 1: odd\n?ask\n^"
    assert SyntaxProblem(0, "odd").describe("\n?ask") == " at line 1, column 1: odd\n\n^"
    assert SyntaxProblem(1, "odd").describe("\n?ask") == " at line 2, column 1: odd\n?ask\n^"
