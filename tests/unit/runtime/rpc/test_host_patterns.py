"""A pattern is for the computers that an operator thinks of, and for nobody else's."""

from __future__ import annotations

import pytest

from openmsmq.runtime.rpc.host_patterns import is_meant


@pytest.mark.parametrize(
    ("host", "pattern"),
    [
        ("BETA", "beta"),
        ("beta", "*"),
        ("beta7", "beta*"),
        ("beta7.example.com", "beta?.example.com"),
        ("beta.example.com", "*.example.com"),
        ("a.b.example.com", "*.Example.COM"),
        ("10.0.0.7", "10.0.0.*"),
        ("10.0.0.7", "10.0.0.7"),
        ("fe80::7", "fe80::*"),
    ],
)
def test_who_is_meant(host: str, pattern: str) -> None:
    assert is_meant(host, pattern)


@pytest.mark.parametrize(
    ("host", "pattern"),
    [
        ("gamma", "beta"),
        ("beta.evil.example", "beta*"),
        ("example.com", "*.example.com"),
        ("evilexample.com", "*.example.com"),
        ("beta.example.com.evil.example", "*.example.com"),
        ("10.0.0.evil.example", "10.0.0.*"),
        ("10.0.0.example", "10.0.0.*"),
        ("10.0.1.7", "10.0.0.*"),
        ("beta", ""),
    ],
)
def test_who_is_not_meant(host: str, pattern: str) -> None:
    assert not is_meant(host, pattern)
