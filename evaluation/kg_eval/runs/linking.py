"""Which entities a question begins from: those that the file gives and the graph has, those that are found, or none."""

from dataclasses import dataclass
from typing import Final

from kg_agents.knowledge import KnowledgeGraph
from kg_agents.linking import link_by_model
from kg_eval.methods.method import Means
from kg_eval.questions import Edge, Gold, Record
from kg_eval.runs.plan import LinkingName

NO_TOPIC: Final = "The graph has none of the entities of this question."
NONE_GIVEN: Final = "The file gives no entity of this question, and the method begins from entities."

_SIMILAR_ANSWERS: Final = 200


@dataclass(frozen=True, slots=True)
class Linked:
    """The entities of a question as the graph calls them, and those that it does not have."""

    entities: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()


async def linked(record: Record, linking: LinkingName, means: Means) -> Linked:
    """Return the entities of a question.

    Raises:
        ToolError: The graph does not answer.
        RunEnded: The model fails.
    """
    if linking == "none":
        return Linked()
    if linking == "gold":
        return await _given(record, means.graph)
    found = await link_by_model(means.graph, record.question, means.talk())
    return Linked(tuple((each.entity.id, each.entity.label) for each in found.linked))


async def _given(record: Record, graph: KnowledgeGraph) -> Linked:
    """Return those entities of a record that the graph has: an id or a name that means one thing there."""
    if not record.topics:
        return Linked()
    named = await graph.identify([topic.id for topic in record.topics])
    meant = {each.text: each.meant[0] for each in named if len(each.meant) == 1}
    return Linked(
        tuple(
            dict.fromkeys((meant[topic.id].id, meant[topic.id].label) for topic in record.topics if topic.id in meant)
        ),
        tuple(topic.id for topic in record.topics if topic.id not in meant),
    )


async def golds_in(edge: Edge, golds: tuple[Gold, ...], graph: KnowledgeGraph) -> tuple[Gold, ...]:
    """Return right answers with their names, and with them what else the graph holds over the same relation.

    Raises:
        ToolError: The graph does not answer, or has no such relation.
    """
    found = await graph.neighbors(edge.topic, relation=edge.relation, direction=edge.direction, limit=_SIMILAR_ANSWERS)
    ends = [fact[0] if edge.direction == "in" else fact[2] for fact in found.triples]
    ids = dict.fromkeys((*(gold.id for gold in golds), *ends))
    return tuple(Gold(found.labels.nodes.get(end, end), end) for end in ids)
