"""The stream of random bits: ChaCha20 as in RFC 8439, the twin alike, purposes apart, interruptions not lost."""

from __future__ import annotations

import _thread
import subprocess
import sys

import numpy as np
import pytest

from maskwright.kernels import randomness
from maskwright.kernels.randomness import (
    ChaCha,
    PlainChaCha,
    derived_key,
    random_generator,
    secret_key,
    shuffle_within,
    stream_blocks,
)

ZERO, ONE = bytes(32), bytes(31) + b"\1"
# RFC 8439, appendix A.1, test vectors 1 to 3 (key, number of the block, 64 bytes)
VECTORS = [
    (ZERO, 0, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
              "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"),
    (ZERO, 1, "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
              "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"),
    (ONE, 1, "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
             "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"),
]  # fmt: skip
SOURCES = [PlainChaCha] + ([ChaCha] if randomness.compiled else [])


@pytest.mark.parametrize(("key", "number", "expected"), VECTORS)
def test_the_vectors_of_the_standard(key: bytes, number: int, expected: str) -> None:
    assert stream_blocks(key, number, 1).astype("<u4").tobytes().hex() == expected
    for source in SOURCES:
        words = np.random.Generator(source(key)).integers(0, 2**32, 16 * (number + 1), dtype=np.uint32)
        assert words[-16:].astype("<u4").tobytes().hex() == expected


def test_the_counter_goes_beyond_32_bits() -> None:
    across = stream_blocks(ONE, 2**32 - 1, 2)
    assert across[1].tolist() == stream_blocks(ONE, 2**32, 1)[0].tolist()
    assert across[1].tolist() != stream_blocks(ONE, 0, 1)[0].tolist()


@pytest.mark.skipif(randomness.compiled is None, reason="the kernels are not installed")
def test_the_twin_draws_the_same() -> None:
    drawn = []
    for source in (ChaCha, PlainChaCha):
        g = np.random.Generator(source(ONE))
        drawn.append(
            [g.permutation(1000).tolist(), g.random(7).tolist(), g.integers(0, 2**64, 3, dtype=np.uint64).tolist(),
             g.integers(0, 5, 9).tolist(), g.integers(0, 2**32, 700, dtype=np.uint32).tolist(),
             g.multivariate_hypergeometric([5, 6, 7], 4).tolist(), g.bytes(5)]
        )  # fmt: skip
    assert drawn[0] == drawn[1]


def test_purposes_have_streams_of_their_own() -> None:
    first, again, other = (random_generator(ONE, p).permutation(200).tolist() for p in ("a", "a", "b"))
    assert first == again
    assert first != other
    assert derived_key(ONE, "a") not in (derived_key(ONE, "b"), derived_key(ZERO, "a"), ONE)
    assert derived_key(ONE, "a")[:16] != derived_key(ONE, "b")[:16]
    assert secret_key(7) == secret_key(7) != secret_key(8)
    assert secret_key() != secret_key()


def test_a_key_has_256_bits() -> None:
    assert len(secret_key()) == len(secret_key(1)) == 32
    if randomness.compiled:
        with pytest.raises(ValueError, match="32 bytes"):
            ChaCha(b"short")


def test_an_interruption_reaches_the_caller() -> None:
    """Ctrl-C while numpy is calling back: no number is 0 for it, and it is raised once numpy is done."""
    source = PlainChaCha(ONE)
    g = np.random.Generator(source)
    take, calls = source._word, 0

    def word() -> int:
        nonlocal calls
        calls += 1
        if calls == 50:
            _thread.interrupt_main()
        return take()

    source._word = word  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        g.permutation(5000)
    assert sorted(g.permutation(100).tolist()) == list(range(100)), "it can be used again"


def test_without_the_kernel_the_same_release(tmp_path: object) -> None:
    """The generator falls back by itself where nothing was compiled."""
    code = (
        "import sys; sys.modules['maskwright.kernels._chacha'] = None\n"
        "from maskwright.kernels import randomness as r\n"
        "assert r.compiled is None\n"
        "print(r.random_generator(bytes(32), 'x').permutation(50).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(random_generator(bytes(32), "x").permutation(50).tolist())


@pytest.mark.skipif(randomness.compiled is None, reason="the kernels are not installed")
def test_the_twin_shuffles_the_same() -> None:
    start = np.array([3, 3, 4, 6, 45, 300])
    shuffled = []
    for source in (ChaCha, PlainChaCha):
        g = np.random.Generator(source(ONE))
        values = np.arange(310, dtype=np.int32)
        shuffle_within(g, values, start)
        shuffled.append([*values.tolist(), int(g.integers(0, 2**32, dtype=np.uint32))])
    assert shuffled[0] == shuffled[1]
    values = shuffled[0][:-1]
    assert values[:4] == [0, 1, 2, 3] and values[300:] == list(range(300, 310))
    for begin, end in ((4, 6), (6, 45), (45, 300)):
        assert sorted(values[begin:end]) == list(range(begin, end))


@pytest.mark.parametrize("source", SOURCES)
def test_a_shuffle_gives_every_order_the_same_chance(source: type) -> None:
    """Chi-square over the 24 orders of four values, in the second of three parts."""
    g, n = np.random.Generator(source(ZERO)), 2_400
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(n):
        values = np.array([8, 9, 0, 1, 2, 3, 7], dtype=np.int32)
        shuffle_within(g, values, np.array([0, 2, 6, 7]))
        order = tuple(values[2:6].tolist())
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    assert sum((c - n / 24) ** 2 / (n / 24) for c in counts.values()) < 60  # 23 degrees: 1 in 30,000


@pytest.mark.skipif(randomness.compiled is None, reason="the kernels are not installed")
@pytest.mark.parametrize("start", [[-1, 2], [0, 5], [2, 1]])
def test_parts_that_are_not_there_are_refused(start: list[int]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        shuffle_within(np.random.Generator(ChaCha(ONE)), np.zeros(4, dtype=np.int32), np.array(start))
