"""All that a process asks one host comes at one rate, and waits when the host asks for that."""

import anyio
import pytest

from kg_adapters.errors import BackendUnavailable
from kg_adapters.http.pacing import Rates, SharedRate
from played_time import PlayedTime

ADVICE = "Set a contact."


async def asked(rate: SharedRate, times: int, time_left_s: float = 100.0) -> None:
    for _ in range(times):
        await rate.turn(time_left_s)


async def test_a_minute_s_worth_comes_at_once_and_more_a_minute_after_it() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 3, timing=played.timing)
    await asked(rate, 1)
    played.elapsed_s += 20
    await asked(rate, 2)
    assert played.pauses == []
    await asked(rate, 3)
    assert played.pauses == [40.0, 20.0]


async def test_no_minute_sees_more_however_they_come() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, timing=played.timing)
    came: list[float] = []
    for number in range(200):
        played.elapsed_s += number % 7
        await rate.turn(100.0)
        came.append(played.elapsed_s)
    assert max(sum(start <= each < start + 60 for each in came) for start in came) == 10


async def test_callers_at_the_same_time_share_the_rate() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, timing=played.timing)
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(asked, rate, 3)
    assert played.pauses == [60.0]


async def test_who_cannot_wait_is_told_when_to_come_back_and_takes_no_turn() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, advice=ADVICE, timing=played.timing)
    await asked(rate, 10)
    for _ in range(2):
        with pytest.raises(BackendUnavailable) as raised:
            await rate.turn(3.0)
        assert str(raised.value) == (
            "host may be asked 10 times a minute, and has been. Ask again in 60 s, or ask for more at once. "
            "Set a contact."
        )
    await rate.turn(60.0)
    assert played.pauses == [60.0]


async def test_a_host_that_asks_to_be_left_alone_is_by_everybody() -> None:
    played = PlayedTime()
    rate = SharedRate("host", 10, timing=played.timing)
    rate.hold(30.0)
    with pytest.raises(BackendUnavailable, match="left alone for 30 s more"):
        await rate.turn(10.0)
    await rate.turn(40.0)
    assert played.elapsed_s == 30.0


async def test_the_least_that_anybody_allows_holds_for_all_who_ask_a_host() -> None:
    played, rates = PlayedTime(), Rates()
    rate = rates.of("a", 10, timing=played.timing)
    await asked(rate, 6)
    assert rates.of("a", 4) is rate
    assert rates.of("a", 10) is rate
    await asked(rate, 1)
    assert played.pauses == [60.0]
