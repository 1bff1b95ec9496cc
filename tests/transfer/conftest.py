"""What most tests of the transfer begin with; a test that needs something else says so itself."""

from __future__ import annotations

import pytest

from tests.transfer.directories import ORIGINAL, joined
from tests.transfer.network import ALPHA, BETA, KNOWN_PEER, Computer, Network

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"


@pytest.fixture
def network() -> Network:
    """An empty network."""
    return Network()


@pytest.fixture
def alpha(network: Network) -> Computer:
    """A queue manager without queues."""
    return network.manager("ALPHA", ALPHA)


@pytest.fixture
def beta(network: Network) -> Computer:
    """A queue manager with a plain queue and a transactional one, to whom the peer is known."""
    return network.manager("BETA", BETA, peers=KNOWN_PEER).with_queues(ORDERS, LEDGER)


@pytest.fixture
def office(network: Network) -> Computer:
    """Who has the original of a directory."""
    network.directory = network.manager("OFFICE", ALPHA, ORIGINAL)
    return network.directory


@pytest.fixture
def shop(network: Network, office: Computer) -> Computer:
    """Who has a copy of it, and is registered."""
    del office
    return joined(network, "SHOP", BETA)
