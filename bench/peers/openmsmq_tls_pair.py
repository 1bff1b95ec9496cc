"""The same two queue managers, with their sessions over mutual TLS."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.peers import openmsmq_pair
from bench.peers.openmsmq_pair import SOURCE, TARGET, serve_one
from bench.peers.process import free_port
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.operating_system.key_files import make_session_files

NAME: Final = "OpenMSMQ, two queue managers over TLS"
_ADDRESSES: Final = {"source": SOURCE, "target": TARGET}

missing = openmsmq_pair.missing
prepare = openmsmq_pair.prepare
produce = openmsmq_pair.produce
consume = openmsmq_pair.consume


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run both; gives their addresses, separated by a comma."""
    ports = free_port(), free_port()
    home = directory / "tls"
    for name in _ADDRESSES:
        folder = home / name
        make_session_files(folder / "own.pem", folder / "own.key", name, read_clocks().unix_s, 1)
    with contextlib.ExitStack() as running:
        started = [
            running.enter_context(_serve(home, name, other, ports))
            for name, other in (("source", "target"), ("target", "source"))
        ]
        yield ",".join(address for address, _ in started)


def _serve(
    home: Path, name: str, other: str, ports: tuple[int, int]
) -> contextlib.AbstractContextManager[tuple[str, int]]:
    folder = home / name
    (folder / "peers").mkdir()
    shutil.copy(home / other / "own.pem", folder / "peers" / f"{other}.pem")
    tables = (
        f'[session_tls]\ncertificate = "{folder}/own.pem"\nkey = "{folder}/own.key"\n'
        f'peer_certificates = "{folder}/peers"\nport = {ports[1]}\nrequired = true\n'
        f'[peers.{other}]\naddresses = ["{_ADDRESSES[other]}"]\ntls = true\n'
    )
    return serve_one(home, name.upper(), _ADDRESSES[name], ports[0], tables=tables)
