"""How this program asks a web server: nowhere else than where it was told to, whatever is answered.

Imported only when something is sent: httpx takes long to load.
"""

from __future__ import annotations

import logging
import ssl
from urllib.parse import urlsplit

import httpx

from release_pipeline import __version__
from release_pipeline.store.addresses import LOCAL

FAULTS = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)  # of a request that got no whole answer
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(lambda _: False)  # they log addresses and headers, which may hold a secret


def open_client(address: str, *, timeout: float) -> httpx.Client:
    """A client for an address; it follows no redirection, or a token would go along. `timeout`: seconds for each step.

    It asks by the proxy of the environment, except on this machine: a proxy's own `localhost` is another machine. It trusts the
    certificates that this machine trusts."""
    parts = urlsplit(address)
    # By http there is no TLS: the context that trusts nobody is made at once.
    trusted = ssl.create_default_context() if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    headers = {"User-Agent": f"release-pipeline/{__version__}", "Accept-Encoding": "identity"}
    return httpx.Client(timeout=timeout, headers=headers, verify=trusted, trust_env=parts.hostname not in LOCAL)


def name_fault(error: BaseException) -> str:
    """The kind of what went wrong, without its message, which may have an address."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return type(cause or error).__name__
