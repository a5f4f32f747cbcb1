"""Who may call over HTTP: static tokens, and what callers without one are answered."""

import json
import ssl
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from cli_runs import CommandLine, write_graph
from kg_agents.tools.client import ToolError, connect_tools
from kg_server.serving.tokens import TokenFile
from kg_server.view import VIEW_URI
from loopback_service import Authority
from patience import PATIENCE_S
from server_processes import address_of, started

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED = {"accept": "application/json, text/event-stream"}
HELLO: dict[str, Any] = {
    "method": "initialize",
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CHAT = "https://chat.example.org"
EVERY_INTERFACE = "0.0.0.0"  # noqa: S104 - it is called through loopback
APPEND = {"name": "memory-append", "arguments": {"triples": [["Q17", "P36", "Q1490"]]}}


@dataclass(frozen=True)
class Hosted:
    """A server with a login, and its tokens."""

    url: str
    tokens: TokenFile

    def add(self, name: str, *scopes: str, expires_days: float | None = None) -> str:
        """Make a token; it is to be one that no other test has made."""
        return self.tokens.add(name, scopes or ("read", "memory"), None, expires_days)

    def answer(self, *tokens: str, method: str = "tools/list", **params: object) -> httpx2.Response:
        """Return the answer to a message that brings these tokens."""
        headers = [*ACCEPTED.items(), *(("authorization", f"Bearer {token}") for token in tokens)]
        message = {**LIST, "method": method, "params": params}
        return httpx2.post(self.url, json=message, headers=headers, timeout=PATIENCE_S)

    def result(self, token: str, method: str, **params: object) -> dict[str, Any]:
        """Return the result of a message that brings a token."""
        [line] = [each for each in self.answer(token, method=method, **params).text.splitlines() if "data: {" in each]
        result: dict[str, Any] = json.loads(line.removeprefix("data: "))["result"]
        return result


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """A server on loopback that these tests share, and which needs a token because a setting says so."""
    folder = tmp_path_factory.mktemp("hosted")
    tokens = TokenFile(folder / "tokens" / "tokens.json")
    words = (str(write_graph(folder)), "--cache-folder", str(folder / "cache"))
    environ = {
        "KG_SEXTANT_HOSTING__TOKENS": str(tokens.path),
        "KG_SEXTANT_HOSTING__ORIGINS": CHAT,
        "KG_SEXTANT_DATA_FOLDER": str(folder / "data"),
    }
    with started(environ, *words) as process:
        yield Hosted(address_of(process), tokens)


def test_a_token_lets_a_caller_in_until_it_is_revoked(hosted: Hosted) -> None:
    token = hosted.add("ann")
    assert hosted.answer(token).status_code == 200
    hosted.tokens.revoke("ann")
    assert hosted.answer(token).status_code == 401
    assert hosted.answer(hosted.add("ann")).status_code == 200


def test_a_caller_without_a_valid_token_is_refused_with_what_it_needs(hosted: Hosted) -> None:
    token, expired = hosted.add("ben"), hosted.add("old", expires_days=0)
    wrong = [[expired], [token[:-1]], [token.upper()], [f"{token}.x"], ["kgs_"], ["x" * 20_000], [token, token]]
    refused = {hosted.answer(*each).headers["www-authenticate"].split(",")[0]: None for each in wrong}
    assert {hosted.answer(*each).status_code for each in wrong} == {401}
    assert list(refused) == ['Bearer error="invalid_token"']
    without = hosted.answer()
    assert (without.status_code, without.headers["www-authenticate"]) == (401, 'Bearer scope="read memory"')


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", APPEND),
        ("tools/call", {"name": "memory-read", "arguments": {"memory": "mem_x"}}),
        ("resources/read", {"uri": "KG-memory://mem_x"}),
    ],
)
def test_a_token_for_reading_reaches_no_memory(hosted: Hosted, method: str, params: dict[str, object]) -> None:
    reader = hosted.add(f"reader-{len(hosted.tokens.tokens())}", "read")
    answer = hosted.answer(reader, method=method, **params)
    assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope")
    assert 'scope="read memory"' in answer.headers["www-authenticate"]
    assert hosted.answer(reader, method="tools/call", name=["memory-append"]).status_code == 200
    assert hosted.answer(reader, method="tools/call", name="Degree", arguments={"entity": "Q17"}).status_code == 200


