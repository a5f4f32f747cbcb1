"""What `serve --http` is reached by and who may call it: tokens, logins, certificates, and names."""

from functools import partial
from ssl import SSLContext
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from kg_adapters.errors import InvalidRequest
from kg_server.commands.output import warn
from kg_server.mcp_server import SextantServer
from kg_server.serving.http import MCP_PATH, CheckedRequests, ServerNames, is_loopback
from kg_server.serving.limits import CallLimits
from kg_server.serving.login import Login, Verifier, jwt_login, needed_by
from kg_server.serving.messages import MAX_MESSAGE_BYTES
from kg_server.serving.public import PublicPages, Readiness, server_card
from kg_server.serving.tls import CurrentCertificate
from kg_server.serving.tokens import TokenFile
from kg_server.settings import APP, HostingSettings, Settings


def tokens_of(settings: Settings, host: str, *, insecure: bool) -> TokenFile | None:
    """Return the file of tokens that let callers in; None where no token does.

    Where only this machine can call, it counts if a setting names it; elsewhere also if the default file holds tokens.

    Raises:
        InvalidRequest: There is no login of any kind, and other machines could call.
    """
    tokens = TokenFile(settings.tokens_file)
    named, elsewhere = settings.hosting.tokens is not None, _place_of_others(settings.hosting, host)
    held = bool(tokens.tokens()) if named or elsewhere else False
    if named and not held:
        warn(f"Nobody has a token yet: {tokens.path} holds none. {APP} token add NAME makes one.")
    if named or held:
        return tokens
    if elsewhere and settings.hosting.issuer is None:
        if not insecure:
            raise InvalidRequest(
                f"Nobody has to log in, and other machines can reach this server by {elsewhere}. Make a token for each "
                f"caller with {APP} token add NAME, or set hosting.issuer to your authorization server; --insecure "
                "serves the graph and its memories to whoever can reach this server."
            )
        warn(
            f"--insecure: whoever can reach this server by {elsewhere} can read the graph, and read and extend "
            "memories, without a login."
        )
    return None


def _place_of_others(hosting: HostingSettings, host: str) -> str:
    """Return by what other machines reach the server; nothing where they do not.

    A setting is named, not shown: it may hold what belongs elsewhere, such as a key.
    """
    hosts = tuple(urlsplit(f"//{each}").hostname or "" for each in hosting.hosts)
    named = {
        "the host of --http": (host,),
        "the host of hosting.url": (urlsplit(hosting.url or "").hostname or "",),
        "hosting.hosts": hosts,
    }
    for name, places in named.items():
        if any(each and not is_loopback(each) for each in places):
            return name
    return "a proxy" if hosting.proxies else ""


def login_of(settings: Settings, tokens: TokenFile | None, served_at: str) -> Login | None:
    """Return who may call an endpoint; None for everybody.

    Raises:
        InvalidRequest: The settings of the authorization server contradict each other or are not safe.
    """
    hosting, place = settings.hosting, urlsplit(served_at)
    elsewhere = not is_loopback(place.hostname or "")
    encrypted = "https" in {place.scheme, urlsplit(hosting.url or "").scheme} or hosting.proxies
    if (tokens or hosting.issuer) and elsewhere and not encrypted:
        warn(
            "Tokens reach this server unencrypted. Set hosting.tls_certificate, or name the proxy that encrypts in "
            "hosting.proxies."
        )
    if hosting.issuer is not None:
        if hosting.url is None and elsewhere:
            raise InvalidRequest(
                "With hosting.issuer, set hosting.url to the URL by which clients call this server, such as "
                "https://kg.example.org/mcp: tokens are issued for it."
            )
        return jwt_login(hosting, hosting.issuer, tokens, hosting.url or served_at)
    if (hosting.jwks_url, hosting.audience, hosting.page_client_id) != (None, None, None):
        raise InvalidRequest(
            "hosting.jwks_url, hosting.audience and hosting.page_client_id need hosting.issuer, the server that issues "
            "tokens."
        )
    return None if tokens is None else Login(Verifier(tokens), scopes=needed_by(hosting))


def tls_of(settings: Settings) -> SSLContext | None:
    """Return how connections are encrypted; None where they are not, or by a proxy.

    Raises:
        InvalidRequest: The certificate cannot be used.
    """
    if settings.hosting.tls_certificate is None:
        if settings.hosting.tls_key is not None:
            raise InvalidRequest("hosting.tls_key needs hosting.tls_certificate, the certificate of the key.")
        return None
    return CurrentCertificate(settings.hosting.tls_certificate, settings.hosting.tls_key).context()


def application(
    server: SextantServer,
    settings: Settings,
    login: Login | None,
    limits: CallLimits | None,
    readiness: Readiness,
    *,
    own_page: bool = False,
) -> ASGIApp:
    """Return what answers requests over HTTP: the server, behind all checks and limits.

    Args:
        server: The server.
        settings: The settings.
        login: Who may call; None for everybody.
        limits: Limits for each caller; None for none.
        readiness: Whether it can answer.
        own_page: Whether its own page alone may call, of the pages on this machine.
    """
    # Both are left to CheckedRequests, which compares Host and Origin exactly.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    for route in () if login is None else login.routes:
        server.custom_route(route.path, ["GET", "OPTIONS"])(route.endpoint)
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        stateless_http=True,
        transport_security=security,
        max_request_body_size=MAX_MESSAGE_BYTES,
    )
    names = ServerNames.of(settings.hosting, own_page=own_page)
    if limits is None:
        checked = CheckedRequests(app, MAX_MESSAGE_BYTES, names, login)
    else:
        forbidden = partial(limits.note_refused, tools=server.tool_names, error="403")
        limited = partial(limits.before, tools=server.tool_names)
        checked = CheckedRequests(app, MAX_MESSAGE_BYTES, names, login, forbidden, limited)
    page = None if login is None else login.page
    return PublicPages(checked, readiness, server_card(server, settings.hosting.url), page)
