"""What a SPARQL query may do, and how it is told what it may not."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.errors import InvalidRequest
from kg_adapters.prefixes import WIKIDATA
from kg_adapters.sparql_guard import MAX_QUERY_LENGTH, CheckedQuery, check_query
from kg_adapters.terms import Iri

WD = "http://www.wikidata.org/entity/"
WDT = "http://www.wikidata.org/prop/direct/"


def refusal(query: str, **options: list[str]) -> str:
    with pytest.raises(InvalidRequest) as caught:
        check_query(query, namespaces=WIKIDATA.namespaces, **options)
    return str(caught.value)


def named(query: str) -> tuple[str, ...]:
    return tuple(iri.value for iri in check_query(query, namespaces=WIKIDATA.namespaces).named)


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("SELECT * { ?s ?p ?o }", "SELECT"),
        ("ask { ?s ?p ?o }", "ASK"),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "CONSTRUCT"),
        ("DESCRIBE wd:Q1490", "DESCRIBE"),
    ],
)
def test_the_four_forms_that_read_pass(query: str, form: str) -> None:
    assert check_query(query, namespaces=WIKIDATA.namespaces).form == form


def test_a_checked_query_says_what_to_run_and_what_it_names() -> None:
    query = "PREFIX wd: <http://other/> SELECT * { wd:Q1 x:p\\,q <http://a/b> }"
    assert check_query(
        query, namespaces={"wd": WD, "x": "http://x/", "1bad": "http://x/", "bad": "no iri"}
    ) == CheckedQuery(
        form="SELECT",
        text=query,
        prefixes=(("x", "http://x/"),),
        named=(Iri("http://other/Q1"), Iri("http://x/p,q"), Iri("http://a/b")),
    )


def test_undeclared_prefixes_are_declared_on_the_first_line() -> None:
    checked = check_query("SELECT *\n{ wd:Q1 ?p ?o }", namespaces={"wd": WD})
    assert checked.self_contained_text == f"PREFIX wd: <{WD}> SELECT *\n{{ wd:Q1 ?p ?o }}"
    assert check_query(checked.self_contained_text).named == (Iri(WD + "Q1"),)


def test_only_iris_that_are_looked_up_in_the_graph_are_named() -> None:
    assert named('SELECT * { ?s wdt:P31 "1"^^wd:Q1 FILTER(wd:Q2(?s) > 1) ?s wdt:P36* (wd:Q3 1) }') == (
        WDT + "P31",
        WDT + "P36",
        WD + "Q3",
    )
    assert named("CONSTRUCT { ?s wd:Q1 ?o } WHERE { ?s wd:Q2 ?o . ?s wd:Q2 ?x }") == (WD + "Q2",)


def test_relative_iris_follow_the_base() -> None:
    assert named("BASE <http://b/c/> BASE <d/> PREFIX e: <e#> SELECT * { <x> e:y <#z> }") == (
        "http://b/c/d/x",
        "http://b/c/d/e#y",
        "http://b/c/d/#z",
    )
    assert named("SELECT * { <x> ?p ?o }") == ()


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <a:b> <a:b> 1 }",
        "# a comment\nPREFIX x: <http://x/> # another\n delete where { ?s ?p ?o }",
        "BASE <http://x/> WITH <g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "LOAD <http://example.org/>",
        "CLEAR ALL",
        "DROP GRAPH <http://g/>",
        "INSERT this is not even SPARQL",
    ],
)
def test_an_update_is_refused_by_name(update: str) -> None:
    assert refusal(update) == (
        "This graph is read-only; updates are refused. Ask with SELECT, ASK, CONSTRUCT or DESCRIBE."
    )


def test_a_word_that_only_begins_like_an_update_is_none() -> None:
    assert refusal("LOADING <http://example.org/>").startswith("The query is not SPARQL at line 1")


def test_an_update_behind_a_query_is_a_syntax_error() -> None:
    assert refusal("ASK { ?s ?p ?o } ; DROP ALL") == (
        "The query is not SPARQL at line 1, column 18: unexpected ';'\nASK { ?s ?p ?o } ; DROP ALL\n                 ^"
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "SERVICE <http://x/> { ?s ?p ?o }",
        "sErViCe SILENT ?x { ?s ?p ?o }",
        "?s ?p ?o . OPTIONAL { SERVICE <http://x/> {} }",
        "{ SELECT ?s { { ?s ?p ?o } UNION { SERVICE <http://x/> {} } } }",
        "?s ?p ?o FILTER NOT EXISTS { ?s ?p ?x . SERVICE <http://x/> {} }",
        "BIND(EXISTS { SERVICE <http://x/> {} } AS ?b)",
        "MINUS { GRAPH ?g { SERVICE <http://x/> {} } }",
        "#\rSERVICE <http://x/> {}\n",
        "?s ?p 'SERVICE' . SERVICE <http://x/> { SERVICE <http://y/> {} }",
        "?s ?p ?o ; ?q ?r SERVICE <http://x/> {}",
        "service:x ?p ?o SERVICE service:x {}",
    ],
)
def test_service_is_refused_wherever_it_hides(pattern: str) -> None:
    for query in (f"SELECT * {{ {pattern} }}", f"PREFIX service: <http://s/> ASK {{ {pattern} }}"):
        if "service:" in pattern and "PREFIX" not in query:
            continue
        assert refusal(query).startswith("SERVICE is refused")


def test_the_word_service_is_free_elsewhere() -> None:
    query = "SELECT ?service { ?service service:x 'SERVICE' . # SERVICE <http://x/> {}\n}"
    checked = check_query(query, namespaces={"service": "http://service/"})
    assert checked == CheckedQuery("SELECT", query, (("service", "http://service/"),), (Iri("http://service/x"),))


def test_a_query_that_this_parser_and_the_engine_read_differently_is_refused_where_service_is_near() -> None:
    assert refusal("SELECT ?service ?x { ?service ?p ?o } GROUP BY ?x").startswith(
        "The query is not SPARQL as this graph reads it: with GROUP BY"
    )


@pytest.mark.parametrize("clause", ["FROM <http://g/>", "FROM NAMED wd:Q1", "FROM <http://h/> FROM <http://g/>"])
def test_other_graphs_are_refused(clause: str) -> None:
    assert "is refused: a query is about this graph alone" in refusal(f"SELECT * {clause} {{ ?s ?p ?o }}")


def test_graphs_may_be_allowed() -> None:
    query = "SELECT * FROM <http://g/> FROM NAMED x:h { ?s ?p ?o }"
    graphs = ["http://g/", "http://x/h"]
    assert check_query(query, namespaces={"x": "http://x/"}, allowed_graphs=graphs).named == ()
    assert refusal("SELECT * FROM <http://g/i> { ?s ?p ?o }", allowed_graphs=graphs).startswith("FROM http://g/i is")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT ?s WHERE {\n\t?s ?p ?o .\n\tFILTR(?s > 3)\n}",
            """at line 3, column 2: unexpected 'FILTR'
 FILTR(?s > 3)
 ^""",
        ),
        (
            "SELECT ?s WHERE ?s ?p ?o }",
            """at line 1, column 17: unexpected '?s'; expected one of {
SELECT ?s WHERE ?s ?p ?o }
                ^""",
        ),
        (
            "SELECT ?s WHERE { ?s ?p ?o",
            """at line 1, column 27: unexpected end of the query; expected one of , . ; { {| } ~
SELECT ?s WHERE { ?s ?p ?o
                          ^""",
        ),
        (
            "SELECT ?s { ?s <http://x/ y> 1 }",
            """at line 1, column 29: an IRI is not absolute or holds a character that IRIs cannot: write <http://…>
SELECT ?s { ?s <http://x/ y> 1 }
                            ^""",
        ),
    ],
)
def test_a_syntax_error_shows_its_place(query: str, message: str) -> None:
    assert refusal(query) == f"The query is not SPARQL {message}"


def test_a_prefix_without_declaration_is_shown_with_those_that_need_none() -> None:
    assert refusal("SELECT ?s {\n ?s foo:bar 1 }") == (
        "The query uses a prefix without declaring it at line 2, column 5: foo: is not declared; add PREFIX foo: "
        "<http://…> (known without: wd:, wdt:, p:, ps:, pq:, rdfs:, skos:, schema:, wikibase:)\n"
        " ?s foo:bar 1 }\n    ^"
    )


def test_the_place_in_a_long_line_is_shown_with_what_is_around_it() -> None:
    *_, line, caret = refusal("SELECT * { " + "?s ?p ?o . " * 30 + "FILTR(1) }").split("\n")
    assert len(line) <= 120
    assert line[caret.index("^") :].startswith("FILTR")


@pytest.mark.parametrize("query", ['ASK { ?s ?p "it\\\'s" }', "ASK { ?s ?p <<( <a:b> <a:c> 1 )>> }"])
def test_a_query_that_only_the_engine_understands_is_not_called_wrong(query: str) -> None:
    assert refusal(query).startswith("This query may be valid, but the safety check cannot read it at line 1, column ")


def test_triple_terms_of_iris_and_variables_are_read_and_hide_nothing() -> None:
    query = "SELECT * { ?r <http://e/reifies> <<( <http://e/a> <http://e/p> ?o )>> }"
    checked = check_query(query)
    assert (checked.text, [iri.value for iri in checked.named]) == (query, ["http://e/reifies"])
    term = "<<( <http://e/a> <http://e/p> ?o )>>"
    for hidden in (
        f"SELECT * {{ ?r ?p {term} SERVICE <http://e/> {{ ?s ?p ?o }} }}",
        f'SELECT * {{ ?r ?p "{term}" SERVICE <http://e/> {{ ?s ?p ?o }} }}',
        f"SELECT * # {term}\nFROM <http://e/> {{ ?s ?p ?o }}",
        f"ASK FROM <http://e/> {{ ?s ?p {term} }}",
        f"INSERT DATA {{ <http://e/a> <http://e/p> {term} }}",
    ):
        assert "refused" in refusal(hidden)


def test_escaped_letters_are_replaced_and_escaped_syntax_is_refused() -> None:
    assert check_query('ASK { ?s ?p "caf\\u00e9 \\U0001F600" }').text == 'ASK { ?s ?p "café 😀" }'
    assert refusal('SELECT * { BIND("\\u0022 AS ?x) #" AS ?x) SERVICE <http://x/> {} }') == (
        "The escape \\u0022 is refused: write the character itself."
    )
    for escape in ("\\u12", "\\uD800", "\\UFFFFFFFF", "\\\\u0041"):
        assert "is refused: write the character itself." in refusal(f'ASK {{ ?s ?p "{escape}" }}')


@pytest.mark.parametrize(
    ("escape", "character"),
    [
        ("\\u00a0", "\u00a0"),
        ("\\u00A0", "\u00a0"),
        ("\\uD7FF", "\ud7ff"),
        ("\\ue000", "\ue000"),
        ("\\U0010ffff", "\U0010ffff"),
        ("\\U0001F600", "\U0001f600"),
    ],
)
def test_an_escape_of_a_letter_or_sign_beyond_ascii_is_replaced(escape: str, character: str) -> None:
    assert check_query(f'ASK {{ ?s ?p "{escape}" }}').text == f'ASK {{ ?s ?p "{character}" }}'


@pytest.mark.parametrize("escape", ["\\u009f", "\\uD800", "\\udfff", "\\U00110000", "\\U0000007B"])
def test_an_escape_of_syntax_or_of_no_character_is_refused(escape: str) -> None:
    assert refusal(f'ASK {{ ?s ?p "{escape}" }}') == f"The escape {escape} is refused: write the character itself."


@pytest.mark.parametrize("escape", ["\\U0001F60", "\\u00e", "\\u"])
def test_an_unfinished_escape_is_refused(escape: str) -> None:
    assert "is refused: write the character itself." in refusal(f'ASK {{ ?s ?p "{escape}" }}')


@pytest.mark.parametrize("character", ["\x00", "\x0c", "\x1b", "\x7f", "\x85", "\ud800"])
def test_control_characters_are_refused(character: str) -> None:
    assert refusal(f"ASK {{ ?s ?p '{character}' }}") == (
        f"The query holds the control character U+{ord(character):04X}. Remove it."
    )


def test_every_kind_of_line_end_is_read_alike() -> None:
    assert check_query("ASK {\r\n?s ?p ?o .\r?s ?p 1 }").text == "ASK {\n?s ?p ?o .\n?s ?p 1 }"


@pytest.mark.parametrize("query", ["", " \n\t"])
def test_an_empty_query_gets_an_example(query: str) -> None:
    assert refusal(query) == "The query is empty. Write one such as SELECT ?s WHERE { ?s ?p ?o } LIMIT 10."


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("A" * (MAX_QUERY_LENGTH + 1), "at most 20,000 characters"),
        ("SELECT * " + "{" * 19_000, "more than 40 deep"),
        ("SELECT * { FILTER(" + "! " * 9_000 + "1) }", "more than 40 deep"),
        ("SELECT * { FILTER(" + "(" * 38 + "1" + ")" * 38 + ") }", "too deeply or too long"),
        ("SELECT * { " + "?s ?p ?o . " * 1_000 + "}", "too deeply or too long"),
    ],
)
def test_queries_are_bounded(query: str, words: str) -> None:
    assert words in refusal(query)


@pytest.mark.parametrize(
    "brackets",
    [
        "(" * 39,
        "[" * 20 + "{" * 19,
        "()" * 60,
        ")" * 5 + "(" * 39,
        "(" * 39 + ")" * 5 + "(" * 5,
    ],
)
def test_up_to_forty_open_brackets_pass_and_closed_ones_count_no_more(brackets: str) -> None:
    assert check_query(f'ASK {{ ?s ?p "{brackets}" }}').form == "ASK"


@pytest.mark.parametrize(
    "brackets",
    [
        "(" * 40,
        "([{" * 13 + "(",
        "(" * 40 + ")" * 40 + "(",
        ")" * 60 + "(" * 41,
        "(" * 30 + ")" + "(" * 15,
        "(" * 30 + ")" * 5 + "(" * 15,
    ],
)
def test_no_closing_bracket_makes_room_for_more_than_itself(brackets: str) -> None:
    assert "more than 40 deep" in refusal(f'ASK {{ ?s ?p "{brackets}" }}')


def test_a_query_of_the_greatest_length_passes() -> None:
    assert check_query("ASK { ?s ?p ?o }".ljust(MAX_QUERY_LENGTH)).form == "ASK"


def test_forty_negations_are_too_many_and_thirty_nine_are_not() -> None:
    assert "more than 40 deep" in refusal("ASK { FILTER(" + "! " * 40 + "1) }")
    assert "more than 40 deep" not in refusal("ASK { FILTR(" + "! " * 39 + "1) }")


def test_a_mistake_beside_the_word_service_is_not_called_a_service() -> None:
    assert refusal("SELECT ?service { FILTR(1) ?service ?p ?o }").startswith(
        "The query is not SPARQL at line 1, column "
    )


def test_a_mistake_without_a_place_is_told_where_the_check_could_not_read_the_query_either() -> None:
    assert refusal('SELECT ?s { ?s ?p "it\\\'s" } GROUP BY ?x').startswith("The query is not SPARQL: with GROUP BY")


def test_a_graph_with_an_undeclared_prefix_is_refused() -> None:
    assert refusal("ASK FROM nope:g { ?s ?p ?o }").startswith("FROM this is refused")


def test_the_empty_prefix_names_only_what_it_is_written_before() -> None:
    assert named("PREFIX : <http://x/> SELECT (STR(?s) AS ?t) { ?s :p 'a'@en }") == ("http://x/p",)


def test_of_many_known_prefixes_twelve_are_shown() -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_query("ASK { foo:x ?p ?o }", namespaces={f"n{number}": "http://x/" for number in range(20)})
    assert "n11:)" in str(caught.value)


FRAGMENTS = (
    "SELECT * ASK CONSTRUCT DESCRIBE WHERE { } ( ) [ ] ?s ?p ?o $x <a:b> <rel> wd:Q1 x:y 'a' \"b\" \"\"\"c ''' @en ^^ "
    "1 -2.5 1e9 . ; , / | ^ * + ? ! && || = < > FILTER EXISTS NOT OPTIONAL UNION MINUS GRAPH SERVICE SILENT BIND AS "
    "VALUES UNDEF FROM NAMED GROUP BY HAVING ORDER DESC LIMIT OFFSET DISTINCT COUNT SUM a true _:b INSERT DATA LOAD "
    "PREFIX BASE x: # \n \r \t \\ \\u0022 \\' é 𝄞 \x00 % << >> IF REGEX IN SEPARATOR"
)


@given(st.lists(st.sampled_from(FRAGMENTS.split(" ")), max_size=25).map(" ".join) | st.text(max_size=60))
def test_whatever_the_text_the_guard_answers_or_refuses(query: str) -> None:
    with suppress(InvalidRequest):
        assert check_query(query, namespaces=WIKIDATA.namespaces).form in {"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"}


@given(
    st.sampled_from(
        ["?s ?p 'a' .", '?s ?p """b" c""" .', "# c\n", "?s <a:b#c> ?o .", "BIND('\\\\' AS ?x)", "wd:Q\\#1 ?p 1 ."]
    ),
    st.sampled_from(["", "OPTIONAL", "FILTER EXISTS", "FILTER NOT EXISTS", "{ SELECT * ", "MINUS", "GRAPH ?g"]),
    st.sampled_from(["SERVICE", "service", "SeRvIcE SILENT"]),
)
def test_no_surrounding_hides_a_service(before: str, around: str, keyword: str) -> None:
    close = "}" if around.startswith("{") else ""
    query = f"SELECT * {{ {before} {around} {{ {before} {keyword} <http://x/> {{ ?s ?p ?o }} }} {close} }}"
    assert refusal(query).startswith("SERVICE is refused")
