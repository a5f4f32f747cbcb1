"""What is no message is refused alike over both transports, and the server goes on."""

from collections.abc import Iterator

import httpx2
import pytest
from pydantic import BaseModel, TypeAdapter

from cli_runs import write_graph
from protocol_nonsense import NONSENSE
from server_processes import address_of, started
from stdio_processes import Spoken, request, spoken_to

CALL = request(8, "tools/call", name="Degree", arguments={"entity": "Q1490"})
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
MODERN = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "ping"}


class Problem(BaseModel):
    code: int
    message: str


class Refusal(BaseModel):
    id: int | str | None
    error: Problem


_REFUSAL = TypeAdapter(Refusal)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spoken]:
    with spoken_to(tmp_path_factory.mktemp("stdio")) as process:
        yield process


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("http")
    with started({}, str(write_graph(folder)), "--cache-folder", str(folder / "cache")) as process:
        yield address_of(process)


def test_over_stdio_each_is_refused_under_its_own_id_and_the_next_call_answered(spoken: Spoken) -> None:
    refusals: list[Refusal] = []
    for nonsense in NONSENSE:
        spoken.say(nonsense.text)
        refusals.append(_REFUSAL.validate_python(spoken.hear()))
    assert_as_expected(refusals)
    spoken.say(CALL)
    assert "has 1 distinct neighbour" in str(spoken.hear())


@pytest.mark.parametrize("headers", [HEADERS, MODERN], ids=["with a handshake", "without"])
def test_over_http_each_is_refused_under_its_own_id_and_the_next_call_answered(
    address: str, headers: dict[str, str]
) -> None:
    refusals: list[Refusal] = []
    with httpx2.Client(headers=headers) as client:
        for nonsense in NONSENSE:
            response = client.post(address, content=nonsense.text)
            assert response.status_code == 400
            refusals.append(_REFUSAL.validate_json(response.text))
    assert_as_expected(refusals)
    assert "has 1 distinct neighbour" in httpx2.post(address, content=CALL, headers=HEADERS).text


def assert_as_expected(refusals: list[Refusal]) -> None:
    expected = [(nonsense.name, nonsense.id, nonsense.code) for nonsense in NONSENSE]
    assert [
        (nonsense.name, refusal.id, refusal.error.code) for nonsense, refusal in zip(NONSENSE, refusals, strict=True)
    ] == expected
    for refusal in refusals:
        assert len(refusal.error.message) <= 200
        assert "http" not in refusal.error.message
        assert "pydantic" not in refusal.error.message
