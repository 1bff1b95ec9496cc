from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import (
    DEFAULTS,
    PARAMETERS,
    ServerConfig,
    default_name,
    description,
    flag,
    is_loopback,
    plain_type,
    variable,
)
from openmsmq.storage import engine
from scripts.configuration_tables import configuration_table
from tests.unit.runtime.config.loaded import load_config

ROOT = Path(__file__).parents[4]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "openmsmq.toml"


def values_of(key: str) -> st.SearchStrategy[object]:
    kind = plain_type(key)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(4096, 65535)
    return st.from_regex(r"[a-z]{1,8}", fullmatch=True)


KEYS = ["name", "address", "api_port", "allow_remote_without_token", "quota_kb", "token_file"]


@given(
    given_at=st.dictionaries(
        st.sampled_from(KEYS),
        st.sets(st.sampled_from(["file", "environment", "flags"])),
    ),
    data=st.data(),
)
def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path_factory, given_at, data):
    file = tmp_path_factory.mktemp("config") / "openmsmq.toml"
    lines, environment, flags = [], {}, {"data": "d"}
    expected = dict(DEFAULTS) | {"data": "d"}
    for key, places in given_at.items():
        value = DEFAULTS[key]
        if "file" in places:
            value = data.draw(values_of(key))
            lines.append(f"{key} = {json.dumps(value)}")
        if "environment" in places:
            value = data.draw(values_of(key))
            environment[variable(key)] = (
                str(value).lower() if value in (True, False) else str(value)
            )
        if "flags" in places:
            value = data.draw(values_of(key))
            flags[key] = value
        expected[key] = value
    file.write_text("\n".join(lines), encoding="utf-8")
    config = load_config(flags, environment, str(file))
    assert {key: getattr(config, key) for key in expected} == expected


def test_a_flag_that_was_not_given_changes_nothing():
    config = load_config({"data": "d", "api_port": None}, {"OPENMSMQ_API_PORT": "7"})
    assert config.api_port == 7


def test_a_list_is_separated_by_commas_in_a_variable():
    config = load_config({"data": "d"}, {"OPENMSMQ_ALSO_KNOWN_AS": "alpha.example.org,10.0.0.1"})
    assert config.also_known_as == ("alpha.example.org", "10.0.0.1")


