"""The system prompt, and the prompts for a model that calls the tools itself."""

from dataclasses import dataclass
from typing import ClassVar

from kg_prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsTask(Prompt):
    """What it is to do, as the system prompt.

    Args:
        instructions: What the server says of its tools, in its own words.
    """

    template: ClassVar[str] = "tools/task.md"
    instructions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsQuestion(Prompt):
    """The question, as the first message of the user.

    Args:
        question: The question.
        entities: The ids of what it is about, where they are known; may be empty.
    """

    template: ClassVar[str] = "tools/question.md"
    question: str
    entities: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedBefore(Prompt):
    """Solved questions like the one that is asked, as examples.

    Args:
        solved: The questions with their calls, answers and evidence.
    """

    template: ClassVar[str] = "shared/solved.md"
    solved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsToTry(Prompt):
    """Questions that a graph may answer, one on a line.

    Args:
        definition: The graph's definition, as Schema shows it.
        number: How many.
    """

    template: ClassVar[str] = "tools/questions.md"
    definition: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrompt(Prompt):
    """What answers rest on, and in which form replies are given."""

    template: ClassVar[str] = "shared/system.md"
