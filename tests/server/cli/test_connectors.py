"""Logins of MCP clients from nothing but the URL of a server, against an authorization server on loopback."""

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import get_server_certificate
from urllib.parse import quote, unquote, urlsplit

import httpx2
import pytest
from mcp.client.client import ConnectMode
from pydantic import TypeAdapter

from authorization_server import (
    OAUTH,
    OPENID_APPENDED,
    OPENID_INSERTED,
    SCOPES,
    AuthorizationServer,
    ClientRecord,
    authorizing,
)
from calls import reply_of
from cli_runs import CommandLine, write_graph
from loopback_service import Authority, Reply, answering
from patience import PATIENCE_S
from server_processes import HELLO, address_of, started
from signing_in import CALLBACK, SigningIn

TENANT = "/realms/team"
PROTECTED = "/.well-known/oauth-protected-resource"
VERIFIER = "v" * 43
CHALLENGE = {
    "response_type": "code",
    "code_challenge": "7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM",
    "code_challenge_method": "S256",
}
ACCEPTED = {"accept": "application/json, text/event-stream"}
APPEND = {"triples": [["Q17", "P36", "Q1490"]]}
FOUND = [
    "server POST /mcp 401",
    "server GET /.well-known/oauth-protected-resource/mcp 200",
    "login GET /.well-known/oauth-authorization-server/realms/team 404",
    "login GET /.well-known/openid-configuration/realms/team 404",
    "login GET /realms/team/.well-known/openid-configuration 200",
]
KEYS_READ = "GET /realms/team/keys 200"
REGISTERED = ["login POST /realms/team/register 201"]
_TEXTS = TypeAdapter(list[str])
_OBJECT = TypeAdapter(dict[str, object])
CALLED = "server POST /mcp 200"
GRANTED = ["login GET /realms/team/authorize 302", "login POST /realms/team/token 200"]


@dataclass(frozen=True)
class Hosted:
    """A server with a login, its authorization server, and where documents of clients are."""

    url: str
    authority: AuthorizationServer
    documents: str

    @property
    def names(self) -> Mapping[str, str]:
        """What the steps of clients call both."""
        return {_origin(self.url): "server", _origin(self.authority.issuer): "login"}

    def client(self, document: str | None = None) -> SigningIn:
        """Return a client of the SDK that has not logged in yet."""
        return SigningIn(self.url, document and f"{self.documents}?{document}", names=self.names)


@contextmanager
def serving(folder: Path, authority: AuthorizationServer, **environ: str) -> Generator[str]:
    """Serve the small graph to those who log in at an authorization server, and give the URL."""
    places = {"KG_SEXTANT_HOSTING__ISSUER": authority.issuer, "KG_SEXTANT_DATA_FOLDER": str(folder / "data")}
    with started({**places, **environ}, str(write_graph(folder)), "--cache-folder", str(folder / "cache")) as process:
        yield address_of(process)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """A server that these tests share; its authorization server serves several teams, and OpenID's metadata alone."""
    folder = tmp_path_factory.mktemp("connected")
    trusted = Authority.create(folder)

    def document(query: bytes, _: str | None) -> Reply:
        name = unquote(query.decode())
        described = {"redirect_uris": REDIRECTS[name], "token_endpoint_auth_method": "none", "client_name": name}
        return Reply({"client_id": f"{documents}?{query.decode()}", **described})

    with (
        answering(document, trusted.server(hours=1)) as documents,
        authorizing(TENANT, (OPENID_APPENDED,), trusted.client()) as authority,
        serving(folder, authority) as url,
    ):
        yield Hosted(url, authority, documents)


@pytest.fixture(autouse=True)
def as_usual(hosted: Hosted) -> None:
    """Let the authorization server behave as at first."""
    hosted.authority.subject, hosted.authority.consents = "ada", SCOPES


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("document", [None, "sdk"], ids=["registered", "by its document"])
async def test_a_client_logs_in_from_nothing_but_the_url(
    hosted: Hosted, mode: ConnectMode, document: str | None
) -> None:
    client = hosted.client(document)
    async with client.connected(mode) as session:
        answer = await session.call_tool("Degree", {"entity": "Q17"})
    assert not answer.is_error
    expected = [*FOUND, *(REGISTERED if document is None else []), *GRANTED]
    assert client.taken()[: len(expected) + 1] == [*expected, CALLED]


