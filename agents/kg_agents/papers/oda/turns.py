"""ODA in turns: each keeps facts by number and takes the next action in one reply."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from kg_agents.evidence.ledger import Cited
from kg_agents.evidence.values import Found, IdLabels, ObservedFacts, Shown, Triple, plain_value, valued
from kg_agents.llm.dialogue import FailedReply
from kg_agents.llm.texts import without_hints
from kg_agents.papers.oda.facts import Bundle, FactNames, bundled
from kg_agents.papers.oda.paper import look_ahead
from kg_agents.papers.oda.replies import Action, Turn, TurnForm, read_turn
from kg_agents.papers.oda.run import Exploration, OdaMeans, OdaRun, fitted
from kg_agents.replies import read_conclusion
from kg_agents.tools.client import ToolError, ToolRefusal
from kg_prompts.oda import AnswerPrompt, TurnPrompt

MAX_OUTCOME: Final = 240
"""How much of what an action did not find is told."""

_TOLD_APART: Final = 2
"""Of how many entities relations without a fact are named one by one."""

_SAMPLE: Final = 7
"""How many facts of one relation are shown of a hub."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The rounds of ODA, one reply each."""

    means: OdaMeans

    async def explore(self, run: OdaRun) -> str:
        """Observe and act, turn by turn; return why the turns ended, in a word.

        Where nothing is left to look at, it answers.

        Raises:
            RunEnded: A limit is reached.
        """
        chosen = self.means.settings
        seen = Exploration(run, chosen.entities, dict.fromkeys(run.entities))
        for left in reversed(range(chosen.iterations)):
            await self._look(seen)
            if not seen.open and not seen.fresh:
                return "answered"
            ending = await self._take(seen, last=not left)
            if ending or run.failures >= chosen.failures:
                return ending or "graph"
        return "iterations"

    async def conclude(self, run: OdaRun) -> None:
        """Have the model answer from the memory; its answers name the facts that they rest on.

        Raises:
            FailedReply: It gave no answer.
        """
        memory = (f"{number}. {run.labels.triple(fact)}" for number, fact in enumerate(run.facts, start=1))
        prompt = AnswerPrompt(
            question=run.question,
            memory="\n".join((*memory, *run.beliefs)),
            own=self.means.own,
            examples=self.means.examples(AnswerPrompt),
        )
        found = await run.talk.ask(self.means.settings.task("answer", fitted(prompt)), read_conclusion)
        await run.conclude(found, [_in_memory(run, each) for each in found.answers])

    async def _look(self, seen: Exploration) -> None:
        """Show what lies around the entities that were not observed yet."""
        run = seen.run
        run.entities = tuple(each for each in seen.open if each not in seen.observed)[: self.means.settings.entities]
        if not run.entities:
            return
        seen.observed.update(run.entities)
        observation = await look_ahead(self.means, run)
        seen.lines.hold(fact for fact in observation.shown.facts if fact not in observation.triples)
        seen.fresh += seen.lines.lines(seen.lines.described(_bundles(observation)), run.ledger.facts)
        seen.fresh += _counted(observation, seen.lines.names)

    async def _take(self, seen: Exploration, *, last: bool) -> str:
        """Have the model keep facts and act, and act; return how the run ends if it ends here."""
        run, turn = seen.run, None
        try:
            turn = await self._ask(seen, last=last)
            kept = await self._remember(seen, turn)
            if turn.action.name == "Answer":
                await self._conclude(seen, turn)
                run.note(turn.action, "", kept)
                return "answered"
            if last:
                run.note(turn.action, "not done: the turns are over", kept)
                return "iterations"
            found = await self._act(seen, turn)
            run.note(turn.action, found, kept)
            run.history[str(turn.action)] = f"{_named(turn.action, seen)}: {found}"
        except FailedReply as failure:
            run.fail(str(failure))
            return "unreadable" if run.failures >= self.means.settings.failures else ""
        except ToolError as refusal:
            action = turn.action if turn else None
            run.fail(str(refusal), action)
            if action is not None:
                run.history[str(action)] = f"{_named(action, seen)}{run.history[str(action)]}"
        return ""

    async def _conclude(self, seen: Exploration, turn: Turn) -> None:
        """Take over the answers of a turn, if it gives any, with the facts that they rest on."""
        if turn.conclusion is not None:
            await seen.run.conclude(turn.conclusion, turn.conclusion.answers)
            seen.run.parts = seen.lines.parts

    async def _ask(self, seen: Exploration, *, last: bool) -> Turn:
        run, candidates, offer = seen.run, seen.candidate_lines, seen.offer
        prompt = TurnPrompt(
            question=run.question,
            memory="\n".join(seen.memory_lines),
            facts="\n".join(seen.fresh),
            candidates="\n".join(candidates),
            history="\n".join(run.history.values()),
            paths=len(candidates) > 1,
            own=self.means.own,
            last=last,
            examples=self.means.examples(TurnPrompt),
        )
        task = self.means.settings.task("turn", fitted(prompt, "facts"), TurnForm)
        turn = await run.talk.ask(task, partial(read_turn, offer=offer))
        seen.fresh = []
        return turn

    async def _remember(self, seen: Exploration, turn: Turn) -> tuple[Triple, ...]:
        """Keep what a turn keeps, and what its answers rest on; an answer stands where the memory refuses that.

        Raises:
            ToolError: The graph refused all of it.
        """
        cited = (number for each in turn.conclusion.answers for number in each.numbers) if turn.conclusion else ()
        kept = seen.keep((*turn.kept, *cited))
        run = seen.run
        for first in range(0, len(kept), self.means.settings.kept):
            batch = [
                (head, relation, plain_value(tail))
                for head, relation, tail in kept[first : first + self.means.settings.kept]
            ]
            try:
                appended = await run.graph.remember(run.memory, batch)
            except ToolRefusal:
                # For instance, the memory is full. What an answer rests on is compared with the graph in the end.
                if turn.conclusion is None:
                    raise
                break
            run.memory = appended.memory
        return kept

    async def _act(self, seen: Exploration, turn: Turn) -> str:
        """Do what a turn asks for, and return what came of it, in words.

        Raises:
            ToolError: The graph refused.
        """
        action = turn.action
        match action.name:
            case "Look":
                return await self._compare(seen, action.about)
            case "Search":
                return await self._search(seen, action.about)
            case "GetPath":
                return await self._paths(seen, action)
            case _:
                return await self._neighbors(seen, action)

    async def _around(self, seen: Exploration, entity: str, relation: str) -> tuple[Found, tuple[Triple, ...]]:
        """Return what lies around an entity, over one relation where one is given, and the facts in it."""
        run, chosen = seen.run, self.means.settings
        found = await run.graph.neighbors(
            entity, relation=relation or None, limit=chosen.found, max_tokens=chosen.action_tokens
        )
        run.ledger.learn(found.labels)
        seen.lines.hold(found.held)
        return found, (*found.triples, *map(valued, found.values))

    async def _neighbors(self, seen: Exploration, action: Action) -> str:
        """Show what lies around an entity: all of one relation, or of a hub what is most like the question."""
        run, chosen, (entity,) = seen.run, self.means.settings, action.entities
        found, facts = await self._around(seen, entity, action.about)
        bundles = bundled(facts, found.totals)
        there = sum(bundle.total for bundle in bundles)
        if not action.about and there > chosen.shown:
            bundles = await self._likest(run, entity, bundles)
        elif not action.about and there == len(facts):
            seen.leave(entity)
        seen.observed.add(entity)
        seen.show(bundles)
        shown = sum(len(bundle.facts) for bundle in bundles)
        return _outcome(run, shown, max(there, shown), found)

    async def _likest(self, run: OdaRun, entity: str, bundles: Sequence[Bundle]) -> tuple[Bundle, ...]:
        """Return the facts of a hub that are most like the question, a few of each relation."""
        chosen = self.means.settings
        near = await run.graph.observe(
            run.question, [entity], hops=1, top_n=chosen.found, max_tokens=chosen.action_tokens
        )
        scores = near.scores([fact for bundle in bundles for fact in bundle.facts])
        sampled = [
            replace(bundle, facts=tuple(sorted(bundle.facts, key=lambda fact: -scores.get(fact, 0.0))[:_SAMPLE]))
            for bundle in bundles
        ]
        ranked = sorted(sampled, key=lambda bundle: -max(scores.get(fact, 0.0) for fact in bundle.facts))
        left, kept = chosen.shown, list[Bundle]()
        for bundle in ranked:
            if left > 0:
                kept.append(bundle.cut(left))
                left -= len(bundle.facts)
        return tuple(kept)

    async def _compare(self, seen: Exploration, relation: str) -> str:
        """Show one relation of all that the facts in memory name."""
        run, chosen = seen.run, self.means.settings
        ends = dict.fromkeys(end for head, _, tail in run.facts for end in (head, tail) if not end.startswith('"'))
        facts: dict[Triple, None] = {}
        empty = Shown()
        for end in list(ends)[: chosen.found]:
            found, own = await self._around(seen, end, relation)
            for bundle in bundled(own, found.totals):
                seen.lines.see(bundle)
            facts.update(dict.fromkeys(own))
            empty = empty if own or empty.text else found.shown
        seen.show(bundled(tuple(facts)))
        of = f"of {min(len(ends), chosen.found)} of {len(ends)}" if len(ends) > chosen.found else f"of all {len(ends)}"
        return f"{_counting(len(facts))}, {of} in memory" if facts else _nothing(run, empty)

    async def _paths(self, seen: Exploration, action: Action) -> str:
        run, chosen, (source, target) = seen.run, self.means.settings, action.entities
        found = await run.graph.paths(
            source,
            target,
            max_hops=chosen.path_hops,
            limit=chosen.paths,
            question=run.question,
            max_tokens=chosen.action_tokens,
        )
        run.ledger.learn(found.labels)
        shown = found.facts[: chosen.shown]
        seen.show([Bundle((fact,), 1) for fact in shown])
        return _outcome(run, len(shown), len(found.facts), found)

    async def _search(self, seen: Exploration, text: str) -> str:
        """Look for what a text names; what it may be can be looked at from now on."""
        run = seen.run
        (named,) = await run.graph.identify([text])
        for each in named.candidates:
            run.ledger.learn(IdLabels({each.id: each.label}))
            if named.meant:
                seen.open.setdefault(each.id)
        number = run.ledger.add(named.shown)
        said = "; ".join(each.described for each in named.candidates)
        if named.meant:
            return f"[{number}] {said}"
        return f"[{number}] nothing is named so{f'; near, not the same: {said}' if said else ''}"


