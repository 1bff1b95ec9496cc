"""Where the values of a configuration come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.loading import Source, load, loaded_by_program


def test_each_value_knows_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text('name = "ALPHA"\nquota_kb = 7\nlog_level = "error"\n', encoding="utf-8")
    loaded = load(
        {"data": "d", "log_level": "debug", "site": None},
        {"OPENMSMQ_QUOTA_KB": "9", "OPENMSMQ_LOG_LEVEL": "warning"},
        str(file),
    )
    assert loaded.sources["name"] is Source.FILE
    assert (loaded.config.quota_kb, loaded.sources["quota_kb"]) == (9, Source.ENVIRONMENT)
    assert (loaded.config.log_level, loaded.sources["log_level"]) == ("debug", Source.FLAG)
    assert "site" not in loaded.sources


def test_the_file_is_read_again_with_the_variables_and_flags_of_the_start(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text("quota_kb = 7\n", encoding="utf-8")
    loaded = load({"data": "d"}, {"OPENMSMQ_SITE": "north", "HOME": "/x"}, str(file))
    assert loaded.environment == {"OPENMSMQ_SITE": "north"}
    file.write_text("quota_kb = 8\n", encoding="utf-8")
    again = loaded.again()
    assert (again.config.quota_kb, again.config.site, again.config.data) == (8, "north", "d")
    file.write_text("quota = 8\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="did you mean 'quota_kb'"):
        loaded.again()


def test_a_program_that_makes_its_own_configuration_is_its_source() -> None:
    loaded = loaded_by_program(ServerConfig(data="d", quota_kb=5))
    assert loaded.sources == {"data": Source.PROGRAM, "quota_kb": Source.PROGRAM}
    assert loaded.again() is loaded
