"""Where random choices come from: the operating system, once per installation, and nothing else without a seed."""

from __future__ import annotations

import ast
import random
import secrets
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maskwright
import maskwright as mw
from maskwright.kernels import randomness
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import publish_release
from maskwright.pipeline.random_keys import installation_key
from tests.leaks.tables import METHODS, RECODINGS, as_kind, columns_of, forget_key, people, policy

SOURCE = Path(maskwright.__path__[0])
DATA = people(160)

# --- what the source code may use ---------------------------------------------------------------------

# Fixed seeds for what is no secret and published by nobody: simulated attackers, metrics, trials of other settings,
# what readers draw,
# characters that are changed to see whether a checksum notices, whom to look for where all would be too many; and
# where a search that stops in time looks next: whoever knows the method knows that, too.
NO_SECRET = {
    "methods/_lattice/anytime.py",
    "attacks/_minimality/drawn_worlds.py", "attacks/_minimality/replay.py", "attacks/_minimality/partitions.py",
    "attacks/_minimality/row_methods.py", "attacks/learned.py", "attacks/_people/people_worlds.py",
    "attacks/_people/absent_people.py", "identifiers/detection.py",
    "attacks/_minimality/local_credibility.py", "attacks/singling_out.py", "auditing/original.py",
    "auditing/controlled.py",
    "worlds/statements/fact_beliefs.py", "worlds/counting/mask_worlds.py", "worlds/counting/credibility.py",
    "metrics/prediction.py", "metrics/queries.py", "pipeline/column_changes.py", "pipeline/what_if.py",
    "notebook/result_frames.py",
}  # fmt: skip
FORBIDDEN_MODULES = {"random", "uuid"}
FORBIDDEN_NAMES = {
    "seed", "RandomState", "MT19937", "PCG64", "PCG64DXSM", "SFC64", "Philox", "SeedSequence", "get_state", "set_state",
}  # fmt: skip
TIME = {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "now", "getpid"}


def offences(code: str, where: str) -> list[str]:
    """Every use of a source of chance that a release may not have."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
            bad = FORBIDDEN_MODULES - ({"random"} if where in NO_SECRET else set())
            found += [f"imports {n}" for n in names if n.split(".")[0] in bad]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            inner = node.value
            if (
                inner.attr == "random"
                and isinstance(inner.value, ast.Name)
                and inner.value.id in ("np", "numpy")
            ):
                if node.attr in FORBIDDEN_NAMES or node.attr not in ("Generator", "default_rng"):
                    found.append(f"np.random.{node.attr}")
                if node.attr == "default_rng" and where not in NO_SECRET:
                    found.append("np.random.default_rng")
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("default_rng", "Random", "SystemRandom") and not node.args and not node.keywords:
                found.append("default_rng() without a seed")
            if name in ("sha256", "md5", "blake2b", "SeedSequence", "generator", "derived", "secret_key"):
                inside = {
                    n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node)
                }
                found += [f"time as a secret: {t}" for t in sorted(inside & TIME)]
            if name in ("Rand", "Randn", "Uuid"):  # SQL
                found.append(f"SQL {name}")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.lower()
            found += [
                f"SQL {f}"
                for f in ("random()", "uuid()", "gen_random_uuid", "setseed", "rand()")
                if f in text
            ]
    return found


def test_no_module_uses_another_source_of_chance() -> None:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        if bad := offences(path.read_text(encoding="utf-8"), where):
            found[where] = bad
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "import random", "from random import shuffle", "import uuid", "np.random.seed(1)", "np.random.shuffle(x)",
        "np.random.default_rng()", "np.random.default_rng(7)", "default_rng()",
        "np.random.Generator(np.random.PCG64(1))",
        "hashlib.sha256(str(time.time()).encode())", "'SELECT random()'", "exp.Rand()",
    ],
)  # fmt: skip
def test_the_check_can_fail(code: str) -> None:
    assert offences(code, "methods/x.py")


def test_only_modules_that_need_it_are_excused() -> None:
    for where in NO_SECRET:
        text = (SOURCE / where).read_text(encoding="utf-8")
        assert "default_rng(" in text or "random.Random(0)" in text, where


# --- what a run uses ----------------------------------------------------------------------------------


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is asked of the operating system; every generator that can be seeded raises."""
    asked: Counter[str] = Counter()

    def token_bytes(n: int) -> bytes:
        asked["bytes of the system"] += n
        return secrets.token_bytes(n)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a generator that can be seeded was used for a release")

    monkeypatch.setattr(randomness, "secrets", SimpleNamespace(token_bytes=token_bytes))
    for name in ("random", "shuffle", "permutation", "seed", "rand", "randint", "choice", "RandomState"):
        monkeypatch.setattr(np.random, name, refuse)
    for name in ("random", "shuffle", "seed", "randint", "choice", "sample", "getrandbits"):
        monkeypatch.setattr(random, name, refuse)
    for name in ("default_rng", "PCG64", "PCG64DXSM", "MT19937", "SFC64", "Philox", "SeedSequence"):
        monkeypatch.setattr(np.random, name, refuse)
    return asked


