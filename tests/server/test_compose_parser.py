"""The grammar of expressions, and errors that point at the place."""

from dataclasses import replace

import pytest

from kg_server.compose.parser import MAX_CALLS, MAX_DEPTH, MAX_IDS, MAX_RELATIONS
from kg_server.compose.syntax import PAPER, Call, Clause, EntityRef, Leg, Route, Span, entities_in, kind_of
from kg_server.naming.refusals import MisreadExpression, pointed
from set_expressions import NOWHERE, call, entity, parse, retrieve, route, words


def only(text: str) -> Call:
    (read,) = parse(text)
    return read


def error(text: str) -> MisreadExpression:
    with pytest.raises(MisreadExpression) as raised:
        parse(text)
    return raised.value


def fault(text: str) -> tuple[str, str]:
    """Return what is wrong with an expression, and the text from the place on that the error points at."""
    found = error(text)
    return found.problem, text[found.position :]


def test_every_function_has_a_call() -> None:
    assert parse(
        "Retrieve[Tokyo], Feature[Q1490, population], Neighbor[Q1490, P36], Degree[Q1490, P36], Degree[Q1490], "
        "Count[Q1490], Union[Q1, Q2, Q3], Intersect[Q1, Q2], Minus[Q1, Q2]"
    ) == (
        retrieve("Tokyo"),
        call("Feature", "Q1490", by="population"),
        call("Neighbor", "Q1490", by="P36"),
        call("Degree", "Q1490", by="P36"),
        call("Degree", "Q1490"),
        call("Count", "Q1490"),
        call("Union", "Q1", "Q2", "Q3"),
        call("Intersect", "Q1", "Q2"),
        call("Minus", "Q1", "Q2"),
    )


def test_names_are_read_in_any_case_with_their_other_spellings_and_blanks() -> None:
    wanted = call("Neighbor", "Q1", by="P2")
    for name in ("Neighbor", "NEIGHBOUR", "getneighbor", "GetNeighbour", "neighbor  ", "Neighbor\n"):
        assert only(f" {name}[ Q1 ,P2 ] ") == wanted


def test_calls_nest_in_series_and_stand_side_by_side_without_blanks() -> None:
    assert parse("Feature[Neighbor[Retrieve[Tokyo],capital],label],Degree[Retrieve[Japan]]") == (
        call("Feature", call("Neighbor", retrieve("Tokyo"), by="capital"), by="label"),
        call("Degree", retrieve("Japan")),
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Nokia CC-3068 Shell, Lumia 520 - White", "Nokia CC-3068 Shell, Lumia 520 - White"),
        ("Alien: Covenant", "Alien: Covenant"),
        ("a [b [c], d] e", "a [b [c], d] e"),
        ("two\nlines", "two\nlines"),
        ("  blanks   inside  ", "blanks   inside"),
        ("Schindler's List", "Schindler's List"),
        ("'Allo 'Allo!", "'Allo 'Allo!"),
        ('"Heroes" and "Low"', '"Heroes" and "Low"'),
        ('the "Heroes"', 'the "Heroes"'),
        ('"never closed', '"never closed'),
        ("back\\slash", "back\\slash"),
        ("<not an iri>", "<not an iri>"),
        ('"Tokyo"', "Tokyo"),
        (" 'Tokyo' ", "Tokyo"),
        ('"a ] b, c"', "a ] b, c"),
        ("'[['", "[["),
        (r'"say \"no\" \\ \n\t\r\'"', 'say "no" \\ \n\t\r\''),
        ('" blanks count "', " blanks count "),
        ('"two\nlines"', "two\nlines"),
        ("Tokyo[city]", "Tokyo[city]"),
        ('"Count[x]"', "Count[x]"),
        ("<http://example.org/a[b>", "<http://example.org/a[b>"),
        ("\u6771\u4eac", "\u6771\u4eac"),
        ("-5 degrees", "-5 degrees"),
    ],
)
def test_words_run_to_their_closing_bracket_with_or_without_quotation_marks(written: str, text: str) -> None:
    assert parse(f"Retrieve[{written}], Degree[Q1]") == (retrieve(text), call("Degree", "Q1"))


