"""Accounts: users of this queue manager alone, who prove by NTLM who they are.

A file has them, and of each password its NT hash. NTLM cannot do with less: both sides reckon with
the hash itself, so whoever has it comes in as if with the password. The file is therefore as secret
as the passwords would be, and not believed if others than its owner could read it. `openmsmq user`
changes it, and the server looks at it again when it has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from openmsmq.model.clock import Instant
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.owner_file import file_signature
from openmsmq.runtime.secret_file import changing_alone, read_secret_file, write_secret_file
from openmsmq.security.access.callers import Caller, account_caller
from openmsmq.security.access.sids import account, account_name
from openmsmq.security.authentication.guesses import GuessGuard
from openmsmq.security.authentication.ntlm.keys import nt_hash
from openmsmq.security.authentication.ntlm.parties import Account
from openmsmq.security.authentication.ports import AuthenticationFailed

ACCOUNTS_FILE: Final = "accounts.json"

ACCOUNTS_MAX_COUNT: Final = 1000
"""Accounts of one queue manager."""

ACCOUNTS_FILE_MAX_BYTES: Final = 1 << 20
"""A longer file is not read."""

PASSWORD_MIN_CHARACTERS: Final = 12
"""Whoever overhears one authentication can try passwords at home: short ones are found in hours."""

PASSWORD_MAX_CHARACTERS: Final = 256
"""As on Windows."""


class StoredAccount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An account as the file has it."""

    name: Annotated[str, Meta(max_length=100)]
    nt_hash: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    """As good as the password."""
    is_administrator: bool = False
    is_disabled: bool = False
    created_time_s: int = 0
    password_time_s: int = 0
    """When it got the password that it has."""

    @property
    def caller(self) -> Caller:
        """Who proves to be it."""
        return account_caller(self.name, administrator=self.is_administrator)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Annotated[int, Meta(ge=1, le=1)] = 1
    accounts: Annotated[tuple[StoredAccount, ...], Meta(max_length=ACCOUNTS_MAX_COUNT)] = ()


_DECODER: Final = msgspec.json.Decoder(_File)


# Reading.