def test_a_caller_sees_and_calls_only_the_tools_of_its_token(hosted: Hosted) -> None:
    reader, narrow = hosted.add("lists", "read"), hosted.tokens.add("narrow", ("read",), ("Degree",), None)
    names = [{each["name"] for each in hosted.result(token, "tools/list")["tools"]} for token in (reader, narrow)]
    assert ({"memory-append", "memory-read"} & names[0], names[1]) == (set(), {"Degree"})
    assert hosted.result(narrow, "tools/call", name="Degree", arguments={"entity": "Q17"})["isError"] is False
    refused = hosted.answer(narrow, method="tools/call", name="GetNeighbor", arguments={"entity": "Q17"})
    assert "This caller may not call GetNeighbor. It may call: Degree." in refused.text
    assert hosted.answer(method="resources/read", uri=VIEW_URI).status_code == 401
    assert hosted.result(reader, "resources/read", uri=VIEW_URI)["contents"][0]["uri"] == VIEW_URI
    assert "There is no resource" in hosted.answer(narrow, method="resources/read", uri=VIEW_URI).text
    assert hosted.result(narrow, "resources/list")["resources"] == []
    assert "There is no resource" in hosted.answer(narrow, method="resources/read", uri="kg://schema").text
    completing = {"argument": {"name": "entities", "value": "Toky"}, "ref": {"type": "ref/prompt", "name": "oda"}}
    assert "Tokyo" not in hosted.answer(narrow, method="completion/complete", **completing).text
    assert "Tokyo" in hosted.answer(hosted.add("whole"), method="completion/complete", **completing).text
    assert "By question: " in hosted.result(reader, **HELLO)["instructions"]
    assert "memory" not in hosted.result(reader, **HELLO)["instructions"]


@pytest.mark.parametrize(("origin", "status"), [(CHAT, 200), ("https://evil.example", 403)])
def test_a_browser_learns_without_a_token_whether_a_page_may_send_one(hosted: Hosted, origin: str, status: int) -> None:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type"}
    answer = httpx2.options(hosted.url, headers={"origin": origin, **asked}, timeout=PATIENCE_S)
    assert answer.status_code == status
    assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)


def test_nothing_of_a_request_is_read_before_its_caller_is_known(hosted: Hosted) -> None:
    answer = httpx2.post(hosted.url, content=b"no message", timeout=PATIENCE_S)
    assert answer.status_code == 401


def test_a_file_of_tokens_that_cannot_be_read_lets_nobody_in(hosted: Hosted) -> None:
    token, content = hosted.add("eve"), hosted.tokens.path.read_bytes()
    hosted.tokens.path.write_bytes(content[:-1])
    assert hosted.answer(token).status_code == 503
    hosted.tokens.path.write_bytes(content)
    assert hosted.answer(token).status_code == 200


def test_a_malformed_entry_lets_nobody_in_and_the_others_stay(hosted: Hosted) -> None:
    bad, good, content = hosted.add("fay"), hosted.add("gil"), hosted.tokens.path.read_bytes()
    hosted.tokens.path.write_bytes(content.replace(b'"name": "fay"', b'"name": "fay", "tool": "Schema"'))
    assert [hosted.answer(token).status_code for token in (bad, good)] == [401, 200]
    new = hosted.add("hal")
    assert [hosted.answer(token).status_code for token in (bad, new)] == [401, 200]
    hosted.tokens.path.write_bytes(hosted.tokens.path.read_bytes().replace(b', "tool": "Schema"', b""))
    for name in ("fay", "gil", "hal"):
        hosted.tokens.revoke(name)


def test_a_token_is_shown_once_and_kept_as_a_hash_in_a_private_file(cli: CommandLine) -> None:
    made = cli.run("token", "add", "ann", "--scopes", "read", "--tools", "Retrieve,GetPath", "--expires-days", "7")
    token = made.out.strip()
    [file] = cli.folder.rglob("tokens.json")
    assert token.startswith("kgs_")
    assert token not in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    [listed] = json.loads(cli.run("token", "list", "--json").out)
    assert (listed["name"], listed["scopes"], listed["tools"]) == ("ann", ["read"], ["Retrieve", "GetPath"])
    assert listed["expires"] - listed["created"] == 7 * 86_400
    assert cli.run("token", "revoke", "ann").out == "Revoked ann.\n"
    assert cli.run("token", "list").out == "There are no tokens.\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("add", "a b"), "cannot be named a b"),
        (("add", "ann", "--scopes", "memory"), "--scopes takes read or read,memory"),
        (("add", "ann", "--tools", "GetNeighbour"), "Did you mean GetNeighbor?"),
        *((("add", "ann", "--expires-days", days), "--expires-days takes") for days in ("0", "nan", "1e300")),
        (("revoke", "ann"), "There is no token ann. There are no tokens."),
    ],
)
def test_a_token_that_cannot_be_made_or_revoked_is_refused_with_the_reason(
    cli: CommandLine, words: tuple[str, ...], reason: str
) -> None:
    refused = cli.run("token", *words)
    assert (refused.code, reason in refused.err) == (2, True)


