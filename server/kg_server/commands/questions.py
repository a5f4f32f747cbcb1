"""What `ask` asks: the method, with the parameters of the settings and of the command line."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_server.commands.output import warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.running import Question

AgentName: TypeAlias = Literal["tools", "oda", "graph-counselor"]

NOBODY_REFLECTS: Final = (
    "nobody reflects here. Graph Counselor does (--agent graph-counselor, reflections above 0), "
    "and ODA as its paper has it (--agent oda --set manner=paper)."
)


def question_of(
    settings: Settings,
    text: str,
    agent: AgentName,
    entities: tuple[str, ...],
    flags: tuple[str, ...],
) -> "Question":
    """Return what is asked, with the parameters of the settings and, before them, those of the command line.

    Raises:
        InvalidRequest: A parameter is unknown, or has a wrong value.
    """
    from kg_agents.graph_counselor import CounselorSettings
    from kg_agents.oda import OdaSettings
    from kg_agents.parameters import InvalidParameter, read_parameters
    from kg_agents.running import Question
    from kg_agents.tools import ToolsSettings

    asked = Question(text, entities, agent, learn=settings.learn)
    written = (*settings.agent_parameters, *flags)
    try:
        if agent == "tools":
            return replace(asked, tools=read_parameters(ToolsSettings, written))
        if agent == "oda":
            return replace(asked, oda=read_parameters(OdaSettings, written))
        return replace(asked, counselor=read_parameters(CounselorSettings, written))
    except InvalidParameter as error:
        raise InvalidRequest(str(error)) from error


def see_that_it_reflects(settings: Settings, asked: "Question", option: str | None) -> None:
    """See to it that a model that is to reflect does, or say that it does not.

    Raises:
        InvalidRequest: An option names it, and it would not.
    """
    if settings.reflector_llm is None or asked.parameters.reflects:
        return
    if option is not None:
        raise InvalidRequest(f"--reflector {option!r}: {NOBODY_REFLECTS}")
    warn(f"The model of reflector_llm is not asked: {NOBODY_REFLECTS}")


def usual_method(settings: Settings, flags: tuple[str, ...]) -> Literal["tools", "oda"]:
    """Return the method where none is chosen: calls by the model, unless it makes none or ODA's parameters are set."""
    from kg_agents.parameters import InvalidParameter, read_parameters
    from kg_agents.tools import ToolsSettings

    if settings.llm is None or settings.llm_tools is False:
        return "oda"
    try:
        read_parameters(ToolsSettings, (*settings.agent_parameters, *flags))
    except InvalidParameter:
        return "oda"
    return "tools"


def by_oda(asked: "Question") -> "Question":
    """Return the same question for ODA, with the limits that it has."""
    tools, limits = asked.tools, asked.oda.limits
    limits = replace(limits, tokens=tools.limits.tokens, seconds=tools.limits.seconds)
    return replace(asked, agent="oda", oda=replace(asked.oda, closed_book=tools.closed_book, limits=limits))
