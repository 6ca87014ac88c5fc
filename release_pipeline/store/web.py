"""How this program asks a web server: nowhere else than where it was told to, whatever is answered.

Imported only when something is sent: what speaks TLS takes long to load.
"""

from __future__ import annotations

import urllib.request
from typing import Any
from urllib.parse import urlsplit

from release_pipeline.store.addresses import LOCAL


class _Stay(urllib.request.HTTPRedirectHandler):
    """Whoever is sent elsewhere would take a token, or what is for one reader alone, along."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """See `HTTPRedirectHandler`."""


def open_request(request: urllib.request.Request, *, timeout: float) -> Any:
    """The reply; an answer that is no success, a redirection too, is an `HTTPError`. `timeout`: seconds for each step. By the
    proxy of the environment if there is one, but for this machine: a proxy's own `localhost` is another machine."""
    here = urlsplit(request.full_url).hostname in LOCAL
    proxies = urllib.request.ProxyHandler({}) if here else urllib.request.ProxyHandler()
    return urllib.request.build_opener(_Stay, proxies).open(request, timeout=timeout)
