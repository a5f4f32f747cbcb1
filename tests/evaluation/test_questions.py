"""Published files of benchmarks are read whole, and what is wrong in one is said with its line."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from kg_eval.questions import BenchmarkName, Edge, Gold, InvalidQuestions, Record, Topic, read_questions

Fields: TypeAlias = Mapping[str, object]
SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
GOETHE = {"Q5879": "Johann Wolfgang von Goethe"}


def written(folder: Path, rows: Sequence[Fields] | str, name: str = "questions.json") -> Path:
    """Write rows as an array, each on a line of its own, or anything else as it is."""
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    if not isinstance(rows, str):
        path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    else:
        path.write_text(rows, encoding="utf-8")
    return path


def test_qald_takes_entities_by_name_and_values_as_they_are(tmp_path: Path) -> None:
    rows: list[Fields] = [
        {
            "question": "Who wrote Faust?",
            "answer": GOETHE,
            "sparql": "SELECT 1 ",
            "qid_topic_entity": {"Q29478": "Faust"},
        },
        {"question": "Which site?", "answer": {"https://a.example/": "N"}, "qid_topic_entity": {}},
        {"question": "What is missing?", "answer": {}},
    ]
    assert read_questions("qald10", written(tmp_path, rows)) == (
        Record(
            "1",
            "Who wrote Faust?",
            (Gold("Johann Wolfgang von Goethe", "Q5879"),),
            (Topic("Q29478", "Faust"),),
            published=("Johann Wolfgang von Goethe",),
            sparql="SELECT 1",
        ),
        Record("2", "Which site?", (Gold("https://a.example/"),), published=("N",)),
        Record("3", "What is missing?", ()),
    )


def test_an_id_that_is_unknown_is_no_topic(tmp_path: Path) -> None:
    row = {"sentence": "Goethe was a painter.", "label": "false", "ex_id": "dev_1", "topic_entity": {"UnknownQID": "G"}}
    creak = read_questions("creak", written(tmp_path, [row]))
    assert creak == (Record("dev_1", "Goethe was a painter.", (Gold("false"),), kind="false"),)


@pytest.mark.parametrize("benchmark", ["t-rex", "zero-shot-re", "kgdata"])
def test_a_slot_keeps_its_aliases_beside_the_answer_that_is_published(tmp_path: Path, benchmark: BenchmarkName) -> None:
    row = {"input": "Faust [SEP] author", "answer": "Goethe", "alias": ["Goethe", "J. W."], "qid_topic_entity": GOETHE}
    assert read_questions(benchmark, written(tmp_path, [row])) == (
        Record(
            "1",
            "Faust [SEP] author",
            (Gold("Goethe", aliases=("J. W.",)),),
            (Topic("Q5879", "Johann Wolfgang von Goethe"),),
            kind="author",
            published=("Goethe",),
        ),
    )


def test_webqsp_is_read_in_both_of_its_forms(tmp_path: Path) -> None:
    parse = {
        "TopicEntityMid": "m.0d",
        "TopicEntityName": "Faust",
        "Answers": [
            {"AnswerType": "Entity", "AnswerArgument": "m.01", "EntityName": "Goethe"},
            {"AnswerType": "Value", "AnswerArgument": "1808", "EntityName": None},
        ],
    }
    first = {"QuestionId": "WebQTest-0", "RawQuestion": "who wrote faust?", "Parses": [parse, parse]}
    whole = json.dumps({"Version": '1 "Questions"', "Questions": [first]}, indent=1)
    golds = (Gold("Goethe", "m.01"), Gold("1808"))
    expected = Record("WebQTest-0", "who wrote faust?", golds, (Topic("m.0d", "Faust"),))
    assert read_questions("webqsp", written(tmp_path, whole)) == (expected,)
    assert read_questions("webqsp", written(tmp_path, [first])) == (expected,)
    other = {"RawQuestion": "who wrote faust?", "answer": ["Goethe"], "topic_entity": {"m.0d": "Faust"}}
    assert read_questions("webqsp", written(tmp_path, [other])) == (
        Record("1", "who wrote faust?", (Gold("Goethe"),), (Topic("m.0d", "Faust"),)),
    )


def test_grbench_is_a_folder_of_lines_by_domain(tmp_path: Path) -> None:
    written(tmp_path, '{"qid": "12", "question": "When?", "answer": "1901"}\n', "legal/data.json")
    written(
        tmp_path, '{"qid": 3, "question": "Who?", "answer": ["A", "B", 7], "level": "easy"}', "maple/Biology/data.json"
    )
    written(tmp_path, '\n{"qid": "0", "question": "How?", "answer": ""}\n', "maple-physics.jsonl")
    assert read_questions("grbench", tmp_path) == (
        Record("legal:12", "When?", (Gold("1901"),), kind="legal:1", group="Legal"),
        Record(
            "maple-biology:3",
            "Who?",
            (Gold("A"), Gold("B"), Gold("7")),
            kind="maple-biology:0",
            group="Academic",
            level="easy",
        ),
        Record("maple-physics:0", "How?", (), kind="maple-physics:0", group="Academic"),
    )


def test_simple_questions_keep_the_edge_that_they_ask_for(tmp_path: Path) -> None:
    row = {"question": "who wrote it", "topic": "Q1", "relation": "P50", "direction": "out", "answer": "Q5879"}
    assert read_questions("simplequestions", written(tmp_path, json.dumps(row))) == (
        Record(
            "1", "who wrote it", (Gold("Q5879", "Q5879"),), (Topic("Q1"),), kind="P50", edge=Edge("Q1", "P50", "out")
        ),
    )


def test_questions_about_the_world_are_about_what_their_queries_name(tmp_path: Path) -> None:
    query = "SELECT ?x { w:E2 w:R1 ?x ; w:R2 w:E2 , w:E3 }"
    row = {
        "id": "q1",
        "question": "Which?",
        "kind": "list",
        "answers": ["A", 7, True, 1.5],
        "answer_ids": ["w:E1"],
        "aliases": [["a"]],
        "sparql": query,
    }
    absent: Fields = {"id": "q2", "question": "Who?", "kind": "no-such-fact", "answers": [], "sparql": "ASK {}"}
    found = read_questions("world", written(tmp_path, [row, absent]))
    golds = (Gold("A", "w:E1", ("a",)), Gold("7"), Gold("true"), Gold("1.5"))
    assert found[0] == Record(
        "q1",
        "Which?",
        golds,
        (Topic("w:E2"), Topic("w:E3")),
        kind="list",
        sparql=query,
    )
    assert (found[1].answerable, found[1].scored, found[1].golds) == (False, True, ())


def test_questions_of_ones_own_are_lines_with_what_is_right(tmp_path: Path) -> None:
    lines: list[Fields] = [
        {"question": "Who wrote Faust?", "answers": ["Goethe"], "entities": ["Q29478"], "aliases": [["J. W."]]},
        {"question": "Who sang it?", "answers": [], "id": "song"},
    ]
    path = written(tmp_path, "\ufeff" + "\r\n\n".join(map(json.dumps, lines)) + "\n", "own.jsonl")
    assert read_questions("jsonl", path) == (
        Record("1", "Who wrote Faust?", (Gold("Goethe", aliases=("J. W.",)),), (Topic("Q29478"),)),
        Record("song", "Who sang it?", (), answerable=False),
    )


OWN = '{"question": "Q?", "answers": ["a"]}\n'


@pytest.mark.parametrize(
    ("benchmark", "text", "message"),
    [
        ("jsonl", OWN + '{"question": "Q?", "answer": ["a"]}', ", line 2: answers: it is missing."),
        ("jsonl", OWN + '\n{"question": "Q?", "answers": [], "topic": 1}', ", line 3: topic: there is no such field"),
        ("jsonl", OWN + '{"question": " ", "answers": []}', ", line 2: question: the text must have at least 1"),
        ("jsonl", OWN + '{"question": "Q?", "answers": [NaN]}', ", line 2, column 1: NaN is not a JSON value."),
        ("jsonl", OWN + '{"question": "Q?",\n "answers": [}', ", line 3, column 14: Expecting value."),
        ("jsonl", OWN + "7", ", line 2: A question is an object with named fields, and this is none."),
        ("jsonl", "[" + OWN, ", line 2, column 1: Expecting ',' delimiter."),
        ("jsonl", f"[\n{OWN}]\n\n{OWN}", ", line 5, column 1: Extra data."),
        ("jsonl", "[" * 100_000, " is nested too deeply."),
        ("jsonl", '{"question": "Q?", "answers": [' + "9" * 5_000 + "]}", "more digits than can be read."),
        (
            "jsonl",
            '{"question": "Q", "answers": [], "id": "x"}\n{"question": "R", "answers": [], "id": "x"}',
            ", line 2: The id 'x' is that of line 1 already; ids must differ.",
        ),
        ("jsonl", " \n", "holds no question."),
        ("qald10", '[{"question": "Q?", "answer": ["a"]}]', ", line 1: answer: it must be an object."),
        ("creak", '[\n{"sentence": "S.", "label": "maybe"}]', ", line 2: label: it must be 'true' or 'false'."),
        ("t-rex", '[{"input": "Faust author", "answer": "G"}]', ", line 1: input: the text must match pattern"),
        ("webqsp", '{"Questions": 7}', ", line 1, column 15: Expecting a list."),
        ("webqsp", '{"Questions": [\n{"RawQuestion": 7}]}', ", line 2: RawQuestion: it must be a text."),
        ("simplequestions", '{"question": "q"}', ", line 1: topic: it is missing."),
        ("kgdata", "[\n\n{}]", ", line 3: A row has one of the fields sentence, input, RawQuestion, question, and"),
        ("grbench", "{}", "is in no folder and has no name of a graph of GRBench. Name it as one of amazon,"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_line(
    tmp_path: Path, benchmark: BenchmarkName, text: str, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidQuestions) as refused:
        read_questions(benchmark, path)
    assert str(path) in str(refused.value)
    assert message in str(refused.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidQuestions, match=r"none\.json cannot be read: No such file"):
        read_questions("jsonl", tmp_path / "none.json")
    (tmp_path / "bytes.jsonl").write_bytes(OWN.encode() + b"\xff")
    with pytest.raises(InvalidQuestions, match="is not UTF-8 text: byte 37 is"):
        read_questions("jsonl", tmp_path / "bytes.jsonl")


@pytest.mark.parametrize(
    ("benchmark", "file", "questions", "topics", "without_gold"),
    [
        ("qald10", "benchmarks/qald_10-en.json", 150, 223, 1),
        ("creak", "benchmarks/creak.json", 300, 292, 0),
        ("t-rex", "benchmarks/T-REX.json", 300, 296, 0),
        ("zero-shot-re", "benchmarks/Zero_Shot_RE.json", 300, 291, 0),
        ("grbench", "benchmarks/grbench", 1740, 0, 0),
        ("simplequestions", "simplequestions-dev.jsonl", 1010, 1010, 0),
        ("world", "world-dev/questions.json", 80, 88, 0),
    ],
)
def test_the_published_samples_load_completely(
    benchmark: BenchmarkName, file: str, questions: int, topics: int, without_gold: int
) -> None:
    path = SHARED_DATA / file
    if not path.exists():
        pytest.skip(f"needs {path}")
    found = read_questions(benchmark, path)
    counted = (len(found), sum(len(each.topics) for each in found), sum(not each.scored for each in found))
    assert counted == (questions, topics, without_gold)
    if benchmark == "grbench":
        assert Counter(each.group for each in found) == {
            "Academic": 850,
            "Healthcare": 270,
            "Literature": 240,
            "E-commerce": 200,
            "Legal": 180,
        }
