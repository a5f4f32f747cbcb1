"""Who calls: what tells one client from another where many share a store."""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

from mcp.server.mcpserver import Context
from starlette.requests import HTTPConnection

_HOME_BITS: Final = 64
"""The part of an IPv6 address that is given to one home or firm, which may choose the rest for each request."""


def client_of(context: Context[None, Any]) -> str | None:
    """Return the address that a request comes from, or None where it does not come from the network.

    No header is asked, nor a session: a client could send another one each time.
    """
    request: object = context.request_context.request
    if not isinstance(request, HTTPConnection):
        return None
    return "http" if request.client is None else client_at(request.client.host)


def client_at(host: str) -> str:
    """Return the name of the client at an address; all addresses of an IPv6 network of 64 bits are one client."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), _HOME_BITS), strict=False))
