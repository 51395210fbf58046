"""A generator of messy tables with the ground truth: what each cell means, and of which kind of mess it is."""

from __future__ import annotations

import csv
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from maskwright.prepare import repairs as words

NAMES = ("sex", "charges", "weight", "born", "admitted", "left", "zip", "symptoms", "disease")
SEXES = {"Female": ("Female", "F", "f", "female ", " FEMALE"), "Male": ("Male", "M", "m", "male")}
SYMPTOMS = ("cough", "fever", "pain", "rash", "fatigue")
GONE = ("n/a", "unknown", "-")


@dataclass
class MessyTable:
    """A table as it was written (`cells`), what each cell means (`truth`; None is missing), and what was found."""

    cells: list[dict[str, str]] = field(default_factory=list)
    truth: list[dict[str, str | None]] = field(default_factory=list)
    found: Counter[tuple[str, str]] = field(default_factory=Counter)

    def write(self, path: Path, delimiter: str = ",", encoding: str = "utf-8") -> Path:
        """Write it as CSV."""
        with path.open("w", newline="", encoding=encoding) as file:
            writer = csv.DictWriter(file, NAMES, delimiter=delimiter)
            writer.writeheader()
            writer.writerows(self.cells)
        return path


def messy_table(rows: int, seed: int = 0) -> MessyTable:
    """A hospital export in which every column is messy in its own way."""
    made, draw = MessyTable(), random.Random(seed)  # noqa: S311 - a table for tests
    for _ in range(rows):
        made.cells.append({})
        made.truth.append({})
        for maker in (_sex, _charges, _weight, _dates, _zip, _symptoms):
            maker(made, draw)
        _put(made, "disease", *[draw.choice(("flu", "cold", "asthma"))] * 2, "")
    return made


def _put(made: MessyTable, name: str, cell: str, meant: str | None, what: str) -> None:
    made.cells[-1][name], made.truth[-1][name] = cell, meant
    if what:
        made.found[name, what] += 1


def _sex(made: MessyTable, draw: random.Random) -> None:
    meant = draw.choice(list(SEXES))
    cell = draw.choice(SEXES[meant])
    if draw.random() < 0.1:
        _put(made, "sex", draw.choice(GONE), None, words.MISSING)
    else:
        _put(made, "sex", cell, meant, words.SPELLED if cell.strip() != meant else "")


def _charges(made: MessyTable, draw: random.Random) -> None:
    """$1,234.50, EUR 99, plain ones, what means missing, and what fits nothing."""
    cents = draw.randrange(0, 900_000)
    meant = f"{cents // 100}.{cents % 100:02}".rstrip("0").rstrip(".")
    form = draw.randrange(5)
    if form == 0:
        _put(made, "charges", meant, meant, "")
    elif form == 4 and draw.random() < 0.3:
        _put(made, "charges", draw.choice(("see file", "tbd")), None, words.UNFIT)
    elif form == 4:
        _put(made, "charges", draw.choice(GONE), None, words.MISSING)
    else:
        cell = (f"${cents / 100:,.2f}", f"{cents / 100:.2f} EUR", f"$ {cents / 100:,.2f}")[form - 1]
        _put(made, "charges", cell, meant, words.NUMBER)


def _weight(made: MessyTable, draw: random.Random) -> None:
    """Kilograms with a decimal comma, and some in grams."""
    tenths = draw.randrange(400, 1200)
    meant = f"{tenths // 10}.{tenths % 10}".removesuffix(".0")
    cell = draw.choice((meant.replace(".", ","), f"{meant.replace('.', ',')} kg", f"{tenths * 100} g"))
    _put(made, "weight", cell, meant, words.NUMBER if cell != meant else "")


def _dates(made: MessyTable, draw: random.Random) -> None:
    """A date of birth in three formats with some of two digits, and a stay whose days may be exchanged."""
    born = date(1940, 1, 1) + timedelta(draw.randrange(25_000))
    form = draw.choice(("%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%d.%m.%y"))
    _put(made, "born", born.strftime(form), born.isoformat(), f"{words.DATE} {form}")
    day = date(2023, 1, 1) + timedelta(draw.randrange(365))
    form = draw.choice(("%d/%m/%Y", "%m/%d/%Y"))
    unclear = day.day <= 12 and day.day != day.month
    # where day and month are the same, or only one order makes a day, the first format that fits is the one
    read = "%d/%m/%Y" if day.day == day.month else form
    what = words.AMBIGUOUS if unclear else f"{words.DATE} {read}"
    _put(made, "admitted", day.strftime(form), None if unclear else day.isoformat(), what)
    _put(made, "left", (day + timedelta(draw.randrange(20))).isoformat(), None, "")
    made.truth[-1]["left"] = made.cells[-1]["left"]


def _zip(made: MessyTable, draw: random.Random) -> None:
    meant = f"{draw.choice((2139, 2140, 10001, 60601, 90210)):05}"
    cell = draw.choice((meant, meant.lstrip("0"), f"{int(meant)}.0", f"{meant}-{draw.randrange(1000, 9999)}"))
    _put(made, "zip", cell, meant, words.DIGITS if cell != meant else "")


def _symptoms(made: MessyTable, draw: random.Random) -> None:
    held = draw.sample(SYMPTOMS, draw.randrange(1, 4))
    separator = draw.choice(("; ", ";", "|", " | "))
    cell = separator.join(held)
    _put(made, "symptoms", cell, ";".join(sorted(held)), words.LIST if "|" in cell else "")


PREPARE = {
    "sex": {"spellings": {"Female": ["F", "f", "female", "FEMALE"], "Male": ["M", "m", "male"]}, "missing": GONE},
    "charges": {
        "numbers": {"thousands": [","], "signs": ["$", "EUR"]}, "missing": GONE, "otherwise": "missing",
    },
    "weight": {"numbers": {"decimal": [","], "units": {"kg": 1, "g": "0.001"}}},
    "born": {"dates": {"formats": ["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%d.%m.%y"], "first_year": 1930}},
    "admitted": {"dates": {"formats": ["%d/%m/%Y", "%m/%d/%Y"], "ambiguous": "missing"}},
    "zip": {"digits": {"width": 5, "suffix": "drop"}},
    "symptoms": {"lists": {"separators": [";", "|"]}},
    "stay": {"between": {"from": "admitted", "to": "left"}},
    "age": {"between": {"from": "born", "to": "2024-06-30", "unit": "years"}},
}  # fmt: skip
