"""A web service on loopback that answers GET and POST requests, and certificates for such services."""

import json
import ssl
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service answers: a body, sent as it is or as JSON, with a status and more headers."""

    content: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@contextmanager
def answering(answer: Callable[[bytes, str | None], Reply], tls: ssl.SSLContext | None = None) -> Generator[str]:
    """Answer every request from its body, or its query, and its `Authorization`; gives the URL of the service."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(self.path.partition("?")[2].encode())

        def do_POST(self) -> None:
            self._reply(self.rfile.read(int(self.headers["Content-Length"])))

        def _reply(self, body: bytes) -> None:
            reply = answer(body, self.headers["Authorization"])
            content = reply.content if isinstance(reply.content, bytes) else json.dumps(reply.content).encode()
            self.send_response(reply.status)
            headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **reply.headers}
            for name, value in headers.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # a client may not wait for its answer
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_HOURS_BACK = 1_000


@dataclass(frozen=True, slots=True)
class Authority:
    """A private authority: `file` is what clients trust."""

    file: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, folder: Path) -> "Authority":
        """Make an authority; its files go into `folder`."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder("authority", "authority", key, hours=_HOURS_BACK)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            builder.add_extension(constraints, critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        file = folder / "authority.pem"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(file, certificate, key)

    def client(self) -> ssl.SSLContext:
        """Return what a client needs that trusts this authority alone."""
        return ssl.create_default_context(cafile=self.file)

    def server(self, *, hours: int) -> ssl.SSLContext:
        """Return what a server on 127.0.0.1 needs, with a certificate for so many hours; below 0 it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            _builder("server", "authority", key, hours=hours)
            .add_extension(names, critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file = self.file.with_name("server.pem")
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, *, hours: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=_HOURS_BACK))
        .not_valid_after(now + timedelta(hours=hours))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
