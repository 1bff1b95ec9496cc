"""Compile the core to machine code with mypyc, into `build/compiled` (decision 0018).

The sources stay as they are, and run uncompiled too: that is how they are debugged. What is made
here is a copy of the package with extension modules beside its sources. Put it first in PYTHONPATH
to use it, as `make bench` does; `make wheel` puts it into a wheel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
TARGET = HOME / "build" / "compiled"
PACKAGE = HOME / "src" / "openmsmq"

COMPILED = [
    "api/framing.py",
    "manager/**/*.py",
    "protocol/**/*.py",
    "remote/clerks.py",
    "remote/conversation.py",
    "remote/elsewhere.py",
    "remote/readings.py",
    "remote/remote_read.py",
    "runtime/api/connection.py",
    "runtime/api/outflow.py",
    "runtime/http/burden.py",
    "runtime/http/connection.py",
    "runtime/http/conversation.py",
    "runtime/http/door.py",
    "runtime/http/sending/*.py",
    "runtime/http/srmp.py",
    "runtime/multicast/*.py",
    "runtime/rpc/connection.py",
    "runtime/rpc/desk.py",
    "runtime/server.py",
    "security/authentication/ntlm/*.py",
    "security/authentication/spnego/*.py",
    "storage/bundles/stretches.py",
    "storage/keys.py",
    "storage/memtable.py",
    "wire/extensions.py",
    "wire/likeness.py",
    "wire/message_bytes.py",
    "wire/packet_buffer.py",
    "wire/pgm/checksum.py",
    "wire/rpc/fragments.py",
    "wire/rpc/message_packets.py",
    "wire/srmp/*.py",
]
"""What runs for every message, except where the disk is written."""

LEFT_OUT = "(msgspec.Struct"
"""Modules that define such classes stay as they are: msgspec has compiled methods for them."""

SETUP = """
from mypyc.build import mypycify
from setuptools import setup
setup(
    name="openmsmq-compiled",
    packages=[],
    ext_modules=mypycify({modules!r}, opt_level="2", multi_file=True, group_name="openmsmq"),
)
"""


def modules() -> list[str]:
    """Return the files to compile, relative to the parent of the package."""
    found = {path for pattern in COMPILED for path in PACKAGE.glob(pattern)}
    return sorted(
        str(path.relative_to(PACKAGE.parent))
        for path in found
        if path.name != "__init__.py" and LEFT_OUT not in path.read_text(encoding="utf-8")
    )


def extensions() -> dict[str, str]:
    """Return the extension modules that were made, and where each belongs beside the package."""
    return {str(path): str(path.relative_to(TARGET)) for path in sorted(TARGET.rglob("*.so"))}


def fingerprint() -> str:
    """Return what the copy depends on: the interpreter, and every file by its content."""
    seen = hashlib.sha256(str(sysconfig.get_config_var("EXT_SUFFIX")).encode())
    files = (path for path in PACKAGE.rglob("*.*") if path.suffix != ".pyc")
    for source in [*sorted(files), Path(__file__)]:
        seen.update(str(source.relative_to(HOME)).encode())
        seen.update(source.read_bytes())
    return seen.hexdigest()


def main() -> int:
    """Make the copy, unless it is there."""
    stamp = TARGET / ".made"
    wanted = fingerprint()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return 0
    shutil.rmtree(TARGET, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, TARGET / PACKAGE.name, ignore=ignored)
    settings = "[mypy]\nstrict = True\nignore_missing_imports = True\n"
    (TARGET / "mypy.ini").write_text(settings, encoding="utf-8")
    (TARGET / "setup.py").write_text(SETUP.format(modules=modules()), encoding="utf-8")
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    command += ["-j", str(os.cpu_count() or 1)]
    print(f"compiling {len(modules())} modules, which takes a minute or two", flush=True)
    done = subprocess.run(command, cwd=TARGET, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
        print("This needs a C compiler: scripts/ensure-compiler installs one.", file=sys.stderr)
        return 1
    shutil.rmtree(TARGET / "build", ignore_errors=True)
    stamp.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
