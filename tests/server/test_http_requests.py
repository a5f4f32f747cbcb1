"""Requests over HTTP that break the rules, and files that are the user's own."""

import json
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from mcp import Client
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from calls import UNHURRIED, reply_of
from http_servers import on_loopback
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_server.app import build_server
from kg_server.serving.connections import TimedConnection
from kg_server.serving.http import CheckedRequests, ServerNames
from kg_server.settings import HostingSettings
from patience import PATIENCE_S

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
LOCAL = (b"host", b"localhost")


async def echoed(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body that arrived."""
    assert scope["type"] == "http"
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def answer(
    *headers: tuple[bytes, bytes],
    body: Sequence[bytes] = (PING,),
    method: str = "POST",
    path: str = "/mcp",
    names: ServerNames | None = None,
) -> tuple[int, bytes]:
    """Return the status and the body that answer a request whose body arrives in pieces, at the address 10.0.0.7."""
    pieces: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(body)} for number, piece in enumerate(body, 1)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return pieces.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": list(headers),
        "server": ("10.0.0.7", 80),
    }
    await CheckedRequests(echoed, 1_000, names or ServerNames())(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize(
    "host",
    [
        *(b"127.0.0.1:18765@evil", b"127.0.0.1:18765.evil.example", b"localhost:1@evil.example", b"user@localhost"),
        *(b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil.example", b"evil.example:127", b"10.0.0.1"),
        *(b"localhost:", b"localhost:99999", b"localhost:80:80", b"[::1", b"[::2]:80", b"", b"localhost, evil.example"),
    ],
)
async def test_a_request_for_another_host_is_refused(host: bytes) -> None:
    assert (await answer((b"host", host)))[0] == 421


async def test_a_request_for_no_host_or_for_two_is_refused() -> None:
    assert (await answer())[0] == 421
    assert (await answer(LOCAL, LOCAL))[0] == 421


@pytest.mark.parametrize(
    "origin",
    [
        *(b"http://127.0.0.1:18765.evil.example", b"http://localhost:80@evil", b"http://evil.example", b"null", b""),
        *(b"https://evil.example", b"http://localhost:80/x", b"http://", b"localhost", b"file://"),
        b"http://[::1].evil",
    ],
)
async def test_a_page_of_another_origin_is_refused(origin: bytes) -> None:
    assert (await answer(LOCAL, (b"origin", origin)))[0] == 403
    assert (await answer(LOCAL, (b"origin", b"http://localhost"), (b"origin", origin)))[0] == 403


@pytest.mark.parametrize(
    "host", [b"localhost", b"LOCALHOST:8000", b"127.0.0.1:1", b"127.0.0.2", b"[::1]:65535", b"[::1]"]
)
async def test_this_machine_goes_by_any_of_its_own_names_and_any_port(host: bytes) -> None:
    assert await answer((b"host", host), (b"origin", b"http://" + host)) == (200, PING)


PUBLIC = ServerNames.of(
    HostingSettings(
        url="https://KG.example.org/mcp", hosts=("inside", "kg:8000"), origins=("https://chat.example.org",)
    )
)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((each, 200) for each in (b"kg.example.org", b"kg.example.org:443", b"inside:99", b"kg:8000", b"10.0.0.7:80")),
        *(
            (each, 421)
            for each in (b"kg:8001", b"kg", b"kg.example.org.evil", b"inside.evil", b"10.0.0.70", b"0.0.0.0")
        ),
    ],
)
async def test_a_server_goes_by_the_names_that_are_set_and_by_the_address_a_request_came_to(
    host: bytes, status: int
) -> None:
    assert (await answer((b"host", host), names=PUBLIC))[0] == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        *((each, 200) for each in (b"https://chat.example.org", b"https://kg.example.org", b"http://localhost:3000")),
        *((each, 403) for each in (b"http://chat.example.org", b"https://chat.example.org:444", b"https://inside")),
        *((each, 403) for each in (b"https://chat.example.org.evil", b"null", b"https://10.0.0.7", b"*")),
    ],
)
async def test_pages_may_ask_only_from_the_origins_that_are_set(origin: bytes, status: int) -> None:
    assert (await answer(LOCAL, (b"origin", origin), names=PUBLIC))[0] == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        *((each, 200) for each in (b"http://127.0.0.1:8000", b"HTTP://127.0.0.1:8000", b"https://127.0.0.1:8000")),
        *((each, 403) for each in (b"http://127.0.0.1:3000", b"http://localhost:8000", b"http://127.0.0.1", b"null")),
    ],
)
async def test_where_only_its_own_page_may_ask_others_of_this_machine_may_not(origin: bytes, status: int) -> None:
    names = ServerNames(own_page=True)
    assert (await answer((b"host", b"127.0.0.1:8000"), (b"origin", origin), names=names))[0] == status


@pytest.mark.parametrize("path", ["/", "/mcp\n", "/mcp/x", "/MCP", "/./mcp", "//mcp"])
async def test_a_path_that_is_almost_that_of_messages_is_refused(path: str) -> None:
    assert (await answer(LOCAL, path=path))[0] == 404


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_that_is_too_large_is_refused(declared: bool) -> None:
    headers = (LOCAL, (b"content-length", b"1001")) if declared else (LOCAL,)
    pieces = (b"x",) if declared else (b"x" * 600, b"x" * 600, b"x")
    assert (await answer(*headers, body=pieces))[0] == 413


async def test_a_body_in_pieces_arrives_whole() -> None:
    assert await answer(LOCAL, body=(PING[:5], PING[5:])) == (200, PING)


class Impatient(TimedConnection):
    """A connection that waits for a request hardly at all."""

    request_s = 0.05


async def test_a_request_that_does_not_arrive_is_not_waited_for_while_an_answer_may_take_longer() -> None:
    released = anyio.Event()

    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/slow":
            await released.wait()
        await Response()(scope, receive, send)

    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    whole = head % (b"/fast", 0)
    async with on_loopback(waiting, Impatient) as url:
        port = int(url.removesuffix("/mcp").rpartition(":")[2])

        async def received(sent: bytes) -> bytes:
            """Return what a connection receives until it is closed, which its client never does."""
            async with await anyio.connect_tcp("127.0.0.1", port) as connection:
                await connection.send(sent)
                return b"".join([part async for part in connection])

        slow: list[bytes] = []

        async def ask() -> None:
            slow.append(await received(head % (b"/slow", 0)))

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                for incomplete in (b"", whole[:30], head % (b"/fast", 10) + b"1"):
                    assert await received(incomplete) == b""
                assert (await received(whole + whole[:30])).startswith(b"HTTP/1.1 200")
                released.set()
    assert slow[0].startswith(b"HTTP/1.1 200")


async def test_what_is_no_message_is_refused_under_its_id() -> None:
    status, body = await answer(LOCAL, body=(b'{"jsonrpc":"1.0","id":7,"method":"ping"}',))
    assert (status, json.loads(body)["id"], json.loads(body)["error"]["code"]) == (400, 7, -32600)


async def test_a_stream_by_get_is_refused() -> None:
    assert (await answer(LOCAL, method="GET"))[0] == 405


DATA = Path(__file__).parents[1] / "data"
QUESTIONS: dict[str, dict[str, list[str]]] = {
    "pizza.ttl": {
        "Feature[Margherita, baked at (°C)]": ["430"],
        "Neighbor[Margherita, steps]": ["Stretch the dough", "Spread the tomato", "Bake it"],
        "Count[Neighbor[Topping, owl:disjointUnionOf]]": ["3"],
    },
    "animals-skos.ttl": {
        "Feature[felines, created]": ["2019-05-04"],
        "Neighbor[Katzen, broader]": ["mammals"],
        "Neighbor[cats, -skos:broader]": ["kittens"],
    },
    "soils-skosxl.ttl": {
        "Feature[black earth, created]": ["2012-02-14"],
        "Neighbor[chernozems, broader]": ["soil types"],
        "Count[Neighbor[soil types, -skos:broader]]": ["2"],
    },
    "bakery.jsonld": {
        "Feature[Corner Bakery, foundingDate]": ["1987-04-12"],
        "Neighbor[Corner Bakery, founder]": ["Rosa Korn"],
        "Max[Neighbor[Corner Bakery, makesOffer], price]": ["4.2"],
    },
    "catalogue.rdf": {
        "Feature[Noise map, issued]": ["2022-09-15"],
        "Neighbor[Street trees, publisher]": ["Parks Department"],
        "Feature[Trees as CSV, byteSize]": ["1,048,576"],
    },
    "people.foaf": {
        "Feature[Bob Birch, age]": ["36"],
        "Neighbor[Ann Ash, knows]": ["Bob Birch", "Cem Çelik"],
        "Neighbor[Cem Çelik, based_near]": ["Izmir"],
    },
    "geonames.owl": {
        "Feature[Spiegelsee, alt]": ["2,204"],
        "Feature[North Valley, population]": ["5,321"],
        "Neighbor[Lake Mirror, parentFeature/parentFeature]": ["Highland"],
    },
    "instruments.owl": {
        "Feature[Harp, number of strings]": ["47"],
        "Neighbor[Violin, tuned to]": ["G", "D", "A", "E"],
        "Count[Type[String instrument]]": ["3"],
    },
    "flights.csv": {
        "Feature[Oslo, passengers]": ["26,200,000"],
        "Neighbor[Oslo, flies to]": ["Bergen", "Lisbon"],
        "Neighbor[Portugal, -country]": ["Lisbon"],
    },
    "employees.csv": {
        "Feature[Ida Sol, hired]": ["2017-03-27"],
        "Neighbor[Per Lund, manager_id/manager_id]": ["Mina Okafor"],
        "Sum[Type[employees], salary]": ["270,500"],
    },
    "library.trig": {
        "Feature[The Salt Road, lentOn]": ["2023-11-05"],
        "Neighbor[Winter Maps, creator]": ["Lena Holm", "Otto Reed"],
        "Neighbor[The Salt Road, lentTo]": ["Tia Marsh"],
    },
    "entity.json": {
        "Feature[Example Peak, inception]": ["1786-08"],
        "Feature[Mount Example, elevation above sea level]": ["2,417 m"],
        "Feature[Mount Example, area]": ["31.5 square kilometre"],
        "Feature[Mount Example, vertical depth]": ["1,200 made-up fathom"],
        "Neighbor[Mount Example, instance of]": ["mountain"],
    },
    "mills.json": {
        "Feature[Upper Mill, daily output]": ["10 quire"],
        "Max[Type[paper mill], daily output]": ["22.5 quire."],
        "Sum[Type[paper mill], daily output]": ["39.5 quire."],
        "Top[Type[paper mill], elevation above sea level]": ["Old Paper Mill | elevation above sea level | 1,405 m"],
        "Where[Type[paper mill], daily output > 9 quire]": ["Upper Mill", "Weir Mill"],
        "Table[Type[paper mill], length, employees]": ["Weir Mill | 1.2 km | 9"],
    },
    "bridges-qudt.ttl": {
        "Max[Type[bridge], length]": ["1,848 m."],
        "Mean[Type[bridge], clearance]": ["21.4 m."],
        "Feature[Mill Bridge, weight limit]": ["3.5 TON_Metric"],
        "Bottom[Type[bridge], opened]": ["Mill Bridge | opened | 1874"],
    },
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_a_file_of_ones_own_answers_questions_about_itself(name: str, tmp_path: Path) -> None:
    report = build_store([DATA / name], tmp_path / "store", ImportOptions(sparql=False))
    assert (report.naming.mostly_nameless, report.skipped) == (False, 0)
    graph = LocalAdapter(open_store(report.folder))
    async with Client(build_server(graph, UNHURRIED)) as client:
        for question, expected in QUESTIONS[name].items():
            reply = reply_of(await client.call_tool("Compose", {"expression": question}))
            told = [line for line in reply.plain.text.splitlines() if not line.startswith("prefixes")]
            assert [each for each in expected if not any(each in line for line in told)] == [], reply.plain.text
    await graph.aclose()


def test_every_file_is_asked() -> None:
    assert {path.name for path in DATA.iterdir() if path.is_file()} == QUESTIONS.keys()
