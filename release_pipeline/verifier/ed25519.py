"""Ed25519 after RFC 8032: only verification, where nothing is secret, so nothing need take constant time."""

from __future__ import annotations

import hashlib
from functools import lru_cache

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493  # the order of BASE
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)  # of -1
Point = tuple[int, int, int, int]  # X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z
ZERO: Point = (0, 1, 1, 0)


def add_points(p: Point, q: Point) -> Point:
    """Return the sum; also of a point with itself, since the formula is complete."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _decode(encoded: bytes) -> Point | None:
    """Return the point, or None if there is none or if this is not the one encoding of it."""
    sign, y = divmod(int.from_bytes(encoded, "little"), 2**255)
    if y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if (v * x * x - u) % P:
        x = x * ROOT % P
    if (v * x * x - u) % P or (x == 0 and sign):
        return None
    x = x if x % 2 == sign else P - x
    return x, y, 1, x * y % P


def encode_point(p: Point) -> bytes:
    inverse = pow(p[2], -1, P)
    return (p[1] * inverse % P + (p[0] * inverse % P % 2 << 255)).to_bytes(32, "little")


BASE = _decode((4 * pow(5, -1, P) % P).to_bytes(32, "little")) or ZERO


def read_point(public: bytes) -> Point | None:
    """Return the point of a public key; None if there is none, in this encoding, or if it is of small order, which signs any
    message."""
    a = _decode(public) if len(public) == 32 else None
    if a is None:
        return None
    eight = add_points(a, a)
    for _ in range(2):
        eight = add_points(eight, eight)
    return None if encode_point(eight) == encode_point(ZERO) else a


def verify_signature(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the Ed25519 signature is of the message by the key; strictly: only one form of every signature passes.

    Refused are s >= L, other encodings of the key or of R than the one, and keys of small order, which sign any message.
    """
    a, r, s = read_point(public), signature[:32], int.from_bytes(signature[32:], "little")
    if a is None or len(signature) != 64 or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(r + public + message).digest(), "little") % L
    minus, result = (P - a[0], a[1], 1, P - a[3]), ZERO
    summands = (None, minus, BASE, add_points(BASE, minus))
    for bit in range(L.bit_length() - 1, -1, -1):  # sB - kA, both products at once
        result, summand = add_points(result, result), summands[2 * (s >> bit & 1) + (k >> bit & 1)]
        result = add_points(result, summand) if summand else result
    return encode_point(result) == r  # as bytes, so another encoding of R does not pass


@lru_cache(maxsize=1024)
def is_valid_signature(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return `verify_signature`, remembered: several rounds find out who was trusted when, and check the same signatures."""
    return verify_signature(public, message, signature)
