"""What the noise is made of, against the standards: ChaCha20 (RFC 8439) and HKDF-SHA256 (RFC 5869).

Each is written here anew, plainly, held against the standard's own test vectors, and then compared with the stream and the keys
of our one door. Vectors that fit through the door as they stand go through it.
"""

from __future__ import annotations

import hmac
import struct

import numpy as np
import pytest

from release_pipeline.mechanisms.noise import NoiseStream, derive_key, streams

BLOCKS = [  # key, counter, nonce, key stream: RFC 8439 section 2.3.2 and appendix A.1
    (
        bytes(range(32)).hex(),
        1,
        "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (
        "00" * 32,
        0,
        "00" * 12,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        "00ff" + "00" * 30,
        2,
        "00" * 12,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
]
KEYS = [  # input, salt, info, length, key: RFC 5869 appendix A.1 to A.3
    (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        42,
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        82,
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    (
        "0b" * 22,
        "",
        "",
        42,
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
]


def chacha20_block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """RFC 8439 section 2.3."""
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce)]
    x = list(start)

    def turn(a: int, b: int, c: int, d: int) -> None:
        for first, second, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[first] = (x[first] + x[second]) % 2**32
            mixed = x[third] ^ x[first]
            x[third] = (mixed << by | mixed >> 32 - by) % 2**32

    for _ in range(10):
        for column in range(4):
            turn(column, 4 + column, 8 + column, 12 + column)
        for place in range(4):
            turn(place, 4 + (place + 1) % 4, 8 + (place + 2) % 4, 12 + (place + 3) % 4)
    return struct.pack("<16I", *((a + b) % 2**32 for a, b in zip(x, start, strict=True)))


def hkdf(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869 sections 2.2 and 2.3, with SHA-256."""
    key = hmac.digest(salt or bytes(32), secret, "sha256")
    out = block = b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([number]), "sha256")
        out += block
    return out[:length]


def stream_bytes(key: bytes, substream: int, start: int, words: int) -> bytes:
    """Words of a stream as bytes, in the order of the key stream."""
    out = np.empty(words, dtype=np.uint64)
    NoiseStream(key).words(substream, start, out)
    return out.astype("<u8").tobytes()


@pytest.mark.parametrize(("key", "counter", "nonce", "stream"), BLOCKS)
def test_chacha20_is_that_of_the_standard(key: str, counter: int, nonce: str, stream: str) -> None:
    """Ours, plainly written; the library's that we use; and where only the counter is asked for, the stream of our door."""
    wanted = bytes.fromhex(stream)
    assert chacha20_block(bytes.fromhex(key), counter, bytes.fromhex(nonce)) == wanted
    whole = counter.to_bytes(4, "little") + bytes.fromhex(nonce)
    encryptor = streams.Cipher(streams.ChaCha20(bytes.fromhex(key), whole), mode=None).encryptor()
    assert encryptor.update(bytes(64)) == wanted
    if not any(bytes.fromhex(nonce)):
        assert stream_bytes(bytes.fromhex(key), 0, 8 * counter, 8) == wanted


@pytest.mark.parametrize("start", [0, 7, 8, 8 * (2**32 - 8)])
@pytest.mark.parametrize("substream", [0, 2**32 - 1])
def test_the_words_of_a_stream_are_chacha20s(substream: int, start: int) -> None:
    """Word w of substream s: eight bytes of block w // 8, with s in the first four bytes of the nonce."""
    key = bytes(range(7, 39))
    nonce = substream.to_bytes(4, "little") + bytes(8)
    blocks = b"".join(chacha20_block(key, start // 8 + more, nonce) for more in range(4))
    skip = start % 8 * 8
    assert stream_bytes(key, substream, start, 20) == blocks[skip : skip + 160]


@pytest.mark.parametrize(("secret", "salt", "info", "length", "key"), KEYS)
def test_hkdf_is_that_of_the_standard(secret: str, salt: str, info: str, length: int, key: str) -> None:
    given = bytes.fromhex(secret), bytes.fromhex(salt), bytes.fromhex(info)
    assert hkdf(*given, length).hex() == key
    made = streams.HKDF(algorithm=streams.SHA256(), length=length, salt=given[1] or None, info=given[2])
    assert made.derive(given[0]).hex() == key


def test_the_keys_of_streams_are_hkdfs() -> None:
    """Without salt; the context, each part with its kind and length, is the info."""
    secret = bytes(range(32))
    content = b"release-pipeline/1"
    for kind, body in ((b"s", b"income"), (b"i", b"-7"), (b"b", b"\x00\xff")):
        content += kind + len(body).to_bytes(8, "big") + body
    assert derive_key(secret, "income", -7, b"\x00\xff") == hkdf(secret, b"", content, 32)
    assert derive_key(secret) == hkdf(secret, b"", b"release-pipeline/1", 32)
