"""What the parts of one client share: which connection is the current one, and who answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.api.messages import Welcome
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.security.algorithm_names import SAFE_CIPHER_NAMES

if TYPE_CHECKING:
    from openmsmq.client.messages.protection import Protection


class ClientContext:
    """The queue manager as the last connection met it. Each connection is a new generation.

    Handles, cursors and transactions belong to the generation that made them.
    """

    __slots__ = ("_protection", "ciphers", "generation", "manager", "manager_name", "software")

    def __init__(self, ciphers: tuple[str, ...] = SAFE_CIPHER_NAMES) -> None:
        self.ciphers = ciphers
        self._protection: Protection | None = None
        self.generation = 0
        self.manager = NIL_GUID
        self.manager_name = ""
        self.software = ""

    def connected(self, welcome: Welcome) -> None:
        """Take note of a new connection."""
        self.generation += 1
        self.manager = Guid(welcome.manager)
        self.manager_name = welcome.manager_name
        self.software = welcome.software

    @property
    def protection(self) -> Protection:
        """What signs and encrypts for this client; most applications never need it."""
        if self._protection is None:
            # Loaded here, so that nobody pays for cryptography who does not use it.
            from openmsmq.client.messages.protection import Protection

            self._protection = Protection(self.ciphers)
        return self._protection
