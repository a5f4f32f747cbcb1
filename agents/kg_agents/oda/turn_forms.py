"""A turn of ODA as JSON, where the service can have the model keep to a form; its fields are the lines of a turn."""

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kg_agents.conclusions import Cited, Conclusion
from kg_agents.json_texts import json_object
from kg_agents.reply_texts import MAX_ANSWER, MAX_ANSWERS


class AnswerForm(BaseModel):
    """One answer, and the numbers of the facts that it rests on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    facts: list[int]


class TurnForm(BaseModel):
    """What a turn keeps, does and answers; a list or text that does not apply is empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thought: str
    keep: list[int] = Field(description="The numbers of the new facts to keep")
    action: str = Field(description="One action with its arguments, as GetNeighbor[c1, relation], or Answer")
    answers: list[AnswerForm] = Field(description="With Answer: each answer, and all facts that yield it")
    not_in_graph: str = Field(description="With Answer, where the graph does not hold it: what is missing")
    own_knowledge: list[str] = Field(description="What you know by yourself, or nothing")

    @property
    def conclusion(self) -> Conclusion:
        """What it concludes."""
        answers = tuple(
            Cited(text[:MAX_ANSWER], tuple(each.facts)) for each in self.answers if (text := each.text.strip())
        )
        missing = None if answers else self.not_in_graph.strip() or None
        own = tuple(text[:MAX_ANSWER] for each in self.own_knowledge if (text := each.strip()))
        return Conclusion(answers[:MAX_ANSWERS], own[:MAX_ANSWERS], missing)


_EMPTY = TurnForm(thought="", keep=[], action="", answers=[], not_in_graph="", own_knowledge=[])


def turn_form(reply: str) -> TurnForm | None:
    """Return the form that a reply fills in; None where it is another text, which is read as one."""
    found = json_object(reply)
    if found is None or "action" not in found:
        return None
    try:
        return TurnForm.model_validate(_EMPTY.model_dump() | found)
    except ValidationError:
        return None