def _in_memory(run: OdaRun, cited: Cited) -> Cited:
    """Return an answer that cites facts of the memory by their place there, with the numbers that the run gave them."""
    places = (each for each in cited.numbers if 1 <= each <= len(run.facts))
    return Cited(cited.text, tuple(run.ledger.number(run.facts[place - 1]) for place in places))


def _outcome(run: OdaRun, shown: int, there: int, found: Found) -> str:
    if not there:
        return _nothing(run, found.shown)
    return f"{shown} of {there} facts shown" if there > shown else _counting(there)


def _nothing(run: OdaRun, shown: Shown) -> str:
    """Return what an action that found nothing denies, with the number by which an answer can cite it."""
    return f"[{run.ledger.add(shown)}] found nothing: {' '.join(without_hints(shown.text).split())[:MAX_OUTCOME]}"


def _counting(facts: int) -> str:
    return "1 fact" if facts == 1 else f"{facts} facts"


def _bundles(observation: ObservedFacts) -> list[Bundle]:
    return [Bundle(group.triples, max(group.count, len(group.far))) for group in observation.groups if group.far]


def _counted(observation: ObservedFacts, names: FactNames) -> list[str]:
    """Return lines that name the relations of entities of which no fact is shown."""
    around: dict[str, list[str]] = {}
    for group in observation.groups:
        if not group.far:
            called = observation.labels.relations.get(group.relation, group.relation)
            around.setdefault(group.entity, []).append(f"{'-' if group.incoming else ''}{called}")
    if len(around) > _TOLD_APART:
        return [f"also around them: {', '.join(dict.fromkeys(name for each in around.values() for name in each))}"]
    return [f"also around {names.of(entity)}: {', '.join(each)}" for entity, each in around.items()]


def _named(action: Action, seen: Exploration) -> str:
    names = seen.lines.names
    parts = [*map(names.of, action.entities), *([action.about] if action.about else [])]
    return f"{action.name}[{', '.join(parts)}]"
