"""What docs/start.md tells people to type works as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

START = Path(__file__).parents[2] / "docs/start.md"


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", START.read_text(encoding="utf-8"), re.DOTALL | re.M)
    lines = "".join(blocks).splitlines()
    words = [shlex.split(line) for line in lines]
    return [line[1:] for line in words if line[0].endswith("openmsmq") and line[1] != "serve"]


def test_every_command_of_the_first_steps_works(openmsmq, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = [openmsmq(*arguments) for arguments in commands()]
    assert len(shown) == 14
    assert "a pot of tea" in shown[2].out
    assert "pay 5 to Ann" in shown[7].out
    assert not any(result.err for result in shown)


def test_the_first_message_takes_five_commands():
    setup, first, *_ = re.findall(
        r"^```sh\n(.*?)^```", START.read_text(encoding="utf-8"), re.DOTALL | re.M
    )
    assert len((setup + first).splitlines()) == 5
