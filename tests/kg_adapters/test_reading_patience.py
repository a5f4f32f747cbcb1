"""How long a file may take its parser without getting ahead, by a clock that a test plays."""

from itertools import count
from pathlib import Path

import pytest

from kg_adapters.files.frames import Order, ReadingEnded, parsed_frames
from kg_adapters.files.sources import Source
from kg_adapters.reading_limits import ReadingLimits

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
STEP_S = 30


def endless(folder: Path) -> Source:
    """Return a file whose parser compares each attribute of an element with each, which takes minutes."""
    attributes = " ".join(f'e:a{number}="x"' for number in range(300_000))
    path = folder / "g.rdf"
    path.write_text(f'<r:RDF xmlns:r="{RDF}" xmlns:e="http://e/"><e:a {attributes}/></r:RDF>', encoding="utf-8")
    return Source(path, path.name)


class Steps:
    """Counts the steps of a clock since the parser last got ahead."""

    def __init__(self) -> None:
        self.since = 0

    def wait(self) -> None:
        self.since += 1

    def follow(self, order: Order) -> None:
        played = count(step=STEP_S)
        got_ahead = 0
        for frame in parsed_frames(order, self.wait, lambda: next(played)):
            self.since = 0 if frame.ticks > got_ahead else self.since + 1
            got_ahead = max(got_ahead, frame.ticks)


@pytest.mark.parametrize(("stall_s", "steps"), [(STEP_S, 2), (3 * STEP_S + 1, 4), (9 * STEP_S - 1, 9)])
def test_parsing_has_the_time_of_the_setting_since_it_last_got_ahead(
    tmp_path: Path, stall_s: float, steps: int
) -> None:
    counted = Steps()
    with pytest.raises(ReadingEnded, match=rf"made no progress for {stall_s} s; the setting import_stall_s"):
        counted.follow(Order(endless(tmp_path), ReadingLimits(stall_s=stall_s), salvage=False))
    assert counted.since == steps