def test_an_unknown_key_is_named_with_the_nearest_known_one(file):
    file.write_text('data = "d"\napi_prot = 1802\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="'api_prot'; did you mean 'api_port'"):
        load_config({}, {}, str(file))


def test_nothing_is_suggested_that_is_not_alike(file):
    file.write_text('data = "d"\nWaitTime = 4\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"no option 'WaitTime'$"):
        load_config({}, {}, str(file))


def test_a_misspelt_variable_is_named_with_the_one_that_was_meant():
    with pytest.raises(ConfigError, match="OPENMSMQ_API_PROT; did you mean OPENMSMQ_API_PORT"):
        load_config({"data": "d"}, {"OPENMSMQ_API_PROT": "1"})


@pytest.mark.parametrize(
    "name", ["OPENMSMQ_QM", "OPENMSMQ_DEBUG", "OPENMSMQ_TOKEN", "OPENMSMQ_TLS"]
)
def test_a_variable_of_another_command_is_left_alone(name):
    assert load_config({"data": "d"}, {name: "x"}) == ServerConfig(data="d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("api_port = 65536", "api_port = 65536"),
        ('api_port = "1802"', "api_port = '1802'"),
        ('log_level = "loud"', "log_level = 'loud'"),
        ("api_port = ", "not valid TOML"),
        ("quota_kb = -1", "quota_kb = -1"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(file, text, words):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config({"data": "d"}, {}, str(file))
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


def test_a_wrong_variable_is_named():
    with pytest.raises(ConfigError, match="OPENMSMQ_API_PORT = 'many' is wrong: expected `int`"):
        load_config({"data": "d"}, {"OPENMSMQ_API_PORT": "many"})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml: No such file"):
        load_config({"data": "d"}, {}, str(tmp_path / "absent.toml"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "--data DIRECTORY"),
        ({"data": "d", "name": "two words"}, "no computer name"),
        ({"data": "d", "tls_key": "k"}, "tls_cert"),
        ({"data": "d", "api_tcp": False, "api_socket": "none"}, "nobody could connect"),
    ],
)
def test_options_that_cannot_work_together_are_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        load_config(options, {})


@pytest.mark.parametrize(
    ("host", "name"),
    [("alpha.example.org", "ALPHA"), ("node-7", "NODE-7"), ("-odd !", "ODD"), ("", "LOCALHOST")],
)
def test_the_name_comes_from_the_first_label_of_the_host(host, name):
    assert default_name(host) == name
    assert ServerConfig(data="d", name=name).manager_name == name


@pytest.mark.parametrize("address", ["127.0.0.1", "127.255.1.2", "::1", "localhost"])
def test_a_loopback_address_needs_no_token(address):
    assert is_loopback(address)
    assert not ServerConfig(data="d", address=address).needs_token


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "alpha.example.org"])
def test_any_other_address_needs_one_unless_that_is_allowed(address):
    assert ServerConfig(data="d", address=address).needs_token
    assert not ServerConfig(data="d", address=address, allow_remote_without_token=True).needs_token


def test_the_socket_is_in_the_data_directory_unless_its_path_says_otherwise():
    assert ServerConfig(data="d").socket_path == Path("d/api.sock")
    assert ServerConfig(data="d", api_socket="/run/x.sock").socket_path == Path("/run/x.sock")
    assert ServerConfig(data="d", api_socket="none").socket_path is None


def test_the_reference_page_has_the_table_of_options():
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert configuration_table() in page


def test_every_option_is_in_the_table_with_its_flag_variable_and_meaning():
    rows = configuration_table().splitlines()[2:]
    assert len(rows) == len(DEFAULTS)
    for key, row in zip(DEFAULTS, rows, strict=True):
        assert {f"`{key}`", f"`{variable(key)}`"} <= set(row.split(" "))
        assert flag(key) in row
        assert description(key) in row


def test_the_defaults_of_the_store_are_its_own():
    # They are repeated so that a command that only needs the options need not load the store.
    assert DEFAULTS["checkpoint_bytes"] == engine.CHECKPOINT_BYTES
    least = engine.CHECKPOINT_MIN_BYTES
    assert load_config({"data": "none", "checkpoint_bytes": least}, {}).checkpoint_bytes == least
    with pytest.raises(ConfigError):
        load_config({"data": "none", "checkpoint_bytes": least - 1}, {})


def test_the_example_configuration_is_valid():
    config = load_config({}, {}, str(ROOT / "examples/openmsmq.toml"))
    assert config.name == "ALPHA"


# Tables.


def table_rows() -> dict[str, str]:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    _, _, page = page.partition("`[parameters]` has the names")
    _, _, rest = page.partition("| Key | Default | Meaning |\n|---|---|---|\n")
    lines = rest.partition("\n\n")[0].splitlines()
    return dict(line.strip("| ").split(" | ")[:2] for line in lines)


def test_the_reference_page_has_every_parameter_with_its_default():
    assert table_rows() == {
        f"`{name}`": json.dumps(parameter.default) for name, parameter in PARAMETERS.items()
    }


def test_every_setting_of_the_transfer_can_be_made_in_the_file():
    in_tables = {parameter.field for parameter in PARAMETERS.values()}
    in_tables |= {"hosts", "next_hops", "connectors", "peers"}
    assert in_tables >= {field.name for field in msgspec.structs.fields(TransferConfig)}
    assert not in_tables & set(DEFAULTS)


@given(st.dictionaries(st.sampled_from(sorted(PARAMETERS)), st.integers(1, 65_535) | st.booleans()))
def test_a_parameter_takes_a_value_of_its_kind_and_no_other(tmp_path_factory, values):
    file = tmp_path_factory.mktemp("config") / "openmsmq.toml"
    lines = ["[parameters]", *(f"{name} = {json.dumps(it)}" for name, it in values.items())]
    file.write_text("\n".join(lines), encoding="utf-8")
    wrong = [name for name, it in values.items() if type(PARAMETERS[name].default) is not type(it)]
    if wrong:
        with pytest.raises(ConfigError, match=r"openmsmq.toml: \[parameters\] (\w+) = ") as caught:
            load_config({"data": "d"}, {}, str(file))
        assert any(f"{name} = " in str(caught.value) for name in wrong)
        return
    config = load_config({"data": "d"}, {}, str(file))
    found = {
        name: getattr(config, parameter.field, None)
        if hasattr(config, parameter.field)
        else getattr(config.parameters, parameter.field)
        for name, parameter in PARAMETERS.items()
    }
    assert found == {name: it.default for name, it in PARAMETERS.items()} | values


def test_clocks_may_be_trusted_to_the_second(file):
    file.write_text("[parameters]\nClockSkewTolerance = 0\n", encoding="utf-8")
    assert load_config({"data": "d"}, {}, str(file)).parameters.clock_skew_max_s == 0


def test_connectors_are_known_by_their_foreign_computers(file):
    guid = "{2D2C0F6E-6F3C-4F0E-9A53-0F5D1A7F3B11}"
    file.write_text(f'[connectors]\nMAINFRAME = "{guid}"\n', encoding="utf-8")
    parameters = load_config({"data": "d"}, {}, str(file)).parameters
    assert parameters.connectors == {"mainframe": guid.strip("{}").lower()}


def test_this_computer_is_not_foreign_to_itself(file):
    file.write_text(
        '[connectors]\nAlpha = "2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11"', encoding="utf-8"
    )
    with pytest.raises(ConfigError, match="alpha is this computer"):
        load_config({"data": "d", "name": "ALPHA"}, {}, str(file))


def test_hosts_and_next_hops_are_one_or_a_list(file):
    file.write_text(
        'data = "d"\n[hosts]\nBeta = "10.0.0.7"\n"gamma.example.org" = ["10.0.1.7", "::1"]\n'
        '[next_hops]\n"{2D2C0F6E-6F3C-4F0E-9A53-0F5D1A7F3B11}" = ["BETA", "10.0.1.7"]\n',
        encoding="utf-8",
    )
    parameters = load_config({}, {}, str(file)).parameters
    assert parameters.hosts == {"beta": ("10.0.0.7",), "gamma.example.org": ("10.0.1.7", "::1")}
    assert parameters.next_hops == {"2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11": ("BETA", "10.0.1.7")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[parameters]\nMaxUnackedPackets = 3", "'MaxUnackedPackets'; did you mean 'MaxUnackedP"),
        (
            "[parameters]\nMaxUnackedPacket = 0",
            "MaxUnackedPacket = 0 is wrong: expected `int` >= 1",
        ),
        ("[parameters]\nTryConnectInterval = -1", "TryConnectInterval = -1 is wrong"),
        ("[parameters]\nCleanupInterval = 4294967296", "CleanupInterval = 4294967296 is wrong"),
        ("[parameters]\nMsmqIpPort = 65536", "MsmqIpPort = 65536 is wrong"),
        ("parameters = 3", "begin it with a line [parameters]"),
        ("[parametres]\nMsmqIpPort = 1", "'parametres'; did you mean 'parameters'"),
        ("window = 3", "there is no option 'window'"),
        ("TryConnectInterval = 3", "TryConnectInterval belongs below a line [parameters]"),
        ('[peers]\nstrict = "yes"', "[peers] is wrong: strict: expected `bool`, got `str`"),
        ('[session_tls]\nkye = "k"', "[session_tls] is wrong: it has no 'kye'; did you mean 'key'"),
        ('[security]\nhashes = ["x"]', "hashes: invalid enum value 'x'; it can be 'sha512', "),
        ("session_port = 3", "there is no option 'session_port'"),
        ('[hosts]\nBETA = "gamma"', "BETA = 'gamma' is wrong: 'gamma' is not an IP address"),
        ("[hosts]\nBETA = 7", "BETA = 7 is wrong: give an IP address"),
        ("[hosts]\nBETA = []", "BETA = [] is wrong: give an IP address"),
        ('[hosts]\nBETA = "10.0.0.1"\nBeta = "10.0.0.2"', "Beta is there twice"),
        ('[next_hops]\nBETA = "10.0.0.1"', "the identifier of a queue manager is wanted"),
        ("[connectors]\nHOST = 7", "HOST = 7 is wrong: the identifier of a connector is wanted"),
        ('[connectors]\nHOST = "x"', "HOST = 'x' is wrong: the identifier of a connector"),
        (
            '[connectors]\nHOST = "2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11"\n'
            'Host = "2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11"',
            "Host is there twice",
        ),
        (
            '[next_hops]\n"2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11" = [""]',
            "[''] is wrong: give a host name",
        ),
    ],
)
def test_a_wrong_table_is_named_with_its_place(file, text, words):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config({"data": "d"}, {}, str(file))
    assert str(caught.value).startswith(str(file))
    assert words in str(caught.value)
