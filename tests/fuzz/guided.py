"""Coverage-guided fuzzing with atheris, in a process of its own: `python -m tests.fuzz.guided policy 20000 1 /tmp/new`.

The code is instrumented as it is imported,
so that an input that reaches a new branch becomes a seed for others.
The arguments are target, number of inputs, seed,
and a folder for the corpus. The last line says how many inputs were
run; a finding ends the process with a traceback, the input, and a status that is not 0.
"""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["maskwright.domain", "maskwright.errors", "yaml"]):
    # the product is imported by these, and instrumented on the way
    harness = importlib.import_module("tests.fuzz.harness")
    policies = importlib.import_module("tests.fuzz.policies")
    pipeline = importlib.import_module("tests.fuzz.pipeline")


def policy(data: bytes) -> Any:
    """The first byte chooses the values that hierarchies are built on."""
    return data[1:], policies.DOMAINS[data[0] % len(policies.DOMAINS)] if data else []


def hierarchy(data: bytes) -> Any:
    return data, [line.split(b";")[0].decode("utf-8", "replace") for line in data.splitlines()[:20]], {}


def statements(data: bytes) -> Any:
    return data.decode("utf-8", "surrogateescape"), False


WAYS = {
    "policy": (policies.Policies, policy,
    [b"\x02" + seed for seed in policies.SEEDS[:1]] + [b"\x01" + t for t in policies.TRICKS]),
    "hierarchy": (policies.HierarchyFiles, hierarchy, [seed for seed, _ in policies.LABELS]),
    "statements": (pipeline.Statements, statements, [said.encode() for said in pipeline.SAID]),
}  # fmt: skip


def main() -> None:
    name, runs, seed, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    cls, decode, seeds = WAYS[name]
    target = cls()
    target.folder, corpus = folder / "files", folder / "corpus"
    for place in (target.folder, corpus):
        place.mkdir(parents=True)
    for i, data in enumerate(seeds):
        (corpus / str(i)).write_bytes(data)

    def once(data: bytes) -> None:
        what = harness.attempt(target, decode(data))
        if what is not None and not what.startswith("refused: "):
            raise AssertionError(f"{what}\nthe input was {data!r}")

    signal.signal(signal.SIGPROF, harness._too_slow)
    options = [f"-runs={runs}", f"-seed={seed}", "-max_len=4096", "-rss_limit_mb=2048", "-timeout=60",
               f"-artifact_prefix={folder}/", str(corpus)]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], once)
    atheris.Fuzz()  # does not come back


if __name__ == "__main__":
    main()
