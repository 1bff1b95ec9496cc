"""Which interface multicast goes by; the sockets themselves are in `tests/runtime`."""

from __future__ import annotations

import pytest

from openmsmq.runtime.multicast.sockets import NoMulticast, interface_address


@pytest.mark.parametrize("interface", ["lo", "127.0.0.1"])
def test_an_interface_is_named_or_has_an_address(interface: str) -> None:
    assert interface_address(interface) == "127.0.0.1"


def test_an_interface_that_is_not_there_is_told_with_what_to_do() -> None:
    with pytest.raises(NoMulticast, match=r"nowhere0 has no IPv4 address .* give interface"):
        interface_address("nowhere0")