@pytest.mark.parametrize(
    ("written", "by"),
    [
        ("date, place [and] time", route("date, place [and] time")),
        ('"a ] b"', route("a ] b")),
        ("-P36", route("P36", "-")),
        ("- 'birth place'", route("birth place", "-")),
        ("'-P36'", route("-P36")),
    ],
)
def test_relations_are_words_too_and_a_minus_sign_before_one_walks_it_backwards(written: str, by: Route) -> None:
    assert only(f"Neighbor[Q1, {written}]") == call("Neighbor", "Q1", by=by)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Q1490", "Q1490"),
        ("dbr:Tokyo_(city)", "dbr:Tokyo_(city)"),
        ("ex:a[1]", "ex:a[1]"),
        ("<http://example.org/a,b]>", "<http://example.org/a,b]>"),
        ('"dbr:Washington,_D.C."', "dbr:Washington,_D.C."),
        ("http://example.org/a", "http://example.org/a"),
        ("_:b0", "_:b0"),
        ("New York", "New York"),
    ],
)
def test_an_id_ends_at_a_comma_or_bracket_unless_marks_enclose_it(written: str, text: str) -> None:
    assert only(f"Union[{written}, {written}]") == call("Union", text, text)


def test_where_something_stood_is_remembered() -> None:
    read = only(" Neighbor[Retrieve[Tokyo], capital]")
    assert (read.span, read.node.span, read.routes[0].span) == (Span(1, 35), Span(10, 25), Span(27, 34))


def test_what_a_call_gives_follows_from_its_function() -> None:
    kinds = {
        text: kind_of(only(text))
        for text in ("Retrieve[x]", "Feature[Q1, x]", "Neighbor[Q1, x]", "Degree[Q1]", "Count[Q1]", "Union[Q1, Q2]")
    }
    assert list(kinds.values()) == ["nodes", "values", "nodes", "numbers", "numbers", "nodes"]
    assert kind_of(only("Minus[Feature[Q1, x], Feature[Q2, x]]")) == "values"


def test_the_ids_of_a_tree_are_found() -> None:
    read = only("Union[Q1, Neighbor[Q2, x], Retrieve[y]]")
    assert [ref.text for ref in entities_in(read)] == ["Q1", "Q2"]


