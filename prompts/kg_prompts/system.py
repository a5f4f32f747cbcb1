"""What a model is told before the prompts of an agent."""

from dataclasses import dataclass
from typing import ClassVar

from kg_prompts.rendering import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrompt(Prompt):
    """What answers rest on, and in which form replies are given."""

    template: ClassVar[str] = "shared/system.md"
