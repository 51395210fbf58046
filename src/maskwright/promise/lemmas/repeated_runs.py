"""Repetition: the same policy on the same input makes the same release, so that a second run teaches nothing.

**Lemma (repetition).** If every random choice is a function of a secret key, the input and the policy, then any
number of runs of the same policy on the same input tells what one run tells.

*Proof.* They publish the same bytes. Nobody without the key can predict a choice; nobody with the command can draw
again until a draw pleases. ∎

Two runs with independent draws are two releases about the same people: two Anatomy releases that each keep 1/l can
leave one common value, and so certainty. *Other* policies on the same input are other looks: they are counted, and
the label of a release that follows them is measured.

**Checked** by `tests/leaks/test_repetition.py`.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

REPETITION = Lemma(
    "repetition",
    "the same policy on the same input makes the same release, byte for byte",
    ("random choices follow from the installation key, the input and the policy", "the key is kept"),
    "tests/leaks/test_repetition.py",
    __name__,
)
