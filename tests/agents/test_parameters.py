"""Parameters of agents as people write them."""

from pathlib import Path

import pytest

from kg_agents.llm.dialogue import Limits
from kg_agents.papers.graph_counselor import CounselorSettings
from kg_agents.papers.oda import OdaSettings
from kg_agents.parameters import InvalidParameter, read_parameters


def test_every_parameter_and_limit_can_be_written_and_the_last_counts() -> None:
    assert read_parameters(OdaSettings, []) == OdaSettings()
    written = ["hops=1", "hops = 2", "top-percent=5.5", "closed_book=never", "ablation=generated-facts", "tokens=50000"]
    assert read_parameters(OdaSettings, written) == OdaSettings(
        hops=2, top_percent=5.5, closed_book="never", ablation="generated-facts", limits=Limits(tokens=50_000)
    )
    counselor = read_parameters(CounselorSettings, ["reflections=0", "seconds=5", "ablation=no-planning"])
    limits = Limits(tokens=600_000, seconds=5.0)
    assert counselor == CounselorSettings(reflections=0, ablation="no-planning", limits=limits)


def test_in_the_manner_of_the_paper_graph_counselor_has_the_time_that_the_user_gives() -> None:
    written = (["manner=paper"], ["manner=paper", "tokens=5"], ["manner=paper", "seconds=7000"], ["tokens=5"])
    assert [read_parameters(CounselorSettings, each).limits.seconds for each in written] == [None, None, 7000.0, 900.0]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("hop=2", r"There is no parameter 'hop'\. Did you mean hops\?"),
        ("limits=2", r"There is no parameter 'limits'\."),
        ("zzz=2", r"There are iterations, temperature, .*, tokens, seconds, prompt_tokens\."),
        ("hops", r"The parameter hops has no value\. Write name=value, as in hops=2\."),
        ("sk-5f3a9c", r"^A parameter has no value\. Write"),
        ("hops=many", r"The parameter hops cannot be used: it must be a whole number"),
        ("tokens=", r"The parameter tokens cannot be used"),
        ("ablation=no-planning", r"The parameter ablation cannot be used: .*'no-observation'"),
    ],
)
def test_what_is_no_parameter_is_refused_with_what_is(written: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        read_parameters(OdaSettings, [written])


def test_the_manner_is_a_parameter_and_an_ablation_brings_that_of_the_paper() -> None:
    assert read_parameters(OdaSettings, []).manner == "sextant"
    assert read_parameters(OdaSettings, ["manner=paper"]).manner == "paper"
    assert read_parameters(OdaSettings, ["ablation=no-observation"]).manner == "paper"
    assert read_parameters(CounselorSettings, ["ablation=no-planning"]).manner == "paper"
    assert read_parameters(
        CounselorSettings, ["manner=paper", "functions=all", "learnt=latest", "earlier_answer=false"]
    ) == (CounselorSettings(manner="paper", functions="all", learnt="latest", earlier_answer=False))
    with pytest.raises(InvalidParameter, match=r"manner cannot be used: it must be 'paper' or 'sextant'"):
        read_parameters(OdaSettings, ["manner=papers"])


def test_files_of_ones_own_are_parameters_and_have_to_be_there(tmp_path: Path) -> None:
    definition = tmp_path / "definition.md"
    definition.write_text("people and towns", encoding="utf-8")
    written = [f"definition_file={definition}", f"examples_folder={tmp_path}"]
    chosen = read_parameters(CounselorSettings, written)
    assert (chosen.definition_file, chosen.examples_folder) == (str(definition), str(tmp_path))
    with pytest.raises(InvalidParameter, match=r"definition_file cannot be used: .*there is no such file"):
        read_parameters(CounselorSettings, ["definition_file=nowhere"])
    with pytest.raises(InvalidParameter, match=r"examples_folder cannot be used: .*there is no such folder"):
        read_parameters(OdaSettings, ["examples_folder=nowhere"])
