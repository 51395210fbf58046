"""Pseudonyms: base32(HMAC-SHA256(key, domain ‖ column group ‖ canonical value))[:16], 80 bits (RFC 2104, RFC 4648).

Nobody can tell the value from a pseudonym, nor try values, without the key. Engines make them of columns; they share
the two padded keys with the plain function here, so that both give the same.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

BITS, LETTERS = 80, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BLOCK = 64  # bytes of a block of SHA-256


def is_pseudonym(text: object) -> bool:
    """Whether a text looks like one of these: sixteen letters of base 32. The missing text of a domain passes."""
    return text is None or (isinstance(text, str) and len(text) == BITS // 5 and set(text) <= set(LETTERS))


@dataclass(frozen=True)
class Pseudonyms:
    """A function from values to pseudonyms.

    Attributes:
        key: a secret; who has it can tell whose a pseudonym is. It belongs into `private/` only.
        domain: what pseudonyms are for: the same value has another one for each domain.
        group: the columns that have the same pseudonym for the same value.
    """

    key: bytes
    domain: str
    group: str

    def token(self, value: str) -> str:
        """The pseudonym of a canonical value."""
        return base64.b32encode(self.digest(value)[: BITS // 8]).decode()

    def digest(self, value: str) -> bytes:
        """The whole keyed hash of a canonical value."""
        inside = hashlib.sha256(self.inner + value.encode()).digest()
        return hashlib.sha256(self.outer + inside).digest()

    @property
    def inner(self) -> bytes:
        """What is hashed before a value: the inner padded key, then domain and group, each with its length."""
        parts = [text.encode() for text in (self.domain, self.group)]
        return self._padded(0x36) + b"".join(len(part).to_bytes(8, "big") + part for part in parts)

    @property
    def outer(self) -> bytes:
        """What is hashed before the inner hash: the outer padded key."""
        return self._padded(0x5C)

    def _padded(self, mask: int) -> bytes:
        key = self.key if len(self.key) <= _BLOCK else hashlib.sha256(self.key).digest()
        return bytes(byte ^ mask for byte in key.ljust(_BLOCK, b"\0"))
