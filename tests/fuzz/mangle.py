"""Ways to spoil bytes and texts, and the values that break programs most often."""

from __future__ import annotations

import random
from collections.abc import Sequence

BIG = 9**9

NUMBERS = [
    "0", "-0", "1", "-1", "2", "3", "5", "0.5", "1/4", "1/0", "0/0", "-1/3", "2%", "101%", "1e5", "1e99",
    "1e100", "1e101",
    "1e999999999", "1e-999999999", "-1e400", "1e+", ".nan", ".inf", "-.inf", "nan", "inf", "NaN", "Infinity",
    "0x10",
    "1_000", "1__0", "٣", "²", "½", "9" * 30, "9" * 400, "2147483648", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "-9223372036854775809", "0.1" + "0" * 90 + "1", "1e308",
    "5e-324", "+5",
    " 5 ", "5.", ".5", "5e", "--5", "1/1e9", "1e9/1", "1 /2", "%", "-%",
]  # fmt: skip

TEXTS = [
    "", " ", "~", "null", "true", "no", "yes", "*", "?", "NA", "a", "ab", "x" * 300, "é", "日本", "ß", "İ",
    "ﬁ", "\u0301", "\u200b", "\u202e", "\ufeff", "\U0001f3f3\ufe0f", "\x00", "\x01", "\x1e\x1e", "\x1f",
    "\x7f", "\x85",
    "\u2028", "\n", "\r", "\t", "a\nb", "a\r\nb", '"', '""', "'", "`", ";", ",", "|", "\\", "\\n", "$1", "{}",
    "{0}", "%s",
    "--", "/*", "'; DROP TABLE t; --", '"; DROP TABLE t; --', "=1+1", "+1", "-1", "@a", "=cmd|' /C calc'!A0",
    "<script>",
    "2024-01-31", "2024-13-45", "0000-00-00", "9999-12-31", "10000-01-01", "31.12.2024", "2024-01-31 12:00:00",
    "12-15", "[1, 2)", "1..2", "rowid", "t", "g", "id", "c0", "k0", "n", "u", "age", "zip", "disease", "level0",
    "file_row_number", "select", "..", "../x", "/dev/zero", "/dev/stdin", "a/b", "CON", "__class__",
    "${HOME}", "file:///",
]  # fmt: skip

CHUNKS = [
    b"\x00", b"\xff", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80",
    b"\xf4\x90\x80\x80", b"\xe9",
    b"\x80", b"\r", b"\n", b"\r\n", b"\n\n", b'"', b'""', b'"""', b",", b";", b"\t", b"|", b"'", b"\\", b"#",
    b"\x1a",
    b"\x1e\x1e", b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"=", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xc2\x85", b"0",
    b"-", b"null",
]  # fmt: skip


HUGE = ["x" * 20_000, "7" * 5_000, "é\n" * 5_000, "[" * 5_000]  # rare, because they take long to write down


def value(rng: random.Random) -> str:
    if rng.random() < 0.002:
        return rng.choice(HUGE)
    return rng.choice(NUMBERS if rng.random() < 0.5 else TEXTS)


def spoil(rng: random.Random, data: bytes, most: int = 6, chunks: Sequence[bytes] = CHUNKS) -> bytes:
    """Flip, insert, delete, repeat, swap or cut a few places."""
    spoilt = bytearray(data)
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(spoilt) + 1)
        end = min(len(spoilt), at + rng.choice((1, 1, 2, 4, 8, 40)))
        way = rng.randrange(8)
        if way == 0 and at < len(spoilt):
            spoilt[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            spoilt[at:at] = rng.choice(chunks)
        elif way == 2:
            del spoilt[at:end]
        elif way == 3:
            spoilt[at:at] = spoilt[at:end] * rng.choice((1, 2, 50))
        elif way == 4:
            spoilt[at:end] = rng.randbytes(end - at)
        elif way == 5:
            spoilt[at:end] = rng.choice(chunks)
        elif way == 6:
            other = rng.randrange(len(spoilt) + 1)
            spoilt[at:at] = spoilt[other : other + 30]
        elif rng.random() < 0.3:
            del spoilt[at:]
    return bytes(spoilt)
