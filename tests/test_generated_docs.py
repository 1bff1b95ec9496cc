"""The reference pages that come from the code are as the code says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from openmsmq.manager.queues import entries
from openmsmq.manager.transactions import states
from openmsmq.protocol import link, session_states

ROOT = Path(__file__).parents[1]
STATES = ROOT / "docs/internals/states.md"


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "scripts/generate_docs.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    for name in ("__init__.py", "cli_reference.py", "client_reference.py", "generate_docs.py"):
        text = (ROOT / "scripts" / name).read_text(encoding="utf-8")
        (tmp_path / "scripts" / name).write_text(text, encoding="utf-8")
    (tmp_path / "src").symlink_to(ROOT / "src")
    return tmp_path


def test_the_pages_in_the_repository_are_up_to_date():
    result = generate(ROOT, "--check")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_page_that_was_changed_by_hand_is_found_and_repaired(copy):
    assert generate(copy).returncode == 0
    page = copy / "docs/reference/errors.md"
    right = page.read_text(encoding="utf-8")
    page.write_text(right + "an opinion\n", encoding="utf-8")

    result = generate(copy, "--check")
    assert result.returncode == 1
    assert "docs/reference/errors.md" in result.stderr
    assert "limits.md" not in result.stderr
    assert page.read_text(encoding="utf-8") != right

    assert generate(copy).returncode == 0
    assert page.read_text(encoding="utf-8") == right


def test_unknown_arguments_are_refused_with_the_usage(copy):
    result = generate(copy, "--chek")
    assert result.returncode == 2
    assert "--check" in result.stderr
    assert not (copy / "docs").exists()


def verbs(name: str) -> set[str]:
    """Read from the sources what a class of both clients can be asked for."""
    tree = ast.parse((ROOT / "src/openmsmq/client/shells.py").read_text(encoding="utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return {
        target.id
        for node in found.body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Verb(")
        for target in node.targets
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    }


@pytest.mark.parametrize(
    ("shell", "name"),
    [
        ("AnyManager", "QueueManager"),
        ("_Secured", "QueueManager"),
        ("AnyQueue", "Queue"),
        ("_Secured", "Queue"),
        ("AnyTransaction", "Transaction"),
        ("AnyCursor", "Cursor"),
    ],
)
def test_the_reference_of_the_client_explains_every_verb_in_both_kinds(shell, name):
    waiting = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    awaited = (ROOT / "docs/reference/python-asyncio.md").read_text(encoding="utf-8")
    for verb in verbs(shell):
        assert f"\n#### {name}.{verb}\n" in waiting
        where = f"(python.md#{name.lower()}{verb})"
        assert f"[`await {verb}(…)`]{where}" in awaited


@pytest.mark.parametrize(("module", "page"), [("blocking", "python"), ("aio", "python-asyncio")])
def test_the_reference_has_what_a_client_has_of_its_own(module, page):
    source = (ROOT / f"src/openmsmq/client/{module}.py").read_text(encoding="utf-8")
    text = (ROOT / f"docs/reference/{page}.md").read_text(encoding="utf-8")
    kinds = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    seen = 0
    for name in ("QueueManager", "Queue", "Transaction", "Cursor"):
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        for node in kinds[name].body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                assert re.search(rf"\b{node.name}\(", section), (name, node.name)
                seen += 1
    assert seen > 8


def test_the_reference_of_the_client_shows_what_a_caller_sees():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    section = page.partition("\n#### Queue.peek\n")[2].partition("\n####")[0]
    signature = """peek(
    timeout: float | None = None,
    *,
    body_max_bytes: int | None = None,
) -> ReceivedMessage
"""
    assert signature in section
    assert "Look at the first message and leave it" in section
    for hidden in ("Steps[", "Handle", "take_kept", "gave_up", "api."):
        assert hidden not in page.replace("openmsmq.api.messages", ""), hidden


def arrows(title: str) -> set[tuple[str, str, str]]:
    """Read a diagram of the page of states: where from, on what, where to."""
    section = STATES.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    diagram = re.search(r"```mermaid\n(.*?)```", section, re.DOTALL)
    assert diagram is not None
    drawn = re.findall(r"^ +(\S+) --> (\w+)(?:: (.+))?$", diagram[1], re.MULTILINE)
    return {
        (source, label, target) for source, target, labels in drawn for label in labels.split(", ")
    }


def test_the_states_of_a_session_are_drawn_as_the_code_has_them():
    drawn = {arrow for arrow in arrows("A session") if arrow[0] not in ("[*]", "CONNECTING")}
    assert drawn == {
        (state.name, packet.__name__, target.name)
        for (state, packet), target in session_states.TRANSITIONS.items()
    }


def test_the_states_of_a_link_are_drawn_as_the_code_has_them():
    drawn = arrows("A link")
    attempts = {target for source, _, target in drawn if source == "next"}
    ways = {arrow for arrow in drawn if arrow[0] not in ("[*]", "next")}
    straight = {arrow for arrow in ways if arrow[2] != "next"}
    table = {
        (state.name, given.value, target.name)
        for (state, given), targets in link.TRANSITIONS.items()
        for target in targets
    }
    assert straight <= table
    assert {arrow[2] for arrow in table - straight} == attempts
    assert {arrow[:2] for arrow in table - straight} == {
        arrow[:2] for arrow in ways if arrow[2] == "next"
    }


@pytest.mark.parametrize(
    ("title", "table", "states", "events"),
    [
        ("An entry", entries.TRANSITIONS, entries.EntryState, entries.EntryEvent),
        ("A transaction", states.TRANSITIONS, states.TransactionState, states.TransactionEvent),
    ],
)
def test_a_life_is_drawn_as_the_code_has_it_and_each_word_explained(title, table, states, events):
    drawn = {arrow for arrow in arrows(title) if arrow[0] != "[*]"}
    assert drawn == {
        (state.name, event.value, target.name) for (state, event), target in table.items()
    }
    assert {name for state, _, target in drawn for name in (state, target)} == {
        state.name for state in states
    }
    section = STATES.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    section = section.partition("\n## ")[0]
    for word in [*(state.name for state in states), *(event.value for event in events)]:
        assert f"\n| `{word}` | " in section


def test_every_state_of_a_session_is_drawn():
    names = {name for source, _, target in arrows("A session") for name in (source, target)}
    assert names - {"[*]"} == {state.name for state in session_states.SessionState} - {"CLOSED"}


@pytest.mark.parametrize("reason", session_states.CloseReason)
def test_every_reason_to_end_a_session_is_told(reason):
    row = f"| `{reason.name}` | {reason.sentence} | `{reason.status.name}` |"
    assert row in STATES.read_text(encoding="utf-8")