def read_accounts(path: Path) -> tuple[StoredAccount, ...]:
    """Read a file of accounts, or raise `ConfigError`; one that is not there has none."""
    data = read_secret_file(path, "accounts", ACCOUNTS_FILE_MAX_BYTES)
    if data is None:
        return ()
    try:
        accounts = _DECODER.decode(data).accounts
        for each in accounts:
            if each.name != account_name(account(each.name)):
                raise ValueError(f"{each.name!r} is not in small letters")
        if len({each.name for each in accounts}) < len(accounts):
            raise ValueError("it has an account twice")
    except (msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(f"{path} is no file of accounts: {error}") from None
    return accounts


class AccountBook:
    """The accounts as they are now; it reads its file again when that has changed."""

    def __init__(self, path: Path, failed: Callable[[str], None] = lambda _: None) -> None:
        self._path = path
        self._failed = failed
        self._seen = file_signature(path)
        self._accounts = {each.name: each for each in read_accounts(path)}

    def __len__(self) -> int:
        return len(self._accounts)

    def look(self) -> bool:
        """Read the file again if it has changed; says whether it had.

        A file that cannot be read any more has no accounts: nobody comes in by an old one.
        """
        seen = file_signature(self._path)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            accounts = read_accounts(self._path)
        except ConfigError as error:
            self._failed(str(error))
            accounts = ()
        self._accounts = {each.name: each for each in accounts}
        return True

    def find(self, name: str) -> StoredAccount | None:
        """Return an account that may be used, however its name is written."""
        found = self._accounts.get(name.lower())
        return None if found is None or found.is_disabled else found


class AccountDesk:
    """Whom one connection asks for accounts: it knows the address, and what time it is."""

    def __init__(
        self, book: AccountBook, guard: GuessGuard, address: str, clock: Callable[[], Instant]
    ) -> None:
        self._book = book
        self._guard = guard
        self._address = address
        self._clock = clock
        self._proved: dict[str, StoredAccount] = {}

    def find(self, user: str) -> Account | None:
        """Return an account, or raise `AuthenticationFailed` if it is too early for an attempt."""
        self._book.look()
        wait_ms = self._guard.wait_ms(user.lower(), self._address, self._clock().ticks_ms)
        if wait_ms:
            raise AuthenticationFailed(
                f"too many wrong passwords for {user} or from {self._address}: the next one is "
                f"looked at in {wait_ms / 1000:.0f} s"
            )
        found = self._book.find(user)
        return None if found is None else Account(bytes.fromhex(found.nt_hash), found.caller)

    def note(self, user: str, *, proved: bool) -> None:
        """Take down how an attempt ended."""
        found = self._book.find(user)
        if proved and found is not None:
            self._proved[found.name] = found
            self._guard.succeeded(found.name, self._address)
        else:
            now_ms = self._clock().ticks_ms
            exists = found is not None
            self._guard.failed(user.lower(), self._address, now_ms, exists=exists)

    @property
    def is_still_good(self) -> bool:
        """Whether the accounts that were proved are as they were; True if none was."""
        return all(self._book.find(name) == proved for name, proved in self._proved.items())


# Changing.


def add_account(
    path: Path, name: str, password: str, *, administrator: bool, now_s: int
) -> StoredAccount:
    """Add an account to a file, or raise `ConfigError`."""
    made = StoredAccount(
        name=_checked_name(name),
        nt_hash=_checked_hash(password),
        is_administrator=administrator,
        created_time_s=now_s,
        password_time_s=now_s,
    )
    with changing_alone(path):
        accounts = read_accounts(path)
        if any(each.name == made.name for each in accounts):
            raise ConfigError(
                f"there is an account {made.name} already: change it with `openmsmq user password` "
                "or remove it first"
            )
        if len(accounts) >= ACCOUNTS_MAX_COUNT:
            raise ConfigError(f"{path} has {ACCOUNTS_MAX_COUNT} accounts already: remove some")
        write_secret_file(path, _File(accounts=(*accounts, made)))
    return made


def remove_account(path: Path, name: str) -> StoredAccount:
    """Take an account out of a file."""
    with changing_alone(path):
        accounts = read_accounts(path)
        found = _named(accounts, name, path)
        left = tuple(each for each in accounts if each is not found)
        write_secret_file(path, _File(accounts=left))
    return found


def change_password(path: Path, name: str, password: str, *, now_s: int) -> StoredAccount:
    """Change the password of an account."""
    made = _checked_hash(password)
    return _change(path, name, nt_hash=made, password_time_s=now_s)


def set_disabled(path: Path, name: str, *, disabled: bool) -> StoredAccount:
    """Let an account be used, or not."""
    return _change(path, name, is_disabled=disabled)


def _change(path: Path, name: str, **changes: object) -> StoredAccount:
    with changing_alone(path):
        accounts = read_accounts(path)
        found = _named(accounts, name, path)
        changed = msgspec.structs.replace(found, **changes)
        new = tuple(changed if each is found else each for each in accounts)
        write_secret_file(path, _File(accounts=new))
    return changed


def _named(accounts: tuple[StoredAccount, ...], name: str, path: Path) -> StoredAccount:
    for each in accounts:
        if each.name == name.lower():
            return each
    raise ConfigError(f"there is no account {name} in {path}: `openmsmq user list` shows all")


def _checked_name(name: str) -> str:
    try:
        return account_name(account(name)) or name
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _checked_hash(password: str) -> str:
    if not PASSWORD_MIN_CHARACTERS <= len(password) <= PASSWORD_MAX_CHARACTERS:
        raise ConfigError(
            f"a password has {PASSWORD_MIN_CHARACTERS} to {PASSWORD_MAX_CHARACTERS} characters: "
            "whoever overhears one authentication can try short ones until one fits"
        )
    return nt_hash(password).hex()
