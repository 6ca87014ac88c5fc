"""The list of revoked keys that a publisher distributes, from a file or an address."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release_pipeline.verifier.documents import HEX, MOST_JSON, Fault, canonical_json, get, read_json, sha256
from release_pipeline.verifier.statements import check_statement
from release_pipeline.verifier.succession import Revocation, Succession, read_entry, read_officers
from release_pipeline.verifier.trees import open_plain

REVOKED_FORMAT = "release-pipeline/revoked/1"
MOST_SECONDS = 30.0


@dataclass(frozen=True)
class Revocations:
    """The list, verified: its number, when it was signed, the office up to its signer, and its entries by key."""

    number: int
    at: str
    office: Succession
    entries: Mapping[str, Revocation]


def read_revocations(content: bytes) -> Revocations:
    """Return the list of revoked keys; raises `Fault` unless its last officer signed it."""
    whole = read_json(content)
    document, office = get(whole, "document", dict), read_officers(whole)
    digest, number, entries = sha256(canonical_json(document)), get(document, "number", int), get(document, "revoked", list)
    if get(document, "format", str) != REVOKED_FORMAT or document.get("officers") != office.chain or not entries:
        raise Fault("it is no list of revoked keys of these officers, in a format that is known")
    last = get(entries[-1], "key", HEX)
    signed = check_statement(whole.get("signed"), office.keys, kind="revoke", subject=last, hash=digest)
    by_key: dict[str, Revocation] = {}
    for entry in (read_entry(each, sys.maxsize, signed.signer) for each in entries):  # by its date only
        if entry.key not in by_key or entry.since < by_key[entry.key].since:  # the earlier date covers what the later one does
            by_key[entry.key] = entry
    return Revocations(number, signed.at, office, by_key)


def fetch(address: str) -> bytes:
    """Return the content of a file, or of an address that begins with http:// or https://: not too long, nor too slow."""
    if not address.startswith(("http://", "https://")):
        try:
            with io.BufferedReader(open_plain(Path(address))) as file:
                return file.read(MOST_JSON + 1)
        except (OSError, ValueError):
            raise Fault("there is no such file that can be read") from None
    import http.client  # imported here: reading a signature with this file must not load the network's libraries
    import urllib.request

    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):  # no redirections: only the named address may answer
        opener.add_handler(handler)
    until, content = time.monotonic() + MOST_SECONDS, b""
    try:
        with opener.open(address, timeout=MOST_SECONDS / 3) as answer:
            while len(content) <= MOST_JSON and (chunk := answer.read1(2**16)):
                content += chunk
                if time.monotonic() > until:
                    raise Fault(f"it took longer than {MOST_SECONDS:.0f} s to come")
    except (OSError, ValueError, http.client.HTTPException):  # urllib's own errors are among the first
        raise Fault("the address gives nothing: try again, or fetch the list yourself and name the file") from None
    return content
