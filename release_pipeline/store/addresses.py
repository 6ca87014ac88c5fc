"""Addresses of servers that a token goes to, and of people; judged without loading what speaks to them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

LOCAL = ("localhost", "127.0.0.1", "::1")  # to this machine alone one may speak without TLS


_MAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def is_mail(said: Any) -> bool:
    """Whether something can be a mail address. One that everybody is to read is judged more strictly (`policy.about`)."""
    return isinstance(said, str) and _MAIL.fullmatch(said) is not None


def find_address_fault(address: str) -> str | None:
    """What is wrong with the address of a server, in words without it."""
    try:
        parts = urlsplit(address)
        named = bool(parts.hostname) and (parts.port or True) and not any(letter.isspace() for letter in address)
    except ValueError:
        return "this is no address."
    if parts.scheme not in ("http", "https") or not named:
        return "this is no address that begins with https://."
    if "@" in parts.netloc or parts.query or parts.fragment:
        return "an address of a server has no user, password or options."
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        return "by http:// the token could be read on its way."
    return None
