"""Addresses that a server listens on."""

import os
import socket
from typing import Final

from kg_adapters.errors import InvalidRequest

HTTP_HOST: Final = "127.0.0.1"
HTTP_PORT: Final = 8_000
MAX_PORT: Final = 65_535


def parse_address(text: str, given_by: str = "--http", default_port: int = HTTP_PORT) -> tuple[str, int]:
    """Read `HOST:PORT`, `HOST`, `:PORT` or `PORT`; a part that is left out has its default.

    Args:
        text: The address.
        given_by: What messages call the option.
        default_port: The port where there is none.

    Raises:
        InvalidRequest: It has none of these forms.
    """
    host, colon, port = text.rpartition(":")
    if (not colon and not text.isdecimal()) or text.endswith("]"):
        host, port = text, ""
    if (port and not (port.isdecimal() and int(port) <= MAX_PORT)) or not text:
        raise InvalidRequest(
            f"{given_by} takes HOST:PORT, as in 127.0.0.1:{default_port}; what it was given is not that."
        )
    return host.strip("[]") or HTTP_HOST, int(port) if port else default_port


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        InvalidRequest: Nothing can listen there.
    """
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise cannot_listen(host, port, error) from error
    # Without it each answer waits some 40 ms for the client's acknowledgement of its headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def cannot_listen(host: str, port: int, error: OSError) -> InvalidRequest:
    """Return the error for an address that cannot be listened on."""
    # Errors of resolving a name are numbered apart from those of the system, below zero on Linux.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "there is no such host"
    return InvalidRequest(f"Cannot listen on {host} port {port}: {reason}. Choose another port, or 0 for any.")
