"""The one source of random choices of a release: ChaCha20 with a secret key.

A generator for tests and simulations (PCG64, Mersenne Twister) can be run backwards by whoever sees enough of its
numbers, and a release shows many: the numbers of groups are a permutation, and an insider knows which values MASK
replaced for other people. A stream cipher gives nothing away about the rest of its stream (docs/decisions/0006).

Every purpose has a key of its own, so that what is published of one tells nothing about another. numpy draws from the
stream as from its own generators, without bias. Where the kernel is not installed its plain twin serves, with the same
numbers.
"""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import itertools
import secrets
import signal
from threading import Lock, current_thread, main_thread
from types import ModuleType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

compiled: ModuleType | None
try:
    from maskwright.kernels import _chacha as compiled
except ImportError:  # not compiled at installation
    compiled = None

KEY_BYTES = 32


def secret_key(seed: int | None = None) -> bytes:
    """256 bits from the operating system; with a seed those that it stands for, which anybody can work out."""
    if seed is None:
        return secrets.token_bytes(KEY_BYTES)
    return hashlib.sha256(f"maskwright seed {seed}".encode()).digest()


def keyed_digest(key: bytes, *texts: str) -> bytes:
    """A key that belongs to some texts (HMAC-SHA256): the same for the same ones, and unknown without `key`."""
    parts = [text.encode() for text in texts]
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.new(key, message, hashlib.sha256).digest()


def derived_key(key: bytes, purpose: str) -> bytes:
    """A key of its own for a purpose: from it nobody can tell the key, or that of another purpose."""
    return hashlib.sha256(purpose.encode() + b"\0" + key).digest()


def random_generator(key: bytes, purpose: str) -> np.random.Generator:
    """Random choices for one purpose: the same for the same key, and unpredictable without it."""
    own = derived_key(key, purpose)
    source: Any = ChaCha(own) if compiled is not None else PlainChaCha(own)
    return np.random.Generator(source)


def shuffle_within(rng: np.random.Generator, values: NDArray[np.int32], start: NDArray[np.int64]) -> None:
    """Shuffle each part `values[start[g]:start[g + 1]]` in place, every order with the same chance."""
    source: Any = rng.bit_generator
    start = np.ascontiguousarray(start, dtype=np.int64)
    with source.lock:
        if isinstance(source, ChaCha) and compiled is not None:
            compiled.shuffle_within(source.capsule, values, start)
        else:
            source.shuffle_within(values, start)


class ChaCha:
    """The compiled stream, with what numpy asks of a bit generator: a lock, and a capsule with functions."""

    def __init__(self, key: bytes) -> None:
        if compiled is None:
            raise RuntimeError("the kernel is not installed")
        self.lock = Lock()
        self.capsule = compiled.bit_generator(key)


# --- the plain twin -----------------------------------------------------------------------------------

BLOCKS = 256  # made at a time
CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4")


def stream_blocks(key: bytes, first: int, count: int) -> NDArray[np.uint32]:
    """Blocks first, first + 1 … of the stream, 16 words each."""
    number = np.arange(first, first + count, dtype=np.uint64)
    start = np.zeros((16, count), dtype=np.uint32)
    start[:4] = CONSTANTS[:, None]
    start[4:12] = np.frombuffer(key, dtype="<u4")[:, None]
    start[12] = number & np.uint64(0xFFFFFFFF)
    start[13] = number >> np.uint64(32)
    x = start.copy()
    for _ in range(10):
        for i in range(4):
            _quarter(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return np.ascontiguousarray((x + start).T)


def _quarter(x: NDArray[np.uint32], a: int, b: int, c: int, d: int) -> None:
    for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[p] += x[q]
        mixed = x[r] ^ x[p]
        x[r] = (mixed << np.uint32(turn)) | (mixed >> np.uint32(32 - turn))


_Wide = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_Word = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_Double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)


class _Functions(ctypes.Structure):
    """`bitgen_t` of numpy/random/bitgen.h."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", _Wide),
        ("next_uint32", _Word),
        ("next_double", _Double),
        ("next_raw", _Wide),
    )


class PlainChaCha:
    """ChaCha's stream without a compiler. numpy calls back into Python for each number: right, but slow."""

    def __init__(self, key: bytes) -> None:
        self._key, self._block, self._at = key, 0, 0
        self._ready: list[int] = []
        self.lock = _Uninterrupted()
        word, wide = _Word(lambda _: self._word()), _Wide(lambda _: self._wide())
        double = _Double(lambda _: (self._wide() >> 11) * 2.0**-53)
        self._functions = _Functions(None, wide, word, double, wide)
        self._name = ctypes.c_char_p(b"BitGenerator")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.capsule = new(ctypes.addressof(self._functions), self._name, None)

    def _wide(self) -> int:
        low = self._word()
        return low | self._word() << 32

    def shuffle_within(self, values: NDArray[np.int32], start: NDArray[np.int64]) -> None:
        """Shuffle each part in place, as the compiled stream does."""
        for begin, end in itertools.pairwise(start.tolist()):
            part = values[begin:end].tolist()
            for i in range(len(part) - 1, 0, -1):
                j = self._below(i + 1)
                part[i], part[j] = part[j], part[i]
            values[begin:end] = part

    def _below(self, n: int) -> int:
        """A number below n, each with the same chance: the upper half of a product, or drawn again."""
        product = self._word() * n
        while product % 2**32 < 2**32 % n:
            product = self._word() * n
        return product >> 32

    def _word(self) -> int:
        if self._at == len(self._ready):
            self._ready = stream_blocks(self._key, self._block, BLOCKS).reshape(-1).tolist()
            self._block, self._at = self._block + BLOCKS, 0
        self._at += 1
        return self._ready[self._at - 1]


class _Uninterrupted:
    """A lock that holds back signals until numpy lets go of it: C would take an exception in a call back for a 0."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._handlers: dict[int, Any] = {}
        self._pending: list[int] = []

    def __enter__(self) -> None:
        self._lock.acquire()
        if current_thread() is main_thread():  # no other thread is ever interrupted
            known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            self._handlers = {number: handler for number, handler in known.items() if callable(handler)}
            for number in self._handlers:
                signal.signal(number, lambda number, _: self._pending.append(number))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        handlers, pending = self._handlers, self._pending
        self._handlers, self._pending = {}, []
        for number, handler in handlers.items():
            signal.signal(number, handler)
        self._lock.release()
        for number in pending:
            handlers[number](number, None)
