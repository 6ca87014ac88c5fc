"""The random words: a key from a secret and a context, a stream of words from the key, and every word used once.

HKDF-SHA256 (RFC 5869) derives the key from the secret and the context, ChaCha20 (RFC 8439) makes the words.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from release_pipeline.errors import InvalidArgument, InvalidType, ReleasePipelineError

WordArray: TypeAlias = npt.NDArray[np.uint64]
Context: TypeAlias = str | int | bytes

SECRET_BYTES = 32
WORDS = 3  # in a lane
_REFINE = 0xFFFFFFFF  # substream number of the extra bits; attempts count up from 0


class NoiseError(ReleasePipelineError):
    """Noise cannot be drawn without breaking its promise."""


class NoiseStream:
    """The random words of one (secret, context). Made by `noise_stream`; consumed by the samplers.

    It hands out lanes 0, 1, 2, ... once each. It refuses to be copied, pickled or used in a forked process, where it would
    give the same noise a second time.
    """

    __slots__ = ("_key", "_lock", "_next_lane", "_process")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._next_lane = 0
        self._process = os.getpid()
        self._lock = Lock()

    def take_lanes(self, count: int) -> int:
        """Reserve `count` consecutive lanes and return the first; no lane is ever handed out twice."""
        self._check_process()
        with self._lock:
            first = self._next_lane
            self._next_lane += count
        return first

    def words(self, substream: int, start: int, out: WordArray) -> None:
        """Fill `out` with the 64-bit words of one substream, from position `start` on (ChaCha20 with its number as nonce)."""
        self._check_process()
        block, skip = divmod(start * 8, 64)
        if block + len(out) // 8 + 2 >= 2**32:
            raise NoiseError("a noise stream is exhausted.", remedy="Split the table into parts of fewer records.")
        nonce = block.to_bytes(4, "little") + substream.to_bytes(4, "little") + bytes(8)
        encryptor = Cipher(ChaCha20(self._key, nonce), mode=None).encryptor()
        if skip:
            encryptor.update(bytes(skip))
        encryptor.update_into(_zeros(out.nbytes), out.view(np.uint8).data)
        if sys.byteorder == "big":  # the same words on every processor
            out.byteswap(inplace=True)

    def further_words(self, lane: int, attempt: int, which: int) -> Iterator[int]:
        """Yield more 64-bit words of the uniform number for comparison `which` of an attempt, from a separate stream."""
        extra = NoiseStream(derive_key(self._key, "refine", lane, attempt, which))
        word = np.empty(1, dtype=np.uint64)
        position = 0
        while True:
            extra.words(_REFINE, position, word)
            yield int(word[0])
            position += 1

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise NoiseError(
                "a noise stream was carried into another process, where it would repeat its parent's noise.",
                remedy="Make the stream inside the process that uses it, with a context of its own.",
            )

    def __reduce__(self) -> str:
        raise NoiseError("a noise stream cannot be copied: the copy would repeat its noise.")

    def __repr__(self) -> str:
        return f"<NoiseStream at lane {self._next_lane}>"


def noise_stream(secret: bytes, *context: Context) -> NoiseStream:
    """Return the stream of one purpose: its key is HKDF-SHA256(secret; context), so distinct contexts are independent.

    `secret` has 32 bytes from the operating system and masks one input only. `context` is any sequence of text, integers
    and bytes, encoded so that different sequences never collide: ("ab", "c"), ("a", "bc") and ("abc",) are three streams.
    """
    return NoiseStream(derive_key(secret, *context))


def take_secret(stream: NoiseStream) -> bytes:
    """Return 32 bytes of a stream: the secret of a simulation, never of a release."""
    words = stream.further_words(stream.take_lanes(1), 0, 0)
    return b"".join(next(words).to_bytes(8, "big") for _ in range(4))


def derive_key(secret: bytes, *context: Context) -> bytes:
    """Return 32 bytes that depend on the secret and on every part of the context (HKDF-SHA256, RFC 5869)."""
    if not isinstance(cast(object, secret), bytes) or len(secret) != SECRET_BYTES:
        raise InvalidArgument("the secret must be 32 bytes.", remedy="Take secrets.token_bytes(32).")
    encoded = b"".join(_encode(part) for part in context)
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"release-pipeline/1" + encoded).derive(secret)


@lru_cache(maxsize=8)
def _zeros(count: int) -> bytes:
    return bytes(count)


def _encode(part: Any) -> bytes:
    if isinstance(part, bool) or not isinstance(part, str | int | bytes):
        raise InvalidType(f"a noise context is made of text, integers and bytes, not {type(part).__name__}.")
    if isinstance(part, str):
        kind, body = b"s", part.encode()
    elif isinstance(part, int):
        kind, body = b"i", str(part).encode()
    else:
        kind, body = b"b", part
    return kind + len(body).to_bytes(8, "big") + body
