"""Every metric scores hand-made cases as its publication does, quirks and all, or as mended."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kg_agents.evidence.answers import GivenAnswer, Source
from kg_agents.llm import ScriptedLlm, Usage
from kg_eval.metrics.matching import contains_match, is_right, official_match, rouge_l, said, set_f1
from kg_eval.metrics.scores import (
    MEASURES,
    METRICS,
    OFFICIAL,
    Figure,
    JudgeVerdict,
    MetricName,
    ScoredOutcome,
    difference_of,
    judge,
    judged,
    macro_mean_of,
    mean_of,
    published_tog_em,
    read_verdict,
    score,
    summary_of,
)
from kg_eval.questions import Gold, Record

GOETHE = Gold("Johann Wolfgang von Goethe", "Q5879", ("J. W. Goethe", "Goethe"))


@pytest.mark.parametrize(
    ("reply", "golds", "verdict"),
    [
        ("The answer is {Weimar}.", ["weimar"], "right"),
        ("{W e i m a r} or {Jena}", ["Weimar"], "right"),
        ("{Jena} or {Weimar}", ["Weimar"], "wrong"),
        ("It is Weimar", ["Weimar"], "right"),
        ("{art}", ["Martin"], "right"),
        ("{Martin Luther}", ["Martin"], "right"),
        ("{}", ["Weimar"], "right"),
        ("", ["Weimar"], "right"),
        ("  ", ["Weimar"], "right"),
        ("}{Weimar", ["Jena"], "right"),
        ("{Jenax", ["Jena"], "right"),
        ("{Jena", ["Jenx"], "right"),
        ("{NULL}", ["Weimar"], "neither"),
        ("NULL", ["Weimar"], "wrong"),
        ("{ NULL}", ["Weimar"], "wrong"),
        ("{Weimar}", [], "wrong"),
        ("", [], "wrong"),
        ("{Weimar}", [""], "right"),
    ],
)
def test_the_published_exact_match_of_think_on_graph(reply: str, golds: Sequence[str], verdict: str) -> None:
    assert official_match(reply, golds) == verdict


@pytest.mark.parametrize(
    ("reply", "gold", "right"),
    [
        ("The answer is {Goethe}.", GOETHE, True),
        ("It was Johann Wolfgang von Goethe, of course", GOETHE, True),
        ("{von Goethe}", GOETHE, True),
        ("", GOETHE, False),
        ("{}", GOETHE, False),
        ("{NULL}", GOETHE, False),
        ("{art}", Gold("Martin"), False),
        ("{the Beatles}", Gold("Beatles"), True),
        ("{São Paulo}", Gold("Sao Paulo"), True),
        ("{yes}", Gold("true"), True),
        ("{It is not true}", Gold("true"), False),
        ("{5 March 1906}", Gold("1906-01-01T00:00:00Z"), True),
        ("{12}", Gold("+12"), True),
        ("{121}", Gold("12"), False),
    ],
)
def test_the_mended_exact_match(reply: str, gold: Gold, right: bool) -> None:
    assert contains_match(reply, [gold]) is right


@pytest.mark.parametrize(
    ("text", "gold", "right"),
    [
        ("goethe", GOETHE, True),
        ("Goethe (Q5879)", GOETHE, True),
        ("Goethe (Q1)", GOETHE, False),
        ("Q5879", GOETHE, True),
        ("Goethe House", GOETHE, False),
        ("The Salt-Mountain.", Gold("Salt-Mountain"), True),
        ("Čumgoe  GORN", Gold("Cumgoe Gorn"), True),
        ("1,000", Gold("1000.9"), True),
        ("1,000", Gold("1002"), False),
        ("about 4200", Gold("463" + "0" * 111), False),
        ("180.7 m", Gold("180.7"), True),
        ("12 km/h", Gold("12"), True),
        ("12.5.6", Gold("12.5"), False),
        ("0", Gold("0"), True),
        ("+0", Gold("0"), True),
        ("1961", Gold("1960"), False),
        ("1960-05-01", Gold("1960"), True),
        ("1960", Gold("1960-05-01"), False),
        ("May 1960", Gold("1960-05-01"), False),
        ("May 1st, 1960", Gold("1960-05-01"), True),
        ("1 May 1960", Gold("+1960-05-01T00:00:00Z"), True),
        ("2 May 1960", Gold("+1960-05-01T00:00:00Z"), False),
        ("1977", Gold("+1977-01-01T00:00:00Z"), True),
        ("3 April 1977", Gold("+1977-01-01T00:00:00Z"), True),
        ("1977-01-01", Gold("1977-01-01"), True),
        ("1977", Gold("1977-01-01"), False),
        ("7000 BC", Gold("-7000-01-01T00:00:00Z"), True),
        ("44-03-15 BCE", Gold("44 BC"), True),
        ("44 BC", Gold("44-03-15 BCE"), False),
        ("43 BCE", Gold("44 BCE"), False),
        ("yes", Gold("true"), True),
        ("No.", Gold("true"), False),
        ("", Gold("true"), False),
        ("31 Foo 1977", Gold("1977"), False),
        ("Anything (Q5)", Gold("Anything"), True),
    ],
)
def test_an_answer_is_right_by_id_name_number_date_or_truth(text: str, gold: Gold, right: bool) -> None:
    assert is_right(text, gold) is right


def test_what_only_says_that_there_is_no_answer_is_none_and_each_counts_once() -> None:
    assert said(["Unknown", "The Mill", "mill", "I don't know.", "", "Mill (w:E1)", "mill (w:E1)"]) == (
        "The Mill",
        "Mill (w:E1)",
    )


@pytest.mark.parametrize(
    ("texts", "golds", "f1"),
    [
        (["a", "b"], ["a", "b"], 1.0),
        (["a"], ["a", "b"], 2 / 3),
        (["a", "b", "c"], ["a", "b"], 0.8),
        (["c"], ["a"], 0.0),
        ([], ["a"], 0.0),
        (["a"], [], 0.0),
        ([], [], 1.0),
        (["100.4"], ["100"], 1.0),
        (["101"], ["100"], 0.0),
    ],
)
def test_sets_are_compared_by_f1(texts: Sequence[str], golds: Sequence[str], f1: float) -> None:
    assert set_f1(texts, [*map(Gold, golds)]) == pytest.approx(f1)


ROUGE_PAIRS = [
    ("the cat sat on the mat", "the cat was on a mat"),
    ("Yang Yang, Chris Pugh", "Chris Pugh, Yang Yang, A. B."),
    ("", "a"),
    ("a", ""),
    ("!!!", "???"),
    ("Études 1901-01-01", "etudes 1901"),
    ("A_b c", "a b_c"),
]


@pytest.mark.parametrize("metric", ["tog-em", "hits@1", "f1", "set"])
@pytest.mark.parametrize(
    ("answers", "golds"),
    [
        ([("München", ("Q1726",))], [Gold("Munich", "Q1726")]),
        ([("Q1726", ())], [Gold("Munich", "Q1726")]),
        ([("14 March 1879, May 5, 1900 and four", ())], [Gold("1879-03-14"), Gold("1900-05-05"), Gold("4")]),
        ([("Jena; Salt, Stone and Sons", ())], [Gold("Salt, Stone and Sons"), Gold("Jena")]),
        ([("No", ())], [Gold("false")]),
    ],
)
def test_an_answer_in_other_words_is_right(
    answers: Sequence[tuple[str, tuple[str, ...]]], golds: Sequence[Gold], metric: MetricName
) -> None:
    said = tuple(GivenAnswer(text, "graph", entities=entities) for text, entities in answers)
    record = Record("1", "?", tuple(golds))
    found = ScoredOutcome(record, ", ".join(each.text for each in said), said)
    wrong = replace(found, record=replace(record, golds=(Gold("-4"), Gold("Weimar", "Q3955"))))
    assert (score(found, metric), score(wrong, metric)) == (1.0, 0.0)


def test_rouge_l_counts_a_date_and_a_list_in_other_words_as_those_of_the_right_answer() -> None:
    record = Record("1", "?", (Gold("1901-01-01"), Gold("Burns, second degree")))
    said = "January 1, 1901 and Burns, second degree"
    assert score(ScoredOutcome(record, said, (GivenAnswer(said, "model"),)), "rouge-l") == 1.0
    assert score(ScoredOutcome(record, "1902", (GivenAnswer("1902", "model"),)), "rouge-l") == 0.0


def test_rouge_l_is_that_of_the_library() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=False)
    dice = random.Random(7)  # noqa: S311 - the words are no secret
    words = ["the", "a", "cat", "mat", "sat", "on", "of", "1901", "Yang", "É", "x-y"]
    made = [
        (" ".join(dice.choices(words, k=dice.randrange(12))), " ".join(dice.choices(words, k=9))) for _ in range(60)
    ]
    for prediction, gold in [*ROUGE_PAIRS, *made]:
        expected = scorer.score(gold, prediction)["rougeL"].fmeasure
        assert rouge_l(prediction, gold) == pytest.approx(expected), (prediction, gold)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Yes", "yes"),
        (" **No.** ", "no"),
        ("<think>Yes? No.</think>yes", "yes"),
        ("Yes, it is.", "unreadable"),
        ("[yes]", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_of_a_judge_only_yes_or_no_counts(reply: str, verdict: JudgeVerdict) -> None:
    assert read_verdict(reply) == verdict


def outcome(
    id_: str,
    *texts: str,
    gold: str = "a",
    source: Source = "graph",
    group: str = "",
    answerable: bool = True,
    skipped: str = "",
) -> ScoredOutcome:
    record = Record(id_, f"question {id_}", (Gold(gold),) if answerable else (), group=group, answerable=answerable)
    answers = tuple(GivenAnswer(text, source, (("s", "p", text),) if source == "graph" else ()) for text in texts)
    return ScoredOutcome(
        record, ", ".join(texts), answers, usage=Usage(100, 10, 0.5, 2), tool_calls=3, seconds=1.5, skipped=skipped
    )


@pytest.mark.parametrize(
    ("prediction", "right"),
    [
        ("Weimar", 1.0),
        ("So it is {weimar}.", 1.0),
        ("Weimar, Jena", 1.0),
        ("{Weimar, Jena}", 1.0),
        ("Weimar is one", 0.0),
        ("{Weimar, Erfurt}", 0.0),
        ("", 0.0),
    ],
)
def test_exact_is_the_whole_text_or_what_stands_in_braces(prediction: str, right: float) -> None:
    record = Record("1", "Which towns?", (Gold("Weimar"), Gold("Jena")))
    assert score(ScoredOutcome(record, prediction, status="answered"), "exact") == right


async def test_a_judge_sees_question_prediction_and_what_is_right() -> None:
    llm = ScriptedLlm(["Yes", "Perhaps"])
    assert [await judge(outcome("1", "A"), llm), await judge(outcome("2", "b"), llm)] == ["yes", "unreadable"]
    assert [text in llm.asked[0].prompt for text in ("question 1", "A", "a")] == [True, True, True]
    assert await judge(outcome("3"), llm) == "no"
    assert await judge(outcome("4", answerable=False), llm) == "yes"
    assert await judge(outcome("5", "x", answerable=False), llm) == "no"
    assert judged({"1": "yes", "2": "unreadable", "3": "no"}) == {"1": 1.0, "2": 0.0, "3": 0.0}


def test_a_question_that_the_graph_cannot_answer_is_right_when_nothing_is_said() -> None:
    silent, loud = outcome("1", answerable=False), outcome("2", "b", answerable=False)
    assert [(score(silent, metric), score(loud, metric)) for metric in METRICS] == [(1.0, 0.0)] * len(METRICS)
    unsure = outcome("3", "unknown", answerable=False)
    assert score(unsure, "set") == 1.0
    without_gold = ScoredOutcome(Record("4", "q", ()), "b", (GivenAnswer("b", "graph"),))
    assert score(without_gold, "set") is None


def test_the_published_script_counts_every_record_and_takes_the_first_gold_of_a_repeated_question() -> None:
    first = ScoredOutcome(Record("1", "Q?", (Gold("Weimar"),)), "{Weimar}")
    again = ScoredOutcome(Record("2", "Q?", (Gold("Jena"),)), "{Jena}")
    named = ScoredOutcome(Record("3", "Site?", (Gold("https://a.example"),), published=("N",)), "{n}")
    silent = ScoredOutcome(Record("4", "R?", (Gold("Jena"),)), "")
    skipped = ScoredOutcome(Record("5", "S?", (Gold("Jena"),)), "", skipped="no topic")
    aliased = ScoredOutcome(Record("6", "T?", (Gold("Jena", aliases=("City",)),), published=("Jena",)), "{City}")
    found = published_tog_em([first, again, named, silent, skipped, aliased])
    assert found == {"1": 1.0, "2": 0.0, "3": 1.0, "4": 1.0, "5": 0.0, "6": 0.0}


def test_an_interval_holds_the_mean_and_comes_out_the_same_again() -> None:
    values = [1.0] * 60 + [0.0] * 40
    figure = mean_of(values, seed=1)
    assert figure == mean_of(values, seed=1)
    assert figure is not None
    half = 1.96 * (0.6 * 0.4 / 100) ** 0.5
    assert (figure.value, figure.count) == (0.6, 100)
    assert [figure.low, figure.high] == pytest.approx([0.6 - half, 0.6 + half], abs=0.03)
    assert mean_of([]) is None
    assert mean_of([0.25]) == Figure(0.25, 0.25, 0.25, 1)


def test_all_right_of_a_few_is_no_certainty() -> None:
    right, wrong = mean_of([1.0] * 20), mean_of([0.0] * 20)
    assert right is not None
    assert wrong is not None
    # Wilson's interval of 20 of 20, as statistics packages give it.
    assert [right.low, right.high] == pytest.approx([0.8389, 1.0], abs=1e-4)
    assert [wrong.low, wrong.high] == pytest.approx([0.0, 0.1611], abs=1e-4)


def test_a_paired_difference_is_surer_than_two_means() -> None:
    dice = np.random.default_rng(3)
    theirs = {str(n): float(value) for n, value in enumerate(dice.random(200))}
    ours = {id_: value + 0.1 for id_, value in theirs.items()}
    difference = difference_of({**ours, "alone": 1.0}, theirs)
    assert difference is not None
    assert [difference.count, difference.value, difference.low, difference.high] == pytest.approx([200, 0.1, 0.1, 0.1])


def test_a_macro_mean_counts_each_group_alike() -> None:
    macro = macro_mean_of({"large": [1.0] * 90, "small": [0.0] * 10, "none": []})
    assert macro == Figure(0.5, 0.5, 0.5, 100)


def test_a_summary_tells_accuracy_and_everything_beside_it() -> None:
    outcomes = [
        outcome("1", "a", group="x"),
        outcome("2", "b", "a", group="x"),
        outcome("3", "a", source="model", group="y"),
        outcome("4", answerable=False, group="y"),
        outcome("5", group="y", skipped="no topic"),
    ]
    verdicts: dict[str, JudgeVerdict] = {"1": "yes", "2": "unreadable", "3": "yes", "4": "yes"}
    summary = summary_of(outcomes, {"j": verdicts}, official=True)
    assert (summary.asked, summary.skipped, summary.cost) == (4, 1, 2.5)
    told = {name: (figure.value, figure.count) for name, figure in summary.metrics.items()}
    assert told == {
        "tog-em": (1.0, 4),
        "hits@1": (0.75, 4),
        "f1": (pytest.approx((1 + 2 / 3 + 1 + 1) / 4), 4),
        "set": (0.75, 4),
        "exact": (0.75, 4),
        "rouge-l": (pytest.approx((1 + 2 / 3 + 1 + 1) / 4), 4),
        "judge (j)": (0.75, 4),
        OFFICIAL: (0.6, 5),
    }
    by_group = {name: figure.value for name, figure in summary.groups["hits@1"].items()}
    assert by_group == {"x": 0.5, "y": 1.0, "macro": 0.75}
    measured = {name: figure.value for name, figure in summary.measures.items()}
    assert measured == {
        "answered from the graph": 0.5,
        "answered by computing": 0.0,
        "answered from the model": 0.25,
        "with evidence": 0.5,
        "abstained": 0.25,
        "right on unanswerable": 1.0,
        "model calls": 2.0,
        "tool calls": 3.0,
        "prompt tokens": 100.0,
        "reply tokens": 10.0,
        "unreadable replies": 0.0,
        "seconds": 1.5,
        "cost": 0.5,
    }
    assert set(measured) == set(MEASURES)
