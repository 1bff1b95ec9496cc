"""The table `[http]` of a configuration file: what comes and leaves by HTTP (decision 0052)."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

import msgspec

from openmsmq.manager.config import HttpConfig
from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import PORT_MAX_NUMBER
from openmsmq.model.names.urls import UrlMap
from openmsmq.runtime.config.tables import says


class HttpTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about HTTP."""

    enabled: Annotated[bool, says("Whether somebody listens for HTTP.")] = False
    address: Annotated[
        str, says("IP address (or host name) to listen on. Empty: the one of `address`.")
    ] = ""
    port: Annotated[int, says("TCP port; 0 takes a free one.", ge=0, le=PORT_MAX_NUMBER)] = 8080
    tls_cert: Annotated[
        str,
        says(
            "Certificate chain in PEM, relative to the data directory; with it, the port takes TLS "
            "only."
        ),
    ] = ""
    tls_key: Annotated[str, says("Private key in PEM. Empty: it is in the certificate's file.")] = (
        ""
    )
    tls_client_ca: Annotated[
        str,
        says(
            "Authorities in PEM whose certificates programs may show instead of a token; the "
            "directory says whose a certificate is."
        ),
    ] = ""
    hosts: Annotated[
        tuple[str, ...],
        says(
            "Further host names by which URLs may name this computer, such as that of a reverse "
            "proxy. A request for any other host is refused."
        ),
    ] = ()
    programs: Annotated[
        bool,
        says(
            "Whether programs may send by `POST /queues/QUEUE/messages`. Beyond this computer that "
            "needs `tls_cert`."
        ),
    ] = True
    queues: Annotated[
        tuple[str, ...],
        says(
            r"Patterns of the queues that have URLs for SRMP, such as `'private$\orders*'`. Empty: "
            "none but those of `urls`."
        ),
    ] = ()
    urls: Annotated[
        dict[str, str],
        says(r"Further URLs, by their paths: `\"/shop/orders\" = 'private$\orders'`."),
    ] = {}
    url: Annotated[
        str,
        says(
            "What stands before `/msmq` in the URLs of this queue manager, as others reach it: "
            "`https://msmq.example.com`. Receipts come there. Empty: `http://` and its name."
        ),
    ] = ""
    connections_max: Annotated[int, says("Connections at a time.", ge=1)] = 1000
    connections_per_peer_max: Annotated[
        int, says("The same, from one address; a reverse proxy is one.", ge=1)
    ] = 200
    trusted_proxies: Annotated[
        tuple[str, ...],
        says(
            "Addresses or networks of reverse proxies, such as `127.0.0.1`, whose "
            "`X-Forwarded-For` is believed: the last address in it that is none of these is the "
            "client, who has a share of his own of what may be under way. Empty: nobody's."
        ),
    ] = ()
    sends: Annotated[
        bool, says("Whether messages leave for queues with names such as `DIRECT=HTTP://...`.")
    ] = False
    send_authorities: Annotated[
        str,
        says(
            "Authorities in PEM that vouch for others that are reached by `https`, relative to the "
            "data directory. Empty: those of the system."
        ),
    ] = ""
    send_cert: Annotated[
        str, says("Certificate in PEM that is shown to those who ask for one. Empty: none.")
    ] = ""
    send_key: Annotated[str, says("Its private key. Empty: it is in the certificate's file.")] = ""
    send_pipelined_max: Annotated[
        int,
        says(
            "Posts to one URL that are under way at a time. 1 for proxies that take one after "
            "another.",
            ge=1,
            le=1000,
        ),
    ] = 48
    send_timeout_s: Annotated[
        int, says("How long a connection, and an answer, may take.", ge=1, le=3600)
    ] = 60
    send_idle_s: Annotated[
        int,
        says("How long a connection is kept on which no post is under way.", ge=1, le=86_400),
    ] = 30
    proxy_accept: Annotated[
        bool,
        says("Whether posts have `Proxy-Accept: NonInteractiveClient`, as Windows sends it."),
    ] = True

    def __post_init__(self) -> None:
        if self.tls_key and not self.tls_cert:
            raise ValueError("tls_key is given but tls_cert is not: TLS needs the certificate too")
        if self.tls_client_ca and not self.tls_cert:
            raise ValueError(
                "tls_client_ca is given but tls_cert is not: certificates are shown over TLS only"
            )
        if self.send_key and not self.send_cert:
            raise ValueError("send_key is given but send_cert is not")
        if self.url and not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+", self.url):
            raise ValueError(f"url = {self.url!r}: give http:// or https:// and a host, no path")
        for text in self.trusted_proxies:
            try:
                ipaddress.ip_network(text)
            except ValueError as error:
                raise ValueError(
                    f"trusted_proxies: {error}: give addresses or networks such as 127.0.0.1 and "
                    "10.0.0.0/8"
                ) from None
        for path in self.urls:
            if not path.startswith("/") or "?" in path:
                raise ValueError(f"urls {path!r} is no path of a URL: begin it with / ")
        try:
            self.url_map()
        except MsmqError as error:
            raise ValueError(f"urls: {error}") from None

    @property
    def config(self) -> HttpConfig:
        """The same for the queue manager."""
        takes = self.enabled and bool(self.url_map())
        return HttpConfig(
            enabled=takes or self.sends, url=self.url, hosts=self.hosts, queues=self.queues
        )

    def url_map(self) -> UrlMap:
        """Return which URLs stand for which queues."""
        return UrlMap(self.queues, self.urls)