@pytest.mark.parametrize(
    ("expression", "problem", "rest"),
    [
        ("", "Expected a call here, such as Retrieve[text], ", ""),
        ("Q1490", "Expected a call here", "Q1490"),
        ("Action 1: Retrieve[x]", "Expected a call here", "Action 1: Retrieve[x]"),
        ("Retrieve[x] and more", "Expected a comma and another call, or the end.", "and more"),
        ("Retrieve[x], ", "Expected a call here", ""),
        ("Retrieve[a]]", "This bracket closes nothing.", "]"),
        ("Retrieve", "Expected [ and the arguments after Retrieve.", "Retrieve"),
        ("Retrieve(Tokyo)", "The arguments of Retrieve go in square brackets.", "Retrieve(Tokyo)"),
        ("Retrive[x]", "There is no function 'Retrive'. Did you mean Retrieve?", "Retrive[x]"),
        ("Intersection[Q1, Q2]", "There is no function 'Intersection'. Did you mean Intersect", "Intersection[Q1, Q2]"),
        ("Xyzzy[x]", "There is no function 'Xyzzy'. The functions are Retrieve, Feature,", "Xyzzy[x]"),
        ("Retrieve[x", "This bracket of Retrieve is never closed.", "[x"),
        ("Neighbor[", "This bracket of Neighbor is never closed.", "["),
        ("Neighbor[Retrieve[x]", "This bracket of Neighbor is never closed.", "[Retrieve[x]"),
        ("Neighbor[Retrieve[x], y", "This bracket of Neighbor is never closed.", "[Retrieve[x], y"),
        ("Retrieve[]", "Retrieve takes a text, as in Retrieve[Japan]. Expected the text to look for here.", "]"),
        ('Retrieve[" "]', "Retrieve takes a text, as in Retrieve[Japan]. Expected the text to look for here.", '" "]'),
        ("Neighbor[, x]", "Neighbor takes a node and a relation, as in Neighbor[Japan, capital]. Expected an ", ", x]"),
        ("Top[Type[x]]", "Top takes a set, what it is measured by, and how many, as in Top[", "]"),
        ("Top[Type[x], y, none]", "Expected how many, a whole number from 1 to 10,000.", "none]"),
        ("Top[Type[x], y, 2, z]", "Top takes a set, what it is measured by, and how many, as in Top[Type[town", ", z]"),
        ("Where[Type[x]]", "Where takes a set and conditions, as in Where[", "]"),
        ("Where[Type[x], y >]", "Expected a value, a name or a set after >.", "]"),
        ("Where[Type[x], y = Group[Q1, z]]", "Where compares with nodes, values or one number", "Group[Q1, z]]"),
        ("Where[Type[x], = 3]", "Where takes a set and conditions, as in Where[Type[town], population > 1000]", "= 3]"),
        ("Sum[Type[x]]", "Sum takes a set and a feature, as in Sum[", "]"),
        ("Sum[Type[x], y, z]", "Sum takes a set and a feature, as in Sum[Type[town], population]. Expected ] ", ", z]"),
        ("Group[Type[x], y/]", "Group takes a set and a relation, as in Group[Type[town], country], and what", "]"),
        ("Table[Type[x]]", "Table takes a set and relations, as in Table[", "]"),
        ("Share[Q1]", "Share takes two or more sets, as in Share[", "]"),
        ("Share[Feature[Q1, x], Feature[Q2, x]]", "Share starts from nodes, but th", "Feature[Q1, x], Feature[Q2, x]]"),
        ("Where[Group[Q1, x], y]", "Where starts from nodes, but this gives groups.", "Group[Q1, x], y]"),
        ("Feature[Q1, ]", "Feature takes a node and a feature, as in Feature[Japan, population]. Expected the na", "]"),
        ("Neighbor[Q1, -]", "Neighbor takes a node and a relation, as in Neighbor[Japan, capital]. Expected the ", "]"),
        ("Neighbor['Q1, x]", "This quotation mark is never closed", "'Q1, x]"),
        ("Neighbor[Retrieve[x] y, z]", "Neighbor takes a node and a relation, as in Neighbor[Japan, capital]", "y, z]"),
        ("Count[Q1, Q2]", "Count takes one set, as in Count[Type[town]]. Expected ] to close it here.", ", Q2]"),
        ("Count[Sum[Q1, x]]", "Count takes one set, as in Count[Type[town]]. This is one number alread", "Sum[Q1, x]]"),
        ('Neighbor[Q1, "x]', "Neighbor takes a node and a relation, as in Neighbor[Japan, capital]. This quota", '"x]'),
        ("SELECT ?x { ?x ?y ?z }", "This is not an expression: the tool Sparql takes", "SELECT ?x { ?x ?y ?z }"),
        ("Union[Retrieve[a] Retrieve[b]]", "Union takes two or more sets, as in Union[Type[town], Nei", "Retrieve[b]]"),
        ("Neighbor[Degree[Q1], x]", "Neighbor starts from nodes, but this gives numbers.", "Degree[Q1], x]"),
        ("Degree[Feature[Q1, x]]", "Degree starts from nodes, but this gives values.", "Feature[Q1, x]]"),
        ("Union[Q1, Feature[Q2, x]]", "Union takes sets that are all of nodes, or all of values; t", "Feature[Q2, x]]"),
        ("Minus[Count[Q1], Count[Q2]]", "Minus takes sets that are all of nodes", "Count[Q1], Count[Q2]]"),
        ("Retrieve[Retrieve[x]]", "Retrieve takes no call here.", "Retrieve[x]]"),
        ("Neighbor[Q1, count [x]]", "Neighbor takes no call here.", "count [x]]"),
    ],
)
def test_an_error_says_what_is_wrong_and_points_at_it(expression: str, problem: str, rest: str) -> None:
    found = fault(expression)
    assert found[0].startswith(problem)
    assert found[1] == rest


def test_functions_beyond_the_paper_have_calls_of_their_own() -> None:
    town, by = Call("Type", NOWHERE, words=words("town")), route("population")
    back = Route((Leg(words("a"), "-"), Leg(words("b"), "~", repeated=True)), NOWHERE)
    assert only("Type[town]") == town
    assert only("Top[Type[town], population, 3]") == call("Top", town, by=by, n=3)
    assert only("bottom[Type[town], population]") == call("Bottom", town, by=by)
    assert only("Mean[Type[town], population]") == call("Mean", town, by=by)
    assert only("Sum[Feature[Type[town], population]]") == call("Sum", town, by=by)
    assert only("Group[Type[town], -a/ ~b+]") == call("Group", town, by=back)
    assert only("Table[Type[town], population, -a/~b+]") == Call("Table", NOWHERE, (town,), (by, back))
    assert only("Share[Q1, Type[town]]") == call("Share", "Q1", town)
    assert only("Neighbor[Q1]") == call("Neighbor", "Q1")


