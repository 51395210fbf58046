"""How good estimates of population uniqueness are: samples of Census-Income, of which the truth is known.

`python -m experiments.population train.parquet test.parquet` takes the people of the files (the two of UCI's
Census-Income KDD, 299,285 people) for the population, draws samples from it, and compares the estimated share of
uniques with the share that really is unique. The files are not part of this repository.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np

from maskwright.population.counts import SampleCounts
from maskwright.population.estimates import UNIQUES, uniqueness_estimates

COLUMNS = (
    "age", "sex", "race", "marital_status", "education", "country_of_birth_self", "major_occupation_code",
    "class_of_worker", "detailed_household_and_family_stat",
)  # fmt: skip
NUMBERS = (5, 7, 9)  # of columns, from the left
FRACTIONS = (0.1, 0.01)


def combinations(files: Sequence[Path], columns: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of each person's combination of values."""
    names = ", ".join(f'"{name}"' for name in columns)
    with duckdb.connect() as database:
        query = f"SELECT dense_rank() OVER (ORDER BY {names}) - 1 AS k FROM read_parquet(?)"  # noqa: S608
        found = database.execute(query, [[str(file) for file in files]]).fetchnumpy()["k"]
    return np.asarray(found, dtype=np.int64)


def measure(files: Sequence[Path], repetitions: int, seed: int = 1) -> list[dict[str, float | int | str]]:
    """The true and the estimated share of uniques, for each number of columns and sampling fraction."""
    rows: list[dict[str, float | int | str]] = []
    for number in NUMBERS:
        of_person = combinations(files, COLUMNS[:number])
        people = len(of_person)
        truth = float((np.bincount(of_person) == 1).sum() / people)
        for fraction in FRACTIONS:
            rng = np.random.default_rng(seed)
            found: dict[str, list[float]] = {name: [] for name in UNIQUES}
            for _ in range(repetitions):
                chosen = rng.choice(people, round(fraction * people), replace=False)
                counts = SampleCounts.of(np.bincount(of_person[chosen]), people)
                for name, share in uniqueness_estimates(counts).shares.items():
                    found[name] += [share] if share is not None else []
            means = {name: float(np.mean(shares)) for name, shares in found.items() if shares}
            rows.append({"columns": number, "fraction": fraction, "truth": truth, **means})
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Print the table of a documentation page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="Parquet files with the population")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument(
        "--csv", type=Path, help="write the figures there, too: docs/population-estimates.csv"
    )
    chosen = parser.parse_args(arguments)
    measured = measure(chosen.files, chosen.repetitions)
    if chosen.csv is not None:
        lines = [",".join(("columns", "fraction", "truth", *UNIQUES))]
        lines += [
            ",".join([f"{row['columns']}", f"{row['fraction']}", f"{row['truth']:.6f}"]
                     + [f"{row[name]:.6f}" if name in row else "" for name in UNIQUES])
            for row in measured
        ]  # fmt: skip
        chosen.csv.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("| columns | sampled | truly unique | " + " | ".join(UNIQUES) + " | estimate ÷ truth |")
    print("| --- " * (len(UNIQUES) + 4) + "|")
    for row in measured:
        shares = [float(row[name]) for name in UNIQUES if name in row]
        shown = " | ".join(f"{row[name]:.4f}" if name in row else "no answer" for name in UNIQUES)
        ratios = [share / float(row["truth"]) for share in shares]
        print(
            f"| {row['columns']} | {row['fraction']} | {row['truth']:.4f} | {shown} | "
            f"{min(ratios):.2f} to {max(ratios):.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