def published(method: str, recoding: str, passes: bool, folder: Path, seed: int | None = None) -> Any:
    made = mw.Policy.load(policy(method, recoding, passes))
    job = Job(as_kind(DATA, "polars", folder), made, seed=seed, attacks=())
    return {n: tuple(columns_of(t, "polars").items()) for n, t in publish_release(job).tables.items()}


CASES = [(method, "generalise" if method == "codip" else "permute", False) for method in METHODS]
CASES += [("mondrian", "generalise", True), ("optimal-lattice", "bucketize", True)]


@pytest.mark.parametrize(("method", "recoding", "passes"), CASES)
def test_all_chance_of_an_unseeded_run_is_the_systems(
    method: str,
    recoding: str,
    passes: bool,
    tmp_path: Path,
    watched: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One key of 256 bits is asked for, and with the same key everything is the same again: there is nothing else."""
    first = published(method, recoding, passes, tmp_path)
    assert watched == {"bytes of the system": 32}
    assert str(published(method, recoding, passes, tmp_path)) == str(first)
    assert watched == {"bytes of the system": 32}, "the key of the first run serves the second"
    monkeypatch.setattr(randomness, "secrets", SimpleNamespace(token_bytes=lambda n: b"k" * n))
    others = []
    for _ in range(2):
        forget_key()
        others.append(str(published(method, recoding, passes, tmp_path)))
    assert others[0] == others[1] != str(first)


def test_a_seeded_run_does_not_ask_the_system(tmp_path: Path, watched: Counter[str]) -> None:
    assert published("mondrian", "permute", False, tmp_path, 5) == published(
        "mondrian", "permute", False, tmp_path, 5
    )
    assert watched == {}


@pytest.mark.parametrize("place", ["session", "publish"])
def test_a_seedable_generator_is_caught(
    place: str, tmp_path: Path, watched: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check above fails when the pipeline takes its chance from numpy instead."""
    monkeypatch.setattr(f"maskwright.pipeline.{place}.random_generator", lambda *_: np.random.default_rng(1))
    with pytest.raises(AssertionError, match="seeded"):
        published("mondrian", "permute", False, tmp_path)


def test_a_release_on_disk_asks_the_system_too(tmp_path: Path, watched: Counter[str]) -> None:
    """A whole release on disk with attacks and report would use fixed seeds for those; without them, nothing else."""
    job = Job(as_kind(DATA, "csv", tmp_path), mw.Policy.load(policy("mask")), tmp_path / "r", attacks=(),
              keep_private="none")  # fmt: skip
    publish_release(job)
    assert watched == {"bytes of the system": 32}


def test_the_seed_is_in_no_public_byte(tmp_path: Path) -> None:
    seed = 918273645546372
    release = mw.anonymize(as_kind(DATA, "csv", tmp_path), policy("mondrian"), tmp_path / "r", seed=seed)
    key = randomness.secret_key(seed)
    secret = [str(seed).encode(), key, key.hex().encode(), f"{seed:x}".encode()]
    for path in sorted((tmp_path / "r" / "public").rglob("*")):
        assert not [s for s in secret if s in path.read_bytes()], path.name
    assert b'"seeded": true' in (tmp_path / "r/public/manifest.json").read_bytes(), "a reader is warned"
    assert b'"seeded": true' in (tmp_path / "r/private/manifest.json").read_bytes()
    assert b"fixed seed" in (tmp_path / "r/private/report.html").read_bytes()
    assert release.seeded


def test_no_key_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a release is in no file, public or private, nor is any key that was derived from it."""
    keys = []
    take = randomness.derived_key

    def derived(key: bytes, purpose: str) -> bytes:
        keys.extend([key, take(key, purpose)])
        return take(key, purpose)

    monkeypatch.setattr(randomness, "derived_key", derived)
    monkeypatch.setattr("maskwright.pipeline.publish.derived_key", derived)
    mw.anonymize(as_kind(DATA, "csv", tmp_path), policy("mondrian", "permute"), tmp_path / "r")
    keys.append(installation_key().secret)
    assert len(set(keys)) >= 7
    for path in (p for p in sorted((tmp_path / "r").rglob("*")) if p.is_file()):
        content = path.read_bytes()
        assert not [k for k in keys if k in content or k.hex().encode() in content], path.name


@pytest.mark.parametrize("recoding", list(RECODINGS))
def test_two_installations_differ(recoding: str, tmp_path: Path) -> None:
    first = published("mondrian", recoding, False, tmp_path)
    forget_key()
    assert str(published("mondrian", recoding, False, tmp_path)) != str(first)
