"""What every request has to be like before a page looks at it, and what every answer says.

The pages can rely on it: the request names this console and not some other name that leads to it,
what changes something was sent by a page of this console, and the browser is told to load nothing
from elsewhere and to show these pages in no frame.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without the origin of a form, nobody could see that it is ours; no other site hears of it.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE_METHODS: Final = ("GET", "HEAD")
_OWN: Final = "same-origin"


class Guard:
    """Refuses what no page of the console has asked for, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], is_tls: bool) -> None:
        self._app = app
        self._hosts = hosts
        self._scheme = "https" if is_tls else "http"
        self._is_tls = is_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    # A download says more than a page, and keeps what it says.
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if self._is_tls:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        status, sentence = self._refusal(scope["method"], Headers(scope=scope))
        answer = PlainTextResponse(f"{sentence}\n", status) if status else self._app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str]:
        """Return with which status and why a request is refused; 0 if it is not."""
        # A page elsewhere may have its own name point to this address: it must not read ours.
        if _host_name(headers.get("host", "")) not in self._hosts:
            return 421, (
                "This console is not called so. Use the address that it printed when it started, "
                "or start it with --host NAME."
            )
        site = headers.get("sec-fetch-site", _OWN)
        if method in _SAFE_METHODS:
            follows_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == (
                "navigate",
                "document",
            )
            if site in (_OWN, "none") or follows_link:
                return 0, ""
            return 403, "Another site has asked for this: only pages of the console may."
        if method != "POST":
            return 405, "The console answers to GET and POST only."
        if site != _OWN or headers.get("origin") != f"{self._scheme}://{headers['host']}":
            return 403, "This form was sent by another site: nothing was done."
        return 0, ""


def _host_name(host: str) -> str:
    """Return the name in a Host header without its port, which a tunnel may change."""
    if host.startswith("["):
        return host.partition("]")[0][1:].lower()
    return host.partition(":")[0].lower()