@pytest.mark.parametrize("path", ["", "/"])
async def test_an_issuer_without_a_path_is_known_with_a_last_slash_or_without(tmp_path: Path, path: str) -> None:
    with authorizing(path, (OAUTH,)) as authority, serving(tmp_path, authority) as url:
        hosted = Hosted(url, authority, documents="https://kg.example.org/client.json")
        client = hosted.client("sdk")
        client.method = None
        async with client.connected() as session:
            assert not (await session.call_tool("Degree", {"entity": "Q17"})).is_error
    assert client.taken()[:6] == [
        *FOUND[:2],
        "login GET /.well-known/oauth-authorization-server 200",
        "login POST /register 201",
        "login GET /authorize 302",
        "login POST /token 200",
    ]
    assert client.wallet.client is not None
    assert client.wallet.client.token_endpoint_auth_method == "client_secret_basic"


async def test_clients_log_in_over_https_and_meet_each_new_certificate(tmp_path: Path) -> None:
    signer, file = Authority.create(tmp_path), tmp_path / "server.pem"
    signer.server(hours=1)
    shown: list[str] = []
    with authorizing() as authority, serving(tmp_path, authority, KG_SEXTANT_HOSTING__TLS_CERTIFICATE=str(file)) as url:
        hosted, place = Hosted(url, authority, documents=""), urlsplit(url)
        assert (place.scheme, place.hostname) == ("https", "127.0.0.1")
        for content in (file.read_bytes(), None, b"no certificate"):
            if content is None:
                signer.server(hours=2)
            else:
                file.write_bytes(content)
            client = hosted.client()
            client.trusts = signer.client()
            async with client.connected() as session:
                assert not (await session.call_tool("Degree", {"entity": "Q17"})).is_error
            assert client.taken()[:2] == FOUND[:2]
            shown.append(get_server_certificate(("127.0.0.1", place.port or 0), ca_certs=str(signer.file)))
    assert [shown.index(each) for each in shown] == [0, 1, 1]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_that_may_only_read_asks_for_more_once_it_needs_that(hosted: Hosted, mode: ConnectMode) -> None:
    client, hosted.authority.consents = hosted.client(), ("read",)
    async with client.connected(mode) as session:
        assert not (await session.call_tool("Degree", {"entity": "Q17"})).is_error
        client.taken()
        hosted.authority.consents = SCOPES
        answer = await session.call_tool("memory-append", APPEND)
    assert not answer.is_error
    assert client.taken()[:4] == ["server POST /mcp 403", *GRANTED, CALLED]
    assert client.wallet.tokens is not None
    assert client.wallet.tokens.scope == "read memory"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_goes_on_after_its_token_expired_and_the_keys_were_changed(
    hosted: Hosted, mode: ConnectMode
) -> None:
    client = hosted.client()
    async with client.connected(mode) as session:
        await session.list_tools()
        client.expire()
        client.taken()
        for expected in (["login POST /realms/team/token 200", CALLED], [CALLED]):
            hosted.authority.rotate()
            before = hosted.authority.requests.count(KEYS_READ)
            assert not (await session.call_tool("Degree", {"entity": "Q17"})).is_error
            assert client.taken() == expected
            assert hosted.authority.requests.count(KEYS_READ) == before + len(expected) - 1


async def test_a_memory_is_of_the_person_who_logged_in_whatever_the_client(hosted: Hosted) -> None:
    async with hosted.client().connected() as session:
        memory = {"memory": reply_of(await session.call_tool("memory-append", APPEND)).data["memory"]}
    async with hosted.client("sdk").connected() as session:
        assert not (await session.call_tool("memory-read", memory)).is_error
    hosted.authority.subject = "bob"
    async with hosted.client().connected() as session:
        assert (await session.call_tool("memory-read", memory)).is_error


