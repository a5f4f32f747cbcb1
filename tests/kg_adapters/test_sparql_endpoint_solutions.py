"""What is read from an answer, and what is not believed."""

import json
from typing import Any

import pytest

from kg_adapters.sparql.solutions import Form, Solutions, UnreadableAnswer, read_graph, read_json
from kg_adapters.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal

A = Iri("http://example.org/a")
KNOWS = Iri("http://example.org/knows")


def document(*rows: object, variables: object = ("x",)) -> dict[str, Any]:
    return {"head": {"vars": variables}, "results": {"bindings": list(rows)}}


def read_results(written: object, form: Form, *, max_rows: int | None = None) -> Solutions:
    return read_json(json.dumps(written).encode(), form, max_rows=max_rows)


def term(value: object, kind: str = "uri", **more: object) -> dict[str, object]:
    return {"x": {"type": kind, "value": value, **more}}


def test_rows_are_read_in_the_order_of_the_variables_and_an_unbound_one_is_none() -> None:
    row = {"y": {"type": "literal", "value": "hello"}, "x": {"type": "uri", "value": A.value}}
    read = read_results(document(row, {}, variables=("x", "y")), "SELECT")
    assert read == Solutions(("x", "y"), ((A, Literal("hello")), (None, None)))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (term(A.value), A),
        (term("b0", "bnode"), BlankNode("b0")),
        (term("_:b0", "bnode"), BlankNode("b0")),
        (term("nodeID://b10012", "bnode"), BlankNode("b10012")),
        (term("nodeID://b10012"), BlankNode("b10012")),
        (term("a b", "bnode"), BlankNode("x612062")),
        (term("ab", "literal"), Literal("ab")),
        (term("Ä\u0000😀", "literal"), Literal("Ä\u0000😀")),
        (term("ab", "literal", **{"xml:lang": "en-GB"}), Literal("ab", RDF_LANG_STRING, "en-GB")),
        (term("ab", "literal", **{"xml:lang": ""}), Literal("ab")),
        (term("1", "typed-literal", datatype=XSD + "integer"), Literal("1", Iri(XSD + "integer"))),
        (term("1", "literal", datatype=XSD + "integer"), Literal("1", Iri(XSD + "integer"))),
    ],
)
def test_each_kind_of_term_is_read(written: dict[str, object], meant: object) -> None:
    assert read_results(document(written), "SELECT").rows == ((meant,),)


@pytest.mark.parametrize(
    "written",
    [
        term("http://example.org/with blank"),
        term("relative"),
        term("1", "literal", datatype="no iri"),
        term("ab", "literal", **{"xml:lang": "no language"}),
        term("half of \ud83d", "literal"),
        term({"subject": {}, "predicate": {}, "object": {}}, "triple"),
    ],
)
def test_a_row_with_what_is_no_term_is_left_out_and_counted(written: dict[str, object]) -> None:
    read = read_results(document(term(A.value), written), "SELECT")
    assert read == Solutions(("x",), ((A,),), truncated=True, unreadable=1)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([], "it is not a JSON object"),
        ({}, "field required at head"),
        ({"head": {}}, "it holds no rows"),
        ({"head": {"vars": ["x"]}, "results": {}}, "field required at results.bindings"),
        ({"head": {"vars": "x"}, "results": {"bindings": []}}, "at head.vars"),
        ({"head": {}, "boolean": "true"}, "at boolean"),
        (document({"x": "http://example.org/a"}), "at results.bindings.0.x"),
        (document({"x": {"type": "uri"}}), "at results.bindings.0.x.value"),
        (document({"y": {"type": "uri", "value": A.value}}), "a row binds a variable that its head does not name"),
        (document(term("a", "number")), "a term of the unknown type 'number'"),
        (document(term({}, "uri")), "the value of a term of type 'uri' is not a text"),
    ],
)
def test_a_document_of_another_shape_is_refused_with_the_place(written: object, problem: str) -> None:
    with pytest.raises(UnreadableAnswer) as caught:
        read_results(written, "SELECT")
    assert problem in str(caught.value)


def test_a_problem_never_shows_what_the_answer_held() -> None:
    with pytest.raises(UnreadableAnswer) as caught:
        read_results(document({"x": "SECRET"}), "SELECT")
    assert "SECRET" not in str(caught.value)


VIRTUOSO_YES = {"__ASK_RETVAL": {"type": "typed-literal", "value": "1", "datatype": XSD + "integer"}}


@pytest.mark.parametrize(
    ("written", "truth"),
    [
        ({"head": {"link": []}, "boolean": True}, True),
        ({"head": {}, "boolean": False}, False),
        (document(VIRTUOSO_YES, variables=["__ASK_RETVAL"]), True),
        (document(variables=["__ASK_RETVAL"]), False),
    ],
)
def test_a_truth_value_is_read_as_virtuoso_writes_it_too(written: object, truth: bool) -> None:
    assert read_results(written, "ASK") == Solutions((), (), truth=truth)


@pytest.mark.parametrize("written", [document(term(A.value)), {"head": {}}, {"head": {"vars": ["__ASK_RETVAL"]}}])
def test_rows_are_no_truth_value(written: object) -> None:
    with pytest.raises(UnreadableAnswer, match="it holds no truth value"):
        read_results(written, "ASK")