def test_conditions_are_read_with_their_operator_and_value() -> None:
    written = "Where[Q1, a > 1,000 m, -b != New York, 'c=d' ~ 'x, y', <http://e/f> = Type[town], ~g]"
    clauses = (
        Clause(route("a"), ">", words("1,000 m")),
        Clause(route("b", "-"), "!=", words("New York")),
        Clause(route("c=d"), "~", replace(words("x, y"), quoted=True)),
        Clause(route("<http://e/f>"), "=", Call("Type", NOWHERE, words=words("town"))),
        Clause(route("g", "~")),
    )
    assert only(written) == Call("Where", NOWHERE, (entity("Q1"),), clauses=clauses)


def test_an_operator_may_be_written_in_other_ways() -> None:
    assert only("Where[Q1, a == 1, b ≠ 2, c ≤ 3, d≥4]") == only("Where[Q1, a = 1, b != 2, c <= 3, d >= 4]")


def test_an_expression_names_a_number_of_relations_and_no_more() -> None:
    assert len(only(f"Table[Q1, {'a/' * (MAX_RELATIONS - 1)}b]").routes[0].legs) == MAX_RELATIONS
    for many in (f"Neighbor[Q1, {'a/' * MAX_RELATIONS}b]", f"Where[Q1, {'a > 1, ' * MAX_RELATIONS}b]"):
        assert fault(many)[0] == "An expression names at most 64 relations. Ask in two."


def test_the_paper_has_four_functions() -> None:
    assert parse("Neighbor[Retrieve[x], y]", functions=PAPER)
    with pytest.raises(MisreadExpression, match="The functions are Retrieve, Feature, Neighbor, Degree\\."):
        parse("Count[Q1]", functions=PAPER)


def test_calls_nest_to_a_depth_and_no_deeper() -> None:
    def nested(depth: int) -> str:
        return "Neighbor[" * (depth - 1) + "Retrieve[x]" + ", y]" * (depth - 1)

    deepest = only(nested(MAX_DEPTH))
    for _ in range(MAX_DEPTH - 1):
        assert not isinstance(deepest.node, EntityRef)
        deepest = deepest.node
    assert deepest == retrieve("x")
    assert fault(nested(MAX_DEPTH + 1))[0] == "This call is nested deeper than 8. Ask in two steps."


def test_an_expression_has_a_number_of_calls_and_no_more() -> None:
    assert len(parse(", ".join(["Retrieve[x]"] * MAX_CALLS))) == MAX_CALLS
    problem, rest = fault(", ".join(["Retrieve[x]"] * (MAX_CALLS + 1)))
    assert problem == "An expression has at most 64 calls; this is one more. Ask in two."
    assert rest == "Retrieve[x]"


def test_an_expression_has_a_number_of_ids_and_no_more() -> None:
    assert len(only(f"Union[{'Q1,' * (MAX_IDS - 1)}Q2]").operands) == MAX_IDS
    assert fault(f"Union[{'Q1,' * MAX_IDS}Q2]") == (
        "An expression has at most 500 ids of nodes; this is one more.",
        "Q2]",
    )


@pytest.mark.parametrize(
    "text",
    [
        "Neighbor[" * 12_000,
        "[" * 100_000,
        "]" * 100_000,
        "Retrieve['a]," * 8_000,
        "Retrieve[" + "[" * 100_000,
        "Retrieve[" * 1_000 + "x" + "]" * 1_000 + "]",
        "a" * 100_000,
        "'" * 100_000,
        "Union[" + "Q1," * 40_000,
        "Neighbor[<" + "," * 100_000,
        " " * 100_000,
        "\n" * 100_000 + "x",
    ],
)
def test_a_hundred_kilobytes_of_nonsense_are_refused_at_once_in_a_few_words(text: str) -> None:
    assert len(str(error(text))) < 600


def test_the_caret_stands_below_the_place() -> None:
    assert str(error("Union[Q1,\n  Degree[Q2]]")) == (
        "Union takes sets that are all of nodes, or all of values; this gives numbers, and the first nodes.\n"
        "line 2, column 3:   Degree[Q2]]\n"
        "                    ^"
    )


def test_the_caret_minds_wide_and_combining_characters() -> None:
    assert pointed("\u6771e\u0301x", 3) == "\u6771e\u0301x\n\N{IDEOGRAPHIC SPACE} ^"


def test_a_long_line_is_shortened_around_the_place_and_controls_are_escaped() -> None:
    line, caret = pointed("\t" + "a" * 99 + "!" + "b" * 99, 100).splitlines()
    assert line == "…" + "a" * 50 + "!" + "b" * 49 + "…"
    assert line[caret.index("^")] == "!"
    assert pointed("a\tb", 2) == "a\\tb\n   ^"
