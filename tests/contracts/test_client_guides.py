"""The snippets of the guides run, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openmsmq.storage.memory import MemoryStore
from tests.server_thread import start_server

GUIDES = Path(__file__).parents[2] / "docs/guides"


@pytest.mark.parametrize(
    ("guide", "wanted"),
    [
        (
            "send-and-receive.md",
            [
                "order 1 order",
                "bolt",
                "['first', 'second', 'third']",
                "careful",
                "too late True",
                "twelve",
            ],
        ),
        ("transactions.md", ["4", "what is rubbish?", "rubbish", "5"]),
        (
            "send-to-another-computer.md",
            ["1 ", "['DIRECT=OS:beta\\\\PRIVATE$\\\\orders']", "order 2", "1 deleted"],
        ),
    ],
)
def test_a_guide_runs(
    guide: str, wanted: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippets
    names: dict[str, object] = {}
    with start_server(str(tmp_path), store=MemoryStore()) as server:
        for snippet in snippets:
            code = snippet.replace("127.0.0.2", f"{server.host}:{server.port}")
            exec(compile(code, guide, "exec"), names)
        names["manager"].close()  # type: ignore[attr-defined]
    printed = capsys.readouterr().out
    assert [text for text in wanted if text not in printed] == []
