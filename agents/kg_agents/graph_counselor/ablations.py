"""Graph Counselor with a part of it taken out (section 3.4). How often it reflects is a setting."""

from typing import ClassVar

from kg_agents.dialogue import Unreadable
from kg_agents.graph_counselor.actions import Action, Query
from kg_agents.graph_counselor.agent import GraphCounselor
from kg_agents.graph_counselor.prompting import Wording
from kg_agents.graph_counselor.run import Run


class CounselorWithoutPlanning(GraphCounselor):
    """Thinks and acts without a plan (section 3.4.1)."""

    wording: ClassVar[Wording] = Wording(planned=False)

    async def _plan(self, run: Run) -> None:
        del run


class CounselorWithSingleFunctions(GraphCounselor):
    """Performs one function in one action, neither inside another nor beside one (section 3.4.1)."""

    wording: ClassVar[Wording] = Wording(compound=False)

    def _read_action(self, reply: str, step: int) -> Action | Unreadable:
        action = super()._read_action(reply, step)
        if isinstance(action, Query) and (len(action.parts) > 1 or action.nested):
            return Unreadable("It holds more than one function. Use one function, and none inside another.")
        return action


class CounselorWithoutReflection(GraphCounselor):
    """Takes the first attempt's answer as it is: nobody judges it, and nothing is learnt from it (section 3.4.2)."""

    async def _counsel(self, run: Run) -> str:
        await self._explore(run)
        return run.ending
