"""The search for canaries: it finds each planted one, whatever it is dressed in, and nothing where none is."""

from __future__ import annotations

import base64
import gzip
import io
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.leaks import find_canaries

CANARY = b"Canary-7Qz91x"


def zipped(content: bytes) -> bytes:
    """A zip with one member, behind some other bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member.txt", content)
    return b"#!/bin/sh\n" + target.getvalue()


def as_parquet(content: bytes) -> bytes:
    """A Parquet file, compressed, with the content in a cell that neither minimum nor maximum shows."""
    target = io.BytesIO()
    table = pa.table({"a": ["", content.decode("latin-1"), "\uffff"]})
    pyarrow.parquet.write_table(table, target, compression="zstd", use_dictionary=False)
    return target.getvalue()


DISGUISES: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda content: content,
    "upper case": bytes.upper,
    "utf-16": lambda content: content.decode("latin-1").encode("utf-16"),
    "hex": lambda content: content.hex().encode(),
    "base64": base64.b64encode,
    "urlsafe base64": base64.urlsafe_b64encode,
    "base85": base64.b85encode,
    "url": lambda content: "".join(f"%{byte:02x}" for byte in content).encode(),
    "quoted": lambda content: urllib.parse.quote(content).encode(),
    "html": lambda content: "".join(f"&#{byte};" for byte in content).encode(),
    "json": lambda content: "".join(f"\\u{byte:04x}" for byte in content).encode(),
    "reversed": lambda content: content[::-1],
    "gzip": gzip.compress,
    "gzip cut short": lambda content: gzip.compress(content)[:-6],
    "zlib": lambda content: b"%PDF" + zlib.compress(content),
    "zip": zipped,
    "zip in zip": lambda content: zipped(zipped(content)),
    "gzip in base64": lambda content: b'{"data": "' + base64.b64encode(gzip.compress(content)) + b'"}',
    "base64 in gzip": lambda content: gzip.compress(base64.b64encode(content)),
    "parquet": as_parquet,
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("before", range(3))
def test_finds_a_planted_canary(disguise: str, before: int) -> None:
    """In every form, wherever in the text the canary begins."""
    content = b"x" * before + CANARY + b" and more"
    found = find_canaries({"file": DISGUISES[disguise](content), "other": b"nothing"}, [CANARY, "another canary"])
    assert {(one.blob, one.canary) for one in found} == {("file", CANARY)}, found
