"""What commands keep of questions that agents have solved."""

from typing import TYPE_CHECKING

from kg_adapters.protocol import KGAdapter
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_agents.experience import Learned


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
    from kg_server.experience.learning import learn
    from kg_server.experience.store import Solved

    store = experience_of(settings)
    assert store is not None  # noqa: S101 - learning is on
    solved = Solved(question=learned.question, calls=learned.calls, answers=learned.answers, evidence=learned.evidence)
    return await learn(graph, store, solved, learned.plain_facts)
