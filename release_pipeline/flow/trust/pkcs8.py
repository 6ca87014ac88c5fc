"""Private keys at rest: PKCS #8 under a passphrase (RFC 8018, PBES2), with scrypt (RFC 7914) and AES-256 in CBC mode.

`cryptography` reads this form and does not write it: what it writes takes 2,048 rounds of PBKDF2, which is little. A guess costs
as much here as with the usual N = 2^17 and p = 1; N = 2^14 and p = 8 need 16 MiB at a time instead of 128, and the `openssl`
command, which gives scrypt no more than 32 MiB, can read the key too.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import textwrap

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

N, R, P = 2**14, 8, 8
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_PBES2 = bytes.fromhex("06092a864886f70d01050d")  # 1.2.840.113549.1.5.13
_SCRYPT = bytes.fromhex("06092b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_AES_256_CBC = bytes.fromhex("060960864801650304012a")  # 2.16.840.1.101.3.4.1.42


def encrypt(key: bytes, passphrase: bytes) -> str:
    """A key (DER) as an encrypted PEM file."""
    salt, start = secrets.token_bytes(16), secrets.token_bytes(16)
    secret = hashlib.scrypt(passphrase, salt=salt, n=N, r=R, p=P, maxmem=2**26, dklen=32)
    padder, cipher = PKCS7(128).padder(), Cipher(algorithms.AES(secret), modes.CBC(start)).encryptor()
    encrypted = cipher.update(padder.update(key) + padder.finalize()) + cipher.finalize()
    numbers = b"".join(_der(_INTEGER, _number(value)) for value in (N, R, P))
    derived = _der(_SEQUENCE, _SCRYPT + _der(_SEQUENCE, _der(_OCTETS, salt) + numbers))
    scheme = _der(_SEQUENCE, derived + _der(_SEQUENCE, _AES_256_CBC + _der(_OCTETS, start)))
    whole = _der(_SEQUENCE, _der(_SEQUENCE, _PBES2 + scheme) + _der(_OCTETS, encrypted))
    lines = textwrap.wrap(base64.b64encode(whole).decode(), 64)
    return "\n".join(("-----BEGIN ENCRYPTED PRIVATE KEY-----", *lines, "-----END ENCRYPTED PRIVATE KEY-----", ""))


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else bytes([0x82, *divmod(size, 256)])
    return bytes([tag]) + length + content


def _number(value: int) -> bytes:
    """A number above 0, with room for its sign."""
    return value.to_bytes(value.bit_length() // 8 + 1, "big")
