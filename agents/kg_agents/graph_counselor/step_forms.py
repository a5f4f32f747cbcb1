"""A step of Graph Counselor as JSON, where the service can have the model keep to a form."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_agents.dialogue import Unreadable
from kg_agents.graph_counselor.actions import MAX_ANSWER, NOT_IN_GRAPH, Finish
from kg_agents.json_texts import json_object


class StepForm(BaseModel):
    """A plan, a thought, and an expression or the answers; a list or text that does not apply is empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    plan: str
    thought: str
    expression: str = Field(description="One expression that gets what is needed next; empty at the end")
    answers: list[str] = Field(description="At the end: the answers, one by one")
    not_in_graph: str = Field(description="At the end, where the graph does not hold the answer: what is missing")

    @property
    def finish(self) -> Finish | Unreadable:
        """The end that it describes, or why it is none."""
        answers = tuple(dict.fromkeys(text for each in self.answers if (text := " ".join(each.split()))))
        missing = " ".join(self.not_in_graph.split())[:MAX_ANSWER]
        if answers:
            answer = ", ".join(answers)
            return (
                Finish(answer, None, answers) if len(answer) <= MAX_ANSWER else Unreadable("The answers are too long.")
            )
        if missing:
            return Finish(f"{NOT_IN_GRAPH}: {missing}", missing)
        return Unreadable("It holds neither an expression nor an answer. Fill in one of the fields.")


_EMPTY = StepForm(plan="", thought="", expression="", answers=[], not_in_graph="")


def step_form(reply: str) -> StepForm | None:
    """Return the form that a reply fills in; None where it is another text, which is read as one."""
    found = json_object(reply)
    if found is None or not found.keys() & {"expression", "answers", "not_in_graph"}:
        return None
    try:
        return StepForm.model_validate(_EMPTY.model_dump() | found)
    except ValidationError:
        return None
