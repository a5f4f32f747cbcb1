"""Prompts as data: a template each, and a value that holds what goes into it."""

from kg_prompts.examples import examples_for
from kg_prompts.rendering import Prompt, render

__all__ = ["Prompt", "examples_for", "render"]