def test_other_machines_are_served_without_a_login_only_until_there_are_tokens(tmp_path: Path) -> None:
    words = (str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache"))
    environ = {"KG_SEXTANT_DATA_FOLDER": str(tmp_path / "data")}
    with started(environ, *words, "--insecure", host=EVERY_INTERFACE) as process:
        assert process.stderr is not None
        assert "without a login" in process.stderr.readline()
        port = address_of(process).rpartition(":")[2]
        open_to_all = Hosted(f"http://127.0.0.1:{port}", TokenFile(tmp_path / "data" / "tokens.json"))
        assert open_to_all.answer().status_code == 200
    token = open_to_all.add("ann")
    with started(environ, *words, "--insecure", host=EVERY_INTERFACE) as process:
        port = address_of(process).rpartition(":")[2]
        hosted = Hosted(f"http://127.0.0.1:{port}", open_to_all.tokens)
        assert [hosted.answer().status_code, hosted.answer(token).status_code] == [401, 200]


@pytest.mark.parametrize(("proxies", "client"), [("10.0.0.0/8,127.0.0.1", "203.0.113.9"), ("10.0.0.0/8", "127.0.0.1")])
def test_what_a_request_was_forwarded_for_is_believed_from_known_proxies_alone(
    tmp_path: Path, proxies: str, client: str
) -> None:
    words = (str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache"), "--log-level", "debug")
    tokens = TokenFile(tmp_path / "tokens.json")
    environ = {"KG_SEXTANT_HOSTING__PROXIES": proxies, "KG_SEXTANT_HOSTING__TOKENS": str(tokens.path)}
    token = tokens.add("ann", ("read",), None, None)
    with started(environ, *words) as process:
        url = address_of(process)
        httpx2.post(url, headers={"x-forwarded-for": "192.0.2.1, 203.0.113.9"}, timeout=PATIENCE_S)
        assert Hosted(url, tokens).answer(token).status_code == 200
        process.terminate()
        _, log = process.communicate()
    assert f"Refused a request of {client} with 401" in log
    assert token not in log
    assert "inputSchema" not in log


def test_a_new_certificate_is_shown_without_a_restart_and_a_broken_one_never(tmp_path: Path) -> None:
    authority, file = Authority.create(tmp_path), tmp_path / "server.pem"
    authority.server(hours=1)
    environ = {"KG_SEXTANT_HOSTING__TLS_CERTIFICATE": str(file)}
    with started(environ, str(write_graph(tmp_path)), "--cache-folder", str(tmp_path / "cache")) as process:
        url = address_of(process)
        assert url.startswith("https://127.0.0.1:")
        shown = [_certificate(url)]
        for change in (lambda: authority.server(hours=2), lambda: file.write_text("broken", encoding="utf-8")):
            change()
            shown.append(_certificate(url))
        answer = httpx2.post(url, json=LIST, headers=ACCEPTED, verify=authority.client(), timeout=PATIENCE_S)
    assert answer.status_code == 200
    assert (shown[0] == shown[1], shown[1] == shown[2]) == (False, True)


def _certificate(url: str) -> str:
    address = urlsplit(url)
    return ssl.get_server_certificate((address.hostname or "", address.port or 0))


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("tls_certificate", "/nowhere.pem", "The certificate /nowhere.pem cannot be used"),
        ("tls_key", "/nowhere.pem", "hosting.tls_key needs hosting.tls_certificate"),
        ("issuer", "http://login.example", "hosting.issuer must begin with https://"),
        ("audience", "https://kg.example.org", "need hosting.issuer"),
        ("page_client_id", "page", "need hosting.issuer"),
        ("url", "https://kg.example.org/mcp", "can reach this server by the host of hosting.url. Make a token"),
        ("hosts", "localhost,kg:8000", "can reach this server by hosting.hosts. Make a token"),
        ("proxies", "127.0.0.1", "can reach this server by a proxy. Make a token"),
        ("proxies", "10.0.0.1/8", "each must be an address or a network"),
        ("origins", "https://chat.example.org/", "without a path"),
        ("hosts", "http://kg.example.org", "each must be a name or an address"),
    ],
)
def test_hosting_that_cannot_be_safe_is_refused_before_it_starts(
    cli: CommandLine, setting: str, value: str, reason: str
) -> None:
    refused = cli.run("serve", "--http", "0", **{f"KG_SEXTANT_HOSTING__{setting.upper()}": value})
    assert (refused.code, reason in refused.err) == (2, True)


async def test_an_agent_whose_token_is_revoked_reports_that_it_needs_one(hosted: Hosted) -> None:
    async with connect_tools(hosted.url, token=hosted.add("gil")) as tools:
        assert not (await tools.call("Degree", {"entity": "Q17"})).failed
        hosted.tokens.revoke("gil")
        with pytest.raises(ToolError, match="asks for a valid token"):
            await tools.call("Degree", {"entity": "Q17"})