@dataclass(frozen=True)
class Connector:
    """How a product logs in, as far as servers see it.

    Args:
        redirects: What it registers, or what its document says.
        redirect: Where it is sent back to.
        has_document: Whether its id is the address of a document where the authorization server takes those.
        challenged: Whether it reads in the refusal where the metadata is, or tries the known places in turn.
    """

    redirects: tuple[str, ...]
    redirect: str
    has_document: bool
    challenged: bool


HOSTED_CLAUDE = "https://claude.ai/api/mcp/auth_callback"
IN_CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback"
IN_CODE = "http://127.0.0.1:33418/"
CONNECTORS = {
    "Claude": Connector((HOSTED_CLAUDE,), HOSTED_CLAUDE, has_document=True, challenged=True),
    "Claude Code": Connector(
        ("http://localhost/callback", "http://127.0.0.1/callback"),
        "http://localhost:51234/callback",
        has_document=True,
        challenged=True,
    ),
    "Cursor": Connector(
        (IN_CURSOR, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"),
        IN_CURSOR,
        has_document=False,
        challenged=False,
    ),
    "VS Code": Connector((IN_CODE, "https://vscode.dev/redirect"), IN_CODE, has_document=False, challenged=True),
    "VS Code, challenge lost": Connector((IN_CODE,), IN_CODE, has_document=True, challenged=False),
}
REDIRECTS = {"sdk": (CALLBACK,)} | {name: each.redirects for name, each in CONNECTORS.items()}


@pytest.mark.parametrize("name", CONNECTORS)
async def test_the_requests_of_a_connector_find_all_that_it_needs(hosted: Hosted, name: str) -> None:
    connector, client = CONNECTORS[name], hosted.client()
    assert (await _connected(connector, client, f"{hosted.documents}?{quote(name)}")).status_code == 200
    registered = [] if connector.has_document else REGISTERED
    assert client.taken() == [*FOUND, *registered, *GRANTED, CALLED]


async def _connected(connector: Connector, client: SigningIn, document: str) -> httpx2.Response:
    """Send what a connector sends, and return the answer to its first message with a token."""
    server = urlsplit(client.url)
    async with client.http() as http:
        refused = await http.post(client.url, json=HELLO, headers=ACCEPTED)
        challenge = dict(re.findall(r'(\w+)="([^"]*)"', refused.headers["www-authenticate"]))
        known = client.url.replace(server.path, PROTECTED)
        places = [challenge["resource_metadata"]] if connector.challenged else [known + server.path, known]
        protected = await _first(http, places)
        # VS Code takes no metadata of any other URL than that which it was given.
        assert protected["resource"] == client.url
        issuer = urlsplit(_TEXTS.validate_python(protected["authorization_servers"])[0])
        places = [each.format(path=issuer.path) for each in (OAUTH, OPENID_INSERTED, OPENID_APPENDED)]
        login = await _first(http, [issuer._replace(path=each).geturl() for each in places])
        assert login["code_challenge_methods_supported"] == ["S256"]
        if connector.has_document:
            assert login["client_id_metadata_document_supported"] is True
            client_id = document
        else:
            about = {"redirect_uris": connector.redirects, "token_endpoint_auth_method": "none"}
            client_id = (await http.post(str(login["registration_endpoint"]), json=about)).json()["client_id"]
        common = {"client_id": client_id, "redirect_uri": connector.redirect, "resource": client.url}
        asked = {**common, **CHALLENGE, "scope": challenge["scope"], "state": "s"}
        sent_back = await http.get(str(login["authorization_endpoint"]), params=asked)
        assert sent_back.headers["location"].startswith(f"{connector.redirect}?")
        code = httpx2.URL(sent_back.headers["location"]).params["code"]
        form = {**common, "grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        token = (await http.post(str(login["token_endpoint"]), data=form)).json()["access_token"]
        return await http.post(client.url, json=HELLO, headers={**ACCEPTED, "authorization": f"Bearer {token}"})


async def _first(http: httpx2.AsyncClient, places: list[str]) -> Mapping[str, object]:
    """Return the first document that is there."""
    for place in places:
        answer = await http.get(place)
        if answer.status_code == 200:
            return _OBJECT.validate_json(answer.content)
    raise AssertionError(f"There is nothing at {places}.")


@pytest.mark.parametrize(
    ("set_to", "page", "client_id"),
    [
        ({}, "{root}", "{root}client.json"),
        (
            {"KG_SEXTANT_HOSTING__URL": "https://kg.example.org/kg/mcp", "KG_SEXTANT_HOSTING__PAGE_CLIENT_ID": "page"},
            "https://kg.example.org/kg/",
            "page",
        ),
    ],
    ids=["by its document", "behind a proxy, by the id that it was registered by"],
)
def test_the_page_may_ask_the_authorization_server_and_says_what_it_is_there(
    tmp_path: Path, set_to: dict[str, str], page: str, client_id: str
) -> None:
    with authorizing(TENANT) as authority, serving(tmp_path, authority, **set_to) as url:
        root = url.removesuffix("mcp")
        shown, described = (
            httpx2.get(root, timeout=PATIENCE_S),
            httpx2.get(f"{root}client.json", timeout=PATIENCE_S).json(),
        )
        again = httpx2.get(root, headers={"if-none-match": shown.headers["etag"]}, timeout=PATIENCE_S)
    [inside] = re.findall('http-equiv="Content-Security-Policy" content="(.+?)"', shown.text)
    assert shown.headers["content-security-policy"] == f"{inside}; frame-ancestors 'none'"
    assert f"; connect-src 'self' {_origin(authority.issuer)}; " in inside
    assert again.status_code == 304
    assert (described["client_id"], described["redirect_uris"]) == (
        client_id.format(root=root),
        [page.format(root=root)],
    )
    assert described["token_endpoint_auth_method"] == "none"


def test_ask_brings_a_hosted_server_the_token_of_the_settings(cli: CommandLine, hosted: Hosted) -> None:
    asked = ("ask", "What is the capital of Japan?", "--server", hosted.url)
    token, foreign = (hosted.authority.access_token(aud=each) for each in (hosted.url, "https://other.example/mcp"))
    answered = cli.run(*asked, KG_SEXTANT_SERVER_TOKEN=token)
    assert (answered.code, "Tokyo (Q1490)" in answered.out) == (4, True)
    for refused in (cli.run(*asked), cli.run(*asked, KG_SEXTANT_SERVER_TOKEN=foreign)):
        assert (refused.code, "server_token" in refused.err, foreign in refused.err) == (1, True, False)


REFUSED: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "nothing": ({}, {}, ""),
    "a challenge that is the verifier itself": ({"code_challenge_method": "plain"}, {}, "invalid_request"),
    "no challenge": ({"code_challenge": ""}, {}, "invalid_request"),
    "an address of somebody else": ({"redirect_uri": "https://evil.example/"}, {}, "invalid_request"),
    "an unknown client": ({"client_id": "unknown"}, {}, "invalid_client"),
    "another verifier": ({}, {"code_verifier": "w" * 43}, "invalid_grant"),
    "another address": ({}, {"redirect_uri": "http://127.0.0.1:1/callback"}, "invalid_grant"),
    "another resource": ({}, {"resource": "https://other.example/mcp"}, "invalid_target"),
    "a secret that it has not": ({}, {"client_secret": "guess"}, "invalid_client"),
    "more scopes than were granted": ({}, {"scope": "read memory"}, "invalid_scope"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_the_authorization_server_of_these_tests_refuses_what_oauth_forbids(hosted: Hosted, wrong: str) -> None:
    hosted.authority.add_client(
        ClientRecord(client_id="known", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    )
    asking, exchanging, expected = REFUSED[wrong]
    issuer, common = hosted.authority.issuer, {"client_id": "known", "redirect_uri": CALLBACK, "resource": hosted.url}
    reply = httpx2.get(f"{issuer}/authorize", params={**common, **CHALLENGE, **asking})
    back = dict(httpx2.URL(reply.headers["location"]).params) if reply.status_code == 302 else reply.json()
    if "code" not in back:
        assert back["error"] == expected
        return
    form = {**common, "grant_type": "authorization_code", "code": back["code"], "code_verifier": VERIFIER, **exchanging}
    assert httpx2.post(f"{issuer}/token", data=form).json().get("error", "") == expected
    assert httpx2.post(f"{issuer}/token", data=form).json()["error"].startswith("invalid_")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
