"""Worst-case background knowledge: MINIMIZE1, maximum disclosure with its witness, (c,k)-safety."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from maskwright.domain.classes import Classes, ValueCounts
from maskwright.domain.model import Context
from maskwright.kernels import max_disclosure as kernel
from maskwright.models import MODELS
from maskwright.worlds.statements.disclosure import Atom, Bucket

Case = dict[str, Any]


def pack(buckets: Sequence[Sequence[str]]) -> ValueCounts:
    """Buckets from the lists of their values."""
    domain = sorted({value for bucket in buckets for value in bucket})
    code = {value: i + 1 for i, value in enumerate(domain)}
    owner = [b for b, bucket in enumerate(buckets) for _ in bucket]
    codes = [code[value] for bucket in buckets for value in bucket]
    ones = np.ones(len(codes), dtype=np.int64)
    return ValueCounts.collect(
        tuple(domain), len(buckets), np.array(owner, np.int64), np.array(codes, np.int64), ones
    )


def minimize1(case: Case) -> Fraction:
    return Bucket.of(Counter(case["bucket"]), case["k"]).none(case["k"])


def max_disclosure(case: Case) -> Case:
    k = case["k"]
    found = kernel.max_disclosure(pack(case["buckets"]), k)
    witness, ratio = found.witness(k), found.ratios[k]
    assert witness is not None and ratio is not None
    return {
        "implications": found.implications[k],
        "ratio": ratio,
        "negated_atoms": found.negations[k],
        "witness": {
            "target": _atom(witness.target),
            "antecedents": [_atom(atom) for atom in witness.antecedents],
        },
    }


def _atom(atom: Atom) -> list[Any]:
    return [[atom.bucket, atom.person], atom.value]


def ck_safe(case: Case) -> bool:
    c = Fraction(case["c"])
    if not 0 < c <= 1:  # the product refuses such a c; no belief is above 1 or below 0
        return c > 1
    counts = pack(case["buckets"])
    sizes = np.array([len(bucket) for bucket in case["buckets"]], dtype=np.int64)
    model = MODELS["ck-safety"].model_validate({"c": c, "k": case["k"]})
    return model.check(Classes(sizes, sizes, {"s": counts}), Context()).ok


FUNCTIONS = {"minimize1": minimize1, "max_disclosure": max_disclosure, "ck_safe": ck_safe}
