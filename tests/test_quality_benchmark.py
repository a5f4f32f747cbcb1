from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.quality_names import TARGETS, choose_names, find_names
from benchmarks.quality_questions import Outcome, Quality, Question, RandomScorer, ask_all, read_questions

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import LocalStore
from kg_server.observation.scoring import PaperScorer
from observers import WordModel
from small_graphs import store_of

WD, WDT = "http://www.wikidata.org/entity", "http://www.wikidata.org/prop/direct"
LABEL, ALIAS = "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#altLabel"
ROWS = [
    (f"{WD}/Q1", f"{WDT}/P1", f"<{WD}/Q2>"),
    (f"{WD}/Q1", f"{WDT}/P2", f"<{WD}/Q3>"),
    (f"{WD}/Q4", f"{WDT}/P2", f"<{WD}/Q1>"),
    (f"{WD}/Q1", LABEL, '"The Old Red House"'),
    (f"{WD}/Q1", ALIAS, '"Redhouse"'),
    (f"{WD}/Q2", LABEL, '"Oslo"'),
    (f"{WDT}/P1", LABEL, '"town"'),
    (f"{WDT}/P2", LABEL, '"owner"'),
]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return store_of(tmp_path, "".join(f"<{head}> <{relation}> {tail} .\n" for head, relation, tail in ROWS))


def told_to(calls: list[int]) -> Callable[[], None]:
    return lambda: calls.append(1)


def question(text: str, relation: str, direction: str) -> Question:
    return Question(question=text, topic="Q1", relation=relation, direction=direction, answer="Q9")


async def test_a_question_is_answered_by_any_edge_over_its_relation_in_its_direction(store: LocalStore) -> None:
    calls: list[int] = []
    questions = [
        question("which town is the old red house in", "P1", "out"),
        question("which town", "P2", "in"),
        question("which town", "P1", "in"),
    ]
    scorer = PaperScorer(WordModel())
    quality = await ask_all(LocalAdapter(store), scorer, questions, hops=1, told=told_to(calls))
    assert [(each.place, each.answered) for each in quality.outcomes] == [(1, True), (3, True), (None, False)]
    assert all(each.tokens > 20 for each in quality.outcomes)
    assert len(calls) == 3


def test_the_figures_are_shares_of_all_questions() -> None:
    quality = Quality(
        (Outcome(1, True, 100), Outcome(4, True, 200), Outcome(20, False, 300), Outcome(None, False, 400))
    )
    assert quality.figures() == {
        "MRR": pytest.approx((1 + 1 / 4 + 1 / 20) / 4),
        "first": 0.25,
        "first 5": 0.5,
        "first 10": 0.5,
        "in the answer": 0.5,
        "median tokens": 250,
    }


async def test_dice_fall_the_same_way_in_every_run(store: LocalStore) -> None:
    asked = [question("which town", "P1", "out")] * 5
    runs = [await ask_all(LocalAdapter(store), RandomScorer(), asked, hops=2, told=told_to([])) for _ in range(2)]
    assert runs[0] == runs[1]


async def test_names_are_found_in_each_way_that_people_write_them(store: LocalStore) -> None:
    adapter = LocalAdapter(store)
    names = choose_names(store.index, adapter, 5)
    assert list(names) == list(TARGETS)
    assert [each.text for each in names["alias"]] == ["Redhouse"]
    assert {each.text for each in names["exact label"]} == {"The Old Red House", "Oslo"}
    (missing,) = names["a word missing"]
    assert len(missing.text.split()) == 3
    (reordered,) = names["words in another order"]
    assert sorted(reordered.text.split()) == ["House", "Old", "Red", "The"]
    assert reordered.text != "The Old Red House"
    found = await find_names(adapter, names["exact label"], told_to([]))
    assert (found.first, found.first_five) == (1.0, 1.0)


def test_questions_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    asked = question("which town", "P1", "out")
    file.write_text(f"{asked.model_dump_json()}\n" * 2, encoding="utf-8")
    assert read_questions(file) == [asked, asked]
