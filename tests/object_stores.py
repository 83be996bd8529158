"""Servers on the loopback address that speak the protocols of object stores, for tests."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

AZURITE = Path(__file__).parents[1] / "build" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
"""Microsoft's emulator of Azure's storage, where ``make test-engines`` installs it."""
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The public account that Azurite documents."""
START_SECONDS = 60


@contextmanager
def s3_store(folder: Path) -> Iterator[dict[str, str]]:
    """Start moto's S3 server, and return the environment variables that lead to it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()


@contextmanager
def google_store(folder: Path) -> Iterator[dict[str, str]]:
    """Start gcp-storage-emulator, and return the environment variable that leads to it."""
    from gcp_storage_emulator.server import create_server

    port = free_port()
    server = create_server("127.0.0.1", port, in_memory=True)
    server.start()
    try:
        yield {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}
    finally:
        server.stop()


@contextmanager
def azure_store(folder: Path) -> Iterator[dict[str, str]]:
    """Start Azurite, and return the environment variable that leads to it."""
    port = free_port()
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent"]
    command = [str(AZURITE), *options, "--skipApiVersionCheck", "--disableTelemetry"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    try:
        _wait_for(port, server)
        address = f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}"
        yield {
            "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;AccountName={AZURITE_ACCOUNT};"
            f"AccountKey={AZURITE_KEY};BlobEndpoint={address};"
        }
    finally:
        server.terminate()
        server.wait()


STORES = {
    "s3": (s3_store, ("moto", "s3fs")),
    "gs": (google_store, ("gcp_storage_emulator", "gcsfs")),
    "az": (azure_store, ("adlfs",)),
}
"""By the begin of a URL, the server and the modules that it needs."""


def missing(store: str) -> str | None:
    """Return why a store cannot be started here, or None."""
    from importlib.util import find_spec

    absent = [module for module in STORES[store][1] if find_spec(module) is None]
    if absent:
        return f"{', '.join(absent)} not installed: 'make test-engines' installs it"
    if store == "az" and not (AZURITE.exists() and shutil.which("node")):
        return "Azurite is not installed: 'make test-engines' installs it where there is npm"
    return None


def free_port() -> int:
    """Return a port of the loopback address that no server uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
