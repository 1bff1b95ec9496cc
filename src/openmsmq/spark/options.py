"""Options of the data source, read once and checked before anything is asked for.

Spark hands options over as texts, with names in any case. A name that is not known is refused: a
typing mistake must not silently change what a query does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from openmsmq.client.settings import Settings
from openmsmq.spark.errors import BadOption

RECONNECT_DEFAULT_S: Final = 60.0


class Place(msgspec.Struct, frozen=True):
    """How to reach the queue managers: values only, so that other computers connect alike."""

    addresses: tuple[str, ...]
    token: str
    token_file: str
    tls: bool
    ca: str
    reconnect_within_s: float
    certificate: str = ""
    key: str = ""

    def settings(self, address: str) -> Settings:
        """Make the settings of the client for one of the queue managers, where this runs."""
        token = self.token
        if self.token_file:
            try:
                token = Path(self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise BadOption(
                    "tokenFile", f"{self.token_file} cannot be read on this computer: {error}"
                ) from None
        return Settings(
            address=address,
            token=token,
            tls=self.ca or self.tls,
            certificate=self.certificate,
            key=self.key,
            reconnect_within_s=self.reconnect_within_s,
        )


CONNECTION_OPTIONS: Final = {
    "qm": "Addresses of queue managers, with commas; of one on several computers, with bars (a|b).",
    "token": "The token that the queue managers ask for; tokenFile keeps it out of plans and logs.",
    "tokenFile": "A file with the token, on every computer of the cluster.",
    "tls": "true to connect with TLS, trusting the authorities of each computer.",
    "ca": "A file of certificates to trust, on every computer of the cluster; implies TLS.",
    "certificate": "A file with a certificate to show instead of a token, on every computer.",
    "key": "A file with its private key, if that is in a file of its own.",
    "reconnectWithin": "Seconds for which a lost queue manager is tried again; 60 by default.",
}
"""The options by which a queue manager is reached, for the guides."""

# What Spark itself puts among the options.
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path", "queryname", "outputmode"})

Choice = TypeVar("Choice", bound=Enum)


class OptionReader:
    """Takes options one by one, and notices those that nobody took."""

    def __init__(self, options: Mapping[str, str], known: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        names = {name.lower() for name in known}
        for given in options:
            if given.lower() not in names | _SPARKS_OWN:
                raise BadOption(given, f"is not known; there are {', '.join(known)}")

    def text(self, name: str, default: str = "") -> str:
        """Return what was written, without the spaces around it."""
        return self._values.get(name.lower(), default).strip()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return what was written between commas."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def yes(self, name: str, default: bool) -> bool:
        """Read true or false."""
        text = self.text(name).lower()
        if not text:
            return default
        if text not in ("true", "false"):
            raise BadOption(name, f"{text!r} is neither true nor false")
        return text == "true"

    def count(self, name: str, default: int, highest: int = 1 << 62) -> int:
        """Read a number from 1 to `highest`."""
        text = self.text(name)
        if not text:
            return default
        is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(highest))
        if not (is_number and 0 < int(text) <= highest):
            raise BadOption(name, f"{text[:40]!r} is not a number from 1 to {highest}")
        return int(text)

    def choice(self, name: str, default: Choice) -> Choice:
        """Read one of the words of an enumeration."""
        text = self.text(name).lower()
        if not text:
            return default
        kind = type(default)
        try:
            return kind(text)
        except ValueError:
            known = ", ".join(str(each.value) for each in kind)
            raise BadOption(name, f"{text!r} is not one of {known}") from None

    def place(self) -> Place:
        """Read how the queue managers are reached."""
        addresses = self.texts("qm") or ("127.0.0.1",)
        seconds = self.text("reconnectWithin")
        try:
            within_s = float(seconds) if seconds else RECONNECT_DEFAULT_S
        except ValueError:
            raise BadOption("reconnectWithin", f"{seconds!r} is not a number") from None
        if not 0 <= within_s < float("inf"):
            raise BadOption("reconnectWithin", f"{seconds} is not a number of seconds")
        place = Place(
            addresses,
            self.text("token"),
            self.text("tokenFile"),
            self.yes("tls", False),
            self.text("ca"),
            within_s,
            self.text("certificate"),
            self.text("key"),
        )
        if place.certificate and not (place.tls or place.ca):
            raise BadOption("certificate", "is shown over TLS: set tls or ca, too")
        if place.key and not place.certificate:
            raise BadOption("key", "belongs to a certificate: set certificate, too")
        for address in addresses:
            settings = Settings(address=address)
            if settings.unix_path is None:
                try:
                    _ = settings.host_and_port
                except ValueError as error:
                    raise BadOption("qm", str(error)) from None
        return place
