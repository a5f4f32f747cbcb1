"""A server that is far away: TLS in front of one on loopback, and a round trip that takes its time."""

import asyncio
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.engines.listening import READ_BYTES, hang_up, listening


@contextmanager
def far_away(port: int, *, round_trip_s: float, folder: Path) -> Generator[tuple[int, Path]]:
    """Give the port of a TLS server, a round trip away, that passes everything to `port`, and the file to trust.

    Connecting costs a round trip for TCP and what TLS needs on top, as it does over a network.

    Args:
        port: A server on loopback that speaks plainly.
        round_trip_s: How many seconds pass until something sent comes back.
        folder: Where the certificate's file goes.
    """
    certificate = folder / "certificate.pem"
    tls = _certified(certificate)
    with listening(_Passage(port, 0.0), tls=tls) as inner, listening(_Passage(inner, round_trip_s / 2)) as outer:
        yield outer, certificate


class _Passage:
    """Passes bytes in both directions, each after a delay."""

    def __init__(self, port: int, delay_s: float) -> None:
        self._port = port
        self._delay_s = delay_s

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The client's handshake with this end took no time at all.
        await asyncio.sleep(2 * self._delay_s)
        beyond, onward = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass(reader, onward))
                tasks.create_task(self._pass(beyond, writer))
        except* OSError:
            # One side has gone, and so will the other.
            pass
        finally:
            await hang_up(onward)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def arrive() -> None:
            while True:
                due, content = await on_the_way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not content:
                    writer.close()
                    return
                writer.write(content)
                await writer.drain()

        arriving = asyncio.create_task(arrive())
        try:
            content = b"-"
            while content:
                content = await reader.read(READ_BYTES)
                on_the_way.put_nowait((loop.time() + self._delay_s, content))
            await arriving
        finally:
            arriving.cancel()


def _certified(file: Path) -> ssl.SSLContext:
    """Make a certificate for loopback that vouches for itself, keep it in `file`, and return what a server needs."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(public)
    both = file.with_name("server.pem")
    both.write_bytes(public + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context
