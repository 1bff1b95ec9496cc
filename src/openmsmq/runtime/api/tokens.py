"""Tokens: what applications on other computers show to be let in, and for what each is good.

A file has the tokens of a queue manager, and of each only a hash: who reads the file cannot use
them. `openmsmq token` changes it, and the server looks at it again when it has changed. A file that
others than its owner could read or write is not believed.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.owner_file import file_signature
from openmsmq.runtime.secret_file import changing_alone, read_secret_file, write_secret_file
from openmsmq.security.access.callers import Caller, Scope, token_caller
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, identities

TOKENS_MAX_COUNT: Final = 1000
"""Tokens of one queue manager."""

TOKENS_FILE_MAX_BYTES: Final = 4 << 20
"""A longer file is not read."""

TOKENS_LOOK_MS: Final = 5_000
"""How often is looked whether the tokens of open connections are still good."""

TOKEN_RANDOM_BYTES: Final = 32
"""The part of a token that nobody can guess."""

TOKEN_NAME_MAX_CHARACTERS: Final = 64

_PREFIX: Final = "openmsmq_"
"""What every token begins with, so that programs that look for leaked secrets find it."""
_NAME: Final = re.compile(rf"[A-Za-z0-9_.-]{{1,{TOKEN_NAME_MAX_CHARACTERS}}}")
_DAY_S: Final = 24 * 3600

_Text = Annotated[str, Meta(max_length=1000)]


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token as the file has it."""

    name: Annotated[str, Meta(pattern=f"^{_NAME.pattern}$")]
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the token."""
    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1, max_length=len(Scope))]
    queues: Annotated[tuple[_Text, ...], Meta(max_length=100)] = ()
    """Patterns of the names of queues for which it is good; empty for all."""
    user: _Text = str(ADMINISTRATORS)
    """The SID for which the access lists are looked at."""
    created_time_s: int = 0
    expires_time_s: int | None = None

    def is_good(self, now_s: int) -> bool:
        """Whether its time is not up."""
        return self.expires_time_s is None or now_s < self.expires_time_s

    @property
    def caller(self) -> Caller:
        """Who shows it."""
        return token_caller(self.name, Sid.parse(self.user), frozenset(self.scopes), self.queues)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Annotated[int, Meta(ge=1, le=1)] = 1
    tokens: Annotated[tuple[Token, ...], Meta(max_length=TOKENS_MAX_COUNT)] = ()


_DECODER: Final = msgspec.json.Decoder(_File)


def digest_of(token: str) -> str:
    """Return the hash under which a token is known; one round, for nobody can guess a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


# Reading.


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens, or raise `ConfigError`; one that is not there has none."""
    data = read_secret_file(path, "tokens", TOKENS_FILE_MAX_BYTES)
    if data is None:
        return ()
    try:
        tokens = _DECODER.decode(data).tokens
        for token in tokens:
            Sid.parse(token.user)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(f"{path} is no file of tokens: {error}") from None
    return tokens


class TokenBook:
    """The tokens that are good now; it reads its file again when that has changed."""

    def __init__(
        self,
        path: Path,
        changed: Callable[[tuple[Token, ...], tuple[Token, ...]], None] = lambda *_: None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._changed = changed
        self._failed = failed
        self._seen = file_signature(path)
        self._tokens = {token.digest: token for token in read_tokens(path)}

    def __len__(self) -> int:
        return len(self._tokens)

    def look(self) -> bool:
        """Read the file again if it has changed; says whether it had.

        A file that cannot be read any more has no tokens: nobody comes in by an old one.
        """
        seen = file_signature(self._path)
        if seen == self._seen:
            return False
        self._seen = seen
        before = tuple(self._tokens.values())
        try:
            tokens = read_tokens(self._path)
        except ConfigError as error:
            self._failed(str(error))
            tokens = ()
        self._tokens = {token.digest: token for token in tokens}
        self._changed(before, tokens)
        return True

    def find(self, token: str, now_s: int) -> Token | None:
        """Return the token that somebody shows, if it is known and good."""
        found = self._tokens.get(digest_of(token))
        return found if found is not None and found.is_good(now_s) else None

    def still_has(self, token: Token, now_s: int) -> bool:
        """Whether a token is as good as when it was shown."""
        return self._tokens.get(token.digest) == token and token.is_good(now_s)


# Changing.


def create_token(
    path: Path,
    name: str,
    scopes: tuple[Scope, ...],
    *,
    now_s: int,
    queues: tuple[str, ...] = (),
    user: Sid = ADMINISTRATORS,
    expires_days: int | None = None,
) -> tuple[str, Token]:
    """Add a token to a file; gives the text to show, which is kept nowhere, and what is kept."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no name of a token: use up to {TOKEN_NAME_MAX_CHARACTERS} letters, "
            "digits, hyphens, underscores and dots"
        )
    text = _PREFIX + secrets.token_urlsafe(TOKEN_RANDOM_BYTES)
    token = Token(
        name=name,
        digest=digest_of(text),
        scopes=tuple(dict.fromkeys(scopes)),
        queues=queues,
        user=str(user),
        created_time_s=now_s,
        expires_time_s=None if expires_days is None else now_s + expires_days * _DAY_S,
    )
    with changing_alone(path):
        tokens = read_tokens(path)
        if any(each.name == name for each in tokens):
            raise ConfigError(f"there is a token {name} already: revoke it first, or choose a name")
        if len(tokens) >= TOKENS_MAX_COUNT:
            raise ConfigError(f"{path} has {TOKENS_MAX_COUNT} tokens already: revoke some")
        write_secret_file(path, _File(tokens=(*tokens, token)))
    return text, token


def revoke_token(path: Path, name: str) -> Token:
    """Take a token out of a file."""
    with changing_alone(path):
        tokens = read_tokens(path)
        for token in tokens:
            if token.name == name:
                left = tuple(each for each in tokens if each is not token)
                write_secret_file(path, _File(tokens=left))
                return token
    raise ConfigError(f"there is no token {name} in {path}")


def operator_caller() -> Caller:
    """Return the caller that shows the one token of `token_file`: an administrator."""
    return Caller(
        "the token of token_file", ADMINISTRATORS, identities(ADMINISTRATORS, (ADMINISTRATORS,))
    )
