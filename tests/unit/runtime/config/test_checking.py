"""All that is wrong with a file, and where."""

from __future__ import annotations

from pathlib import Path

from openmsmq.runtime.config.checking import PROBLEMS_MAX_COUNT, Problem, check

BAD = r"""# A file with many mistakes
nmae = "ALPHA"
api_port = "many"

[ hosts ]  # of others
"beta" = "no address"

[parameters]
UsePings = true

[alarms]
look_s = 0

[alarms."disk"]
disk_precent = 90

[alarms.both]
messages = 1
bytes = 1

[peers.office]
addresses = "10.0.0.300"

[active_directory]
servers = []
"""


def problems(tmp_path: Path, text: str, **variables: str) -> list[Problem]:
    file = tmp_path / "openmsmq.toml"
    file.write_text(text, encoding="utf-8")
    return check(str(file), variables, data="d")


def test_all_mistakes_of_a_file_are_told_with_key_and_line(tmp_path: Path) -> None:
    found = problems(tmp_path, BAD)
    assert {(each.key, each.line) for each in found} == {
        ("nmae", 2),
        ("api_port", 3),
        ("hosts.beta", 6),
        ("parameters.UsePings", 9),
        ("alarms.look_s", 12),
        ("alarms.disk.disk_precent", 15),
        ("alarms.both", 17),
        ("peers.office.addresses", 22),
        ("active_directory", 24),
    }
    sentences = "\n".join(each.sentence for each in found)
    assert "did you mean 'name'?" in sentences
    assert "did you mean 'UsePing'?" in sentences
    assert "did you mean 'disk_percent'?" in sentences


def test_what_is_in_order_has_no_problems_whether_it_says_where_the_data_is_or_not(
    tmp_path: Path,
) -> None:
    assert problems(tmp_path, 'name = "ALPHA"\n') == []
    assert problems(tmp_path, 'name = "ALPHA"\ndata = "d"\n') == []


def test_what_does_not_fit_together_is_told_without_a_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, 'tls_key = "key.pem"\n')
    assert found.line == 0
    assert "tls_cert" in found.sentence


def test_a_variable_counts_as_it_would_at_the_start(tmp_path: Path) -> None:
    assert problems(tmp_path, 'tls_key = "key.pem"\n', OPENMSMQ_TLS_CERT="cert.pem") == []
    (found,) = problems(tmp_path, "", OPENMSMQ_API_PROT="1")
    assert "OPENMSMQ_API_PORT" in found.sentence


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, 'name = "A"\nquota_kb = = 1\n')
    assert found.line == 2


def test_a_file_that_is_not_there_is_one_problem(tmp_path: Path) -> None:
    (found,) = check(str(tmp_path / "absent.toml"), {}, data="d")
    assert "cannot read" in found.sentence


def test_no_more_problems_are_told_than_somebody_reads(tmp_path: Path) -> None:
    text = "".join(f"wrong_{number} = 1\n" for number in range(PROBLEMS_MAX_COUNT + 10))
    assert len(problems(tmp_path, text)) == PROBLEMS_MAX_COUNT
