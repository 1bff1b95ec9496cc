"""The bench of the console has viewers who see pages, and notices when they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import console
from bench.measure import Effort
from bench.peers import openmsmq as single

SMALL = Effort(rounds=1)


@pytest.mark.slow
def test_all_figures_come_of_pages_and_messages(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The path of a Unix socket below it has at most 107 bytes, so its name is short.
    monkeypatch.setenv("OPENMSMQ_BENCH_DIRECTORY", str(tmp_path_factory.mktemp("b")))
    monkeypatch.setattr(console, "LOOK_S", 0.2)
    found = {figure.name: figure for figure in console.run(SMALL)}
    bars = {name: figure.bar for name, figure in found.items() if figure.bar}
    assert bars == {
        "list of 100 queues, median": 300.0,
        "page of a queue of 1,250, median": 100.0,
        "with 10 viewers, by alone": 0.95,
    }
    assert all(figure.value for figure in found.values())


def test_a_viewer_who_sees_no_page_is_a_failure_of_the_bench(tmp_path: Path) -> None:
    home = tmp_path / "openmsmq"
    with single.serve(tmp_path) as (address, _), console.console(address, home) as there:
        nobody = console.Browser(there)
        with pytest.raises(AssertionError, match="403"), nobody:
            nobody.sign_in("openmsmq_nonsense")
        with pytest.raises(AssertionError, match="303"), nobody:
            nobody.look("/")