@pytest.mark.parametrize(
    ("max_rows", "kept", "truncated"), [(None, 3, False), (3, 3, False), (2, 2, True), (0, 0, True)]
)
def test_rows_behind_the_limit_are_dropped_and_said_to_be(max_rows: int | None, kept: int, truncated: bool) -> None:
    read = read_results(document(*[term(A.value)] * 3), "SELECT", max_rows=max_rows)
    assert read == Solutions(("x",), ((A,),) * kept, truncated=truncated)


def test_a_row_behind_the_limit_need_not_be_readable() -> None:
    written = document(term(A.value), term("behind", "bnode"), {"y": "nonsense"})
    del written["results"]["bindings"][2]
    assert read_results(written, "SELECT", max_rows=1) == Solutions(("x",), ((A,),), truncated=True)


def test_triples_become_rows() -> None:
    body = (
        "<http://example.org/a> <http://example.org/knows> _:b1 .\n"
        '_:b1 <http://example.org/knows> "Zoë"@fr .\n'
        '<nodeID://b7> <http://example.org/knows> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    )
    assert read_graph(body.encode(), "n-triples") == Solutions(
        ("subject", "predicate", "object"),
        (
            (A, KNOWS, BlankNode("b1")),
            (BlankNode("b1"), KNOWS, Literal("Zoë", RDF_LANG_STRING, "fr")),
            (BlankNode("b7"), KNOWS, Literal("1", Iri(XSD + "integer"))),
        ),
    )


def test_a_triple_with_what_is_no_term_is_left_out_and_counted() -> None:
    body = b"<http://example.org/a> <http://example.org/knows> <http://example.org/{b}> .\n" * 2
    expected = Solutions(("subject", "predicate", "object"), (), truncated=True, unreadable=2)
    assert read_graph(body, "n-triples") == expected


def test_a_quoted_triple_is_no_term() -> None:
    body = "<http://example.org/a> <http://example.org/a> <<( <http://example.org/a> <http://example.org/a> 'x' )>> ."
    expected = Solutions(("subject", "predicate", "object"), (), truncated=True, unreadable=1)
    assert read_graph(body.encode(), "turtle") == expected


def test_turtle_is_read_too_and_cut_at_the_limit() -> None:
    body = b"@prefix e: <http://example.org/> . e:a e:knows e:a, e:b, e:c ."
    expected = Solutions(("subject", "predicate", "object"), ((A, KNOWS, A),), truncated=True)
    assert read_graph(body, "turtle", max_rows=1) == expected


def test_broken_triples_are_refused() -> None:
    with pytest.raises(UnreadableAnswer, match="it is not n-triples: "):
        read_graph(b"<http://example.org/a> nonsense", "n-triples")


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"a":1',
        '{"a":1}}',
        '{"a" 1}',
        '{"head":{"vars":[]},"results":{"bindings":[{},]}}',
        '{"head":{"vars":[]},"results":{"bindings":[1]}}',
        '{"head":{"vars":[]},"results":{"bindings":[{} {}]}}',
        '{"head":{"vars":[]},"results":{"bindings":[{}]',
        '{"head":{"vars":[]},"results":{"bindings":[{}}',
        "\ufeff{}",
        '{"n":' + "1" * 5_000 + "}",
        '{"n":' + "[" * 100_000,
    ],
)
def test_what_is_no_json_document_is_refused(body: str) -> None:
    with pytest.raises(UnreadableAnswer):
        read_json(body.encode(), "SELECT")


def test_the_names_of_the_variables_may_come_behind_the_rows() -> None:
    written = {"results": {"bindings": [term(A.value)] * 3, "distinct": False}, "head": {"vars": ["x"]}}
    assert read_results(written, "SELECT", max_rows=2) == Solutions(("x",), ((A,),) * 2, truncated=True)


def test_the_beginning_of_a_document_will_do_where_it_holds_enough_rows() -> None:
    body = json.dumps(document(*[term(A.value)] * 3)).encode()[:-10]
    assert read_json(body, "SELECT", max_rows=1, cut=True) == Solutions(("x",), ((A,),), truncated=True)
    with pytest.raises(UnreadableAnswer):
        read_json(body, "SELECT", max_rows=2, cut=True)


@pytest.mark.parametrize(("variables", "rows"), [(1_000_000, 5), (0, 200_000), (10_000, 300)])
def test_few_bytes_do_not_become_many_rows(variables: int, rows: int) -> None:
    written = document(*[dict[str, object]()] * rows, variables=[f"v{number}" for number in range(variables)])
    with pytest.raises(UnreadableAnswer, match="more rows or variables than so few bytes can mean"):
        read_results(written, "SELECT")


def test_a_prefix_cannot_make_a_large_answer_of_a_small_one() -> None:
    body = b"@prefix e: <http://e/%b> . e:s e:p %b ." % (b"a" * 100_000, b",".join([b"e:o"] * 2_000))
    with pytest.raises(UnreadableAnswer, match="written out it has more than"):
        read_graph(body, "turtle")
