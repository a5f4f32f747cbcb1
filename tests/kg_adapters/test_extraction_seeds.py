"""Which entities a file names."""

import hashlib
from pathlib import Path

import pytest

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.extraction.journal import Unknown
from kg_adapters.extraction.seeds import FIELDS, Mention, find_mentions, read_entities
from kg_adapters.local.store import SourceFile

NO_IDS = "It is not a JSON object whose fields hold an id or a list of ids."


def test_every_line_is_an_id_but_empty_ones_and_comments() -> None:
    content = "\ufeffQ1490\r\n\n  wd:Q5879  \n# a comment\n<http://e/an id>\n".encode()
    assert find_mentions(content, FIELDS) == (
        [Mention(1, "Q1490"), Mention(3, "wd:Q5879"), Mention(5, "<http://e/an id>")],
        [],
    )


def test_a_json_line_holds_ids_in_its_fields() -> None:
    content = b'{"topic": "Q1", "answer": "Q2"}\n{"entities": ["Q3", "Q4"], "entity": null}\n{"entity": "Q5"}\n'
    assert find_mentions(content, FIELDS) == (
        [Mention(1, "Q1"), Mention(2, "Q3"), Mention(2, "Q4"), Mention(3, "Q5")],
        [],
    )
    assert find_mentions(content, ["answer"])[0] == [Mention(1, "Q2")]


@pytest.mark.parametrize("line", ['{"topic": "Q1"', '{"topic": 1}', '{"topic": [["Q1"]]}', '{"topic": {"id": "Q1"}}'])
def test_a_json_line_that_cannot_be_read_is_reported(line: str) -> None:
    assert find_mentions(f"Q1\n{line}\n".encode(), FIELDS) == (
        [Mention(1, "Q1")],
        [Unknown(line=2, text=line, reason=NO_IDS)],
    )


def test_a_published_file_is_one_array_whose_objects_hold_ids_with_their_labels() -> None:
    content = b"""[
{"question": "Who?", "entity": "Earth", "qid_topic_entity": {"Q1": "Universe", "Q2": "Earth"}},

{"topic_entity": {"m.0f8l9c": "France"}}, " Q3 ",
{"qid_topic_entity": {"UnknownQID": "nobody"}},
5]"""
    mentions, wrong = find_mentions(content, FIELDS)
    assert mentions == [Mention(2, "Q1"), Mention(2, "Q2"), Mention(4, "m.0f8l9c"), Mention(4, "Q3")]
    assert [(each.line, each.reason) for each in wrong] == [(5, NO_IDS), (6, NO_IDS)]
    assert [each.text for each in wrong] == ['{"qid_topic_entity": {"UnknownQID": "nobody"}}', "5"]


@pytest.mark.parametrize("content", [b'["Q1", "Q2"]', b'\xef\xbb\xbf[ "Q1",\n"Q2" ]', b'{"Q1": "one",\n"Q2": "two"}'])
def test_a_file_may_be_an_array_of_ids_or_an_object_of_ids_with_labels(content: bytes) -> None:
    mentions, wrong = find_mentions(content, FIELDS)
    assert ([each.text for each in mentions], wrong) == (["Q1", "Q2"], [])


def test_a_broken_array_is_an_error_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match="The file of entities, line 2, column 1: Expecting ',' delimiter"):
        find_mentions(b'["Q1"\n"Q2"]', FIELDS)


def test_a_json_line_without_the_fields_says_how_to_name_them() -> None:
    _, wrong = find_mentions(b'{"question": "' + b"who " * 50 + b'"}', FIELDS)
    text = '{"question": "' + ("who " * 50)[:66] + "…"
    reason = f"It has none of the fields {', '.join(FIELDS)}. Name the one that holds ids with --field."
    assert wrong == [Unknown(line=1, text=text, reason=reason)]


def test_bytes_that_are_no_text_spoil_their_line_alone() -> None:
    assert find_mentions(b"Q1\n\xff\xfe\nQ2", FIELDS) == ([Mention(1, "Q1"), Mention(2, "��"), Mention(3, "Q2")], [])


def test_a_file_comes_with_its_fingerprint(tmp_path: Path) -> None:
    file = tmp_path / "people.txt"
    file.write_bytes(b"Q1\n")
    fingerprint = SourceFile(name="people.txt", size=3, sha256=hashlib.sha256(b"Q1\n").hexdigest())
    assert read_entities(file) == (b"Q1\n", fingerprint)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match=r"nothing\.txt cannot be read: No such file or directory"):
        read_entities(tmp_path / "nothing.txt")
