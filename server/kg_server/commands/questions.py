"""Questions as ask and eval put them: parameters, similarity and solved questions."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from kg_adapters.errors import InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_server.commands.output import warn
from kg_server.memory.checking import check
from kg_server.memory.experience import ExperienceStore, Solved
from kg_server.memory.store import MemoryLimits
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.embedding import Embedder
    from kg_agents.experience import Learned
    from kg_agents.running import Question

AT_ONCE: Final = 15
"""How many triples are compared with the graph at once."""

MOST_FACTS: Final = 10 * AT_ONCE
"""A run that rests on more triples is not kept: they would take too long to compare."""


async def learn(
    graph: KGAdapter, store: ExperienceStore, solved: Solved, facts: Sequence[tuple[str, str, str]]
) -> bool:
    """Keep a question whose evidence the graph holds, and say whether it was kept.

    Args:
        graph: The graph.
        store: Where it is kept.
        solved: The question; its evidence is written as results show it.
        facts: The triples that every answer rests on, by ids.
    """
    if not solved.answers or not 0 < len(facts) <= MOST_FACTS:
        return False
    for first in range(0, len(facts), AT_ONCE):
        batch = facts[first : first + AT_ONCE]
        checked = await check(graph, batch, limits=MemoryLimits(), allow_unverified=False)
        if checked.refused:
            return False
    await store.keep(graph.name, solved)
    return True


async def keep_solved(settings: Settings, graph: KGAdapter, learned: "Learned | None") -> bool:
    """Keep a question that a run has solved, where learning is on and the graph holds its evidence; say whether.

    Args:
        settings: Whether it is on, and where it is kept.
        graph: What the evidence is compared with.
        learned: What there is to learn; None where that is nothing.
    """
    if learned is None or not settings.learn:
        return False
    from kg_server.app import experience_of
    from kg_server.memory.experience import Solved

    store = experience_of(settings)
    assert store is not None  # noqa: S101 - learning is on
    solved = Solved(question=learned.question, calls=learned.calls, answers=learned.answers, evidence=learned.evidence)
    return await learn(graph, store, solved, learned.plain_facts)


LONGEST_S: Final = 600.0
"""How long one call may take where every triple is embedded: the most that settings allow."""


async def likeness(settings: Settings, question: str, texts: Sequence[str]) -> Sequence[float]:
    """Return the cosine of a question and each text, by the embedder that the settings name.

    Raises:
        ModelUnavailable: It does not answer.
    """
    from kg_adapters.embedding.protocol import products

    async with _embedder(settings) as embedder:
        vectors = await embedder.embed([question, *texts])
    cosines: list[float] = products(vectors[1:], vectors[0]).tolist()
    return cosines


def exact(settings: Settings) -> Settings:
    """Return settings whose `observe` scores as the paper of ODA does, with the time that this takes."""
    return settings.model_copy(update={"observe_score": "paper", "timeout_s": LONGEST_S})


async def score_of(settings: Settings) -> dict[str, str]:
    """Return what a run records of its observations: the score and the fingerprint of the embedder.

    Raises:
        InvalidRequest: The score is the paper's, and no model runs that embeds.
    """
    from kg_adapters.embedding import LexicalEmbedder

    async with _embedder(settings) as embedder:
        if settings.observe_score == "paper" and isinstance(embedder, LexicalEmbedder):
            raise InvalidRequest(
                "The paper's manner of ODA scores observations with an embedding model, and none runs here. Set "
                "embedder to minilm or openai (KG_SEXTANT_EMBEDDER); kg-sextant doctor shows whether it runs."
            )
        return {"score": settings.observe_score, "embedder": embedder.fingerprint}


@asynccontextmanager
async def _embedder(settings: Settings) -> "AsyncGenerator[Embedder]":
    from kg_adapters.embedding import LexicalEmbedder, OpenAiEmbedder
    from kg_server.embedders import embedder_of

    embedder = LexicalEmbedder() if settings.embedder == "lexical" else (await embedder_of(settings)).embedder
    try:
        yield embedder
    finally:
        if isinstance(embedder, OpenAiEmbedder):
            await embedder.aclose()


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
    from kg_agents.papers.graph_counselor import CounselorSettings
    from kg_agents.papers.oda import OdaSettings
    from kg_agents.parameters import InvalidParameter, ToolsSettings, read_parameters
    from kg_agents.running import Question

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


def as_published(settings: Settings, parameters: object) -> Settings:
    """Return the settings of the server for an agent: in the manner of Graph Counselor's paper, Retrieve's too."""
    from kg_agents.papers.graph_counselor import CounselorSettings

    if isinstance(parameters, CounselorSettings) and parameters.manner == "paper":
        return settings.model_copy(update={"compose_retrieve": "nearest"})
    return settings


def usual_method(settings: Settings, flags: tuple[str, ...]) -> Literal["tools", "oda"]:
    """Return the method where none is chosen: calls by the model, unless it makes none or ODA's parameters are set."""
    from kg_agents.parameters import InvalidParameter, ToolsSettings, read_parameters

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
