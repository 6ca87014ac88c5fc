"""Governed releases of data about people: one policy file in, a protected and verifiable candidate out."""

__version__ = "0.1.0"
