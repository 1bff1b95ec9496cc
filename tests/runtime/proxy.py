"""nginx in front of a queue manager, by the configuration that the examples have."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.runtime.raw_client import wait_until

EXAMPLE = Path(__file__).parents[2] / "examples/nginx/openmsmq.conf"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def why_not() -> str:
    """Return why there can be no proxy here; nothing if there can."""
    return "" if NGINX else "nginx is not installed: run scripts/ensure-nginx"


@contextlib.contextmanager
def proxy(folder: Path, address: str, port: int, behind: str, certificate: str) -> Iterator[None]:
    """Run nginx at an address, before what listens on `behind`; the example fits but for places."""
    folder.mkdir()
    configuration = _replaced(
        EXAMPLE.read_text(encoding="utf-8"),
        {
            "server 127.0.0.1:8080;": f"server {behind};",
            "listen 443 ssl;": f"listen {address}:{port} ssl;",
            "/etc/ssl/msmq.example.com.pem": certificate,
            "/etc/ssl/private/msmq.example.com.key": certificate,
            "server_name msmq.example.com;": f"server_name {address};",
        },
    )
    places = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off;\n{places}\n{configuration} }}\n",
        encoding="utf-8",
    )
    assert NGINX is not None
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_open(address, port))
            yield
        finally:
            process.terminate()


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for place, other in places.items():
        assert text.count(place) == 1, f"the example has no {place}"
        text = text.replace(place, other)
    return text


def is_open(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False
