"""Language models for the length of a command."""

from typing import TYPE_CHECKING

from kg_boundary.secrets import Redactor
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.llm.openai_llm import OpenAiLlm


def model_of(settings: Settings, name: str | None, redactor: Redactor) -> "OpenAiLlm | None":
    """Return the model of a name where the settings say that it is; None without a name."""
    if name is None:
        return None
    from kg_agents.llm.openai_llm import OpenAiLlm, Prices

    return OpenAiLlm(
        name,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        timeout_s=settings.llm_timeout_s,
        context_tokens=settings.llm_context_tokens,
        prices=Prices(settings.llm_prompt_price, settings.llm_reply_price),
        redactor=redactor,
    )
