"""See one case again: python -m tests.differential model:k-anonymity 17 (from the root, with src on the path)."""

from __future__ import annotations

import sys
from random import Random

from tests.differential.subjects import every_subject

if __name__ == "__main__":
    subjects = every_subject()
    if len(sys.argv) != 3 or sys.argv[1] not in subjects:
        sys.exit("usage: python -m tests.differential SUBJECT CASE\n\n" + "\n".join(subjects))
    print(subjects[sys.argv[1]].case(Random(f"{sys.argv[1]}/{sys.argv[2]}")))  # noqa: S311 - a case, not a secret
