"""Variables of the network that every program honours: proxies, exceptions from them, certificates."""

from __future__ import annotations

import asyncio
import datetime
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from surefoot.core.history import UserWords
from surefoot.errors import ProviderUnreachable
from surefoot.providers import contracts
from surefoot.providers.chat import ChatWire
from surefoot.providers.client import Client
from surefoot.providers.endpoints import Endpoint, EndpointLimits
from surefoot.providers.port import ModelRequest

HOST = "model.invalid"
"""A name that no server has: whatever arrives came by the variables."""
AMPLE = EndpointLimits(connect_seconds=60.0, first_byte_seconds=60.0, idle_seconds=60.0, total_seconds=90.0)
_STEP = {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]}
REPLY = (
    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n"
    + f"data: {json.dumps(_STEP)}\n\ndata: [DONE]\n\n".encode()
)
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def _none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@dataclass
class Proxy:
    """Answers every request itself; a tunnel becomes TLS with the certificate of `HOST`."""

    secured: ssl.SSLContext | None = None
    url: str = ""
    seen: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await self._head(reader)
            if first.startswith("CONNECT") and self.secured is not None:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await writer.drain()
                await writer.start_tls(self.secured)
                await self._head(reader)
            writer.write(REPLY if self.secured is not None or not first.startswith("CONNECT") else b"")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side did not trust us, or was only looking
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> str:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        length = next(
            (int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0
        )
        await reader.readexactly(length)
        self.seen.append(lines[0])
        return lines[0]


@asynccontextmanager
async def proxied(secured: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    proxy = Proxy(secured)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield proxy


async def ask(scheme: str) -> str:
    there = Endpoint(
        "far", f"{scheme}://{HOST}/v1", "chat", "compat/chat", "m", key=lambda: "sk-test", limits=AMPLE
    )
    request = ModelRequest("m", "s", (UserWords("t", "hi"),))
    async with Client() as client:
        return (await client.send(there, ChatWire(), contracts.resolve("compat/chat"), request)).text


def nowhere(host: object, *rest: object, **more: object) -> object:
    """No name server is asked by a test."""
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of `HOST` that nobody but its own file vouches for, and its key."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)]),
    )
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "public.pem", folder / "private.pem"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return public, private


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
async def test_ux_27_a_proxy_of_the_environment_carries_what_leaves_the_machine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxied() as proxy:
        monkeypatch.setenv(name, proxy.url)
        assert await ask("http") == "hello"
        assert proxy.seen == [f"POST http://{HOST}/v1/chat/completions HTTP/1.1"]


@pytest.mark.parametrize("exception", [HOST, ".invalid", "*"])
async def test_ux_27_what_no_proxy_names_goes_to_no_proxy(
    exception: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxied() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", exception)
        monkeypatch.setattr(socket, "getaddrinfo", nowhere)
        with pytest.raises(ProviderUnreachable, match="cannot be found"):
            await ask("http")
        assert proxy.seen == []


async def test_ux_27_secure_requests_pass_the_proxy_in_a_tunnel_and_trust_the_certificates_that_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    public, private = certificate(tmp_path)
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(public, private)
    async with proxied(secured) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(ProviderUnreachable, match="certificate or TLS failed"):
            await ask("https")
        assert proxy.seen == [f"CONNECT {HOST}:443 HTTP/1.1"]
        monkeypatch.setenv("SSL_CERT_FILE", str(public))
        assert await ask("https") == "hello"
        assert proxy.seen[1:] == [f"CONNECT {HOST}:443 HTTP/1.1", "POST /v1/chat/completions HTTP/1.1"]


async def test_ux_27_a_certificate_file_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    with pytest.raises(ProviderUnreachable, match="SSL_CERT_FILE"):
        await ask("https")
