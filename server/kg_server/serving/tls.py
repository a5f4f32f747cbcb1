"""The server's certificate, read again when its files change."""

import logging
import ssl
from pathlib import Path

from kg_adapters.errors import InvalidRequest

logger = logging.getLogger(__name__)


class CurrentCertificate:
    """Shows each new connection the certificate that its files hold then; an unusable one is logged and not shown.

    Args:
        certificate: The file of the certificate, and of those up to its authority.
        key: The file of its key; None where that is in the same file.
    """

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._files = (certificate, key or certificate)
        self._state = self._states()
        self._shown = self._loaded()

    def context(self) -> ssl.SSLContext:
        """Return the context of a listener."""
        listening = self._loaded()
        # It is called in each handshake, also of clients that name no server.
        listening.sni_callback = lambda connection, _name, _context: self._show(connection)
        return listening

    def _show(self, connection: ssl.SSLObject) -> None:
        if (state := self._states()) != self._state:
            self._state = state
            try:
                self._shown = self._loaded()
            except InvalidRequest as error:
                logger.error("%s The one before is shown.", error)  # noqa: TRY400 - the message has the reason
        connection.context = self._shown

    def _states(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_state, self._files))

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            # A key with a passphrase is refused, instead of asking for that on the terminal.
            context.load_cert_chain(*self._files, password=str)
        except OSError as error:
            reason = error.strerror or "they are no certificate and key in PEM"
            raise InvalidRequest(
                f"The certificate {self._files[0]} cannot be used with the key {self._files[1]}: {reason}."
            ) from error
        return context


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
