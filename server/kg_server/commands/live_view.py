"""A run as people see it on a terminal, with what it waits for and the answers while they are written."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kg_boundary.shown import visible_line
from kg_server.commands.run_view import JsonView, PlainView, RunView, steps_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from kg_agents.answers import Step
    from kg_agents.llm import Usage

DOING: Final = {
    "Retrieve": "Finding entities",
    "observe": "Looking ahead",
    "GetNeighbor": "Looking around an entity",
    "GetPath": "Looking for paths",
    "Compose": "Asking the graph",
    "Schema": "Reading what the graph holds",
    "memory-append": "Remembering",
    "memory-read": "Reading the memory",
    "tools": "Waiting for the model",
    "mentions": "Finding the names in the question",
    "action": "Choosing an action",
    "linking": "Choosing among namesakes",
    "turn": "Choosing what to keep and to do",
    "reflection": "Reflecting",
    "generation": "Writing down facts",
    "answer": "Answering",
    "plan": "Planning",
    "thought": "Thinking",
    "step": "Planning and choosing functions",
    "judge": "Judging the answer",
}
"""What a run does while it waits for a tool, or for a model's reply of some purpose."""

MOST_LINES: Final = 8
"""How many lines of answers are drawn while they are written: the latest."""


def run_view(*, as_json: bool, watched: bool = True) -> RunView:
    """Return how a run is shown: as JSON at its end, live on a terminal, in plain lines elsewhere.

    Args:
        as_json: Whether a program reads it.
        watched: Whether people read along, and answers are shown while they are written.
    """
    if as_json:
        return JsonView()
    from rich.console import Console

    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    live = sys.stderr.isatty() and not console.is_dumb_terminal
    return LiveView(console, streams=watched and sys.stdout.isatty()) if live else PlainView(console)


class LiveView(PlainView):
    """Prints the same lines, and below them draws what the run is waiting for, with what it has taken so far.

    Args:
        console: A terminal.
        streams: Whether it shows answers while they are written.
        clock: Seconds, from any beginning.
    """

    def __init__(
        self, console: "Console", clock: Callable[[], float] = time.monotonic, *, streams: bool = False
    ) -> None:
        super().__init__(console)
        from rich.live import Live
        from rich.spinner import Spinner

        self.streams = streams
        self._draft = ""
        self._clock = clock
        self._began = clock()
        self._doing = ""
        self._tokens = 0
        self._steps = 0
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console,
            get_renderable=self._status,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=10,
        )

    def __exit__(self, *_: object) -> None:
        """Take the drawing away."""
        self._live.stop()

    def begin(self, what: str) -> None:
        """See `RunView`."""
        self._draft = ""
        self._doing = DOING.get(what) or f"Waiting for {visible_line(what)}"
        # Before the first call the graph may be imported, which draws a bar of its own.
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def used(self, usage: "Usage") -> None:
        """See `RunView`."""
        self._tokens += usage.tokens
        self._live.refresh()

    def step(self, step: "Step") -> None:
        """See `RunView`."""
        self._steps += 1
        super().step(step)

    def draft(self, text: str) -> None:
        """See `RunView`; the lines are gone when the next call begins, since only checked answers stay."""
        self._draft = text
        self._live.refresh()

    def _status(self) -> "RenderableType":
        seconds = self._clock() - self._began
        self._spinner.update(
            text=f"{self._doing} … ({steps_of(self._steps)}, {self._tokens:,} tokens, {seconds:.0f} s)", style="cyan"
        )
        if not self._draft:
            return self._spinner
        from rich.console import Group
        from rich.text import Text

        lines = map(visible_line, self._draft.split("\n")[-MOST_LINES:])
        return Group(*(Text(line, style="bold", no_wrap=True, overflow="ellipsis") for line in lines), self._spinner)
