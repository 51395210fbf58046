"""Bad input through the whole product: statements, first looks, audits, and releases from beginning to end."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import yaml

import maskwright as mw
from maskwright.attacks import ATTACKS
from maskwright.errors import MaskwrightError, UsageError
from maskwright.identifiers.detection import detect_identifier, detect_inside
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.policy.policy import Policy
from maskwright.policy.yaml_text import load_yaml
from maskwright.suggest.advice import Answers
from maskwright.verification.verify import verify_folder
from maskwright.worlds.statements.language import parse_statements
from tests.fuzz.harness import Target
from tests.fuzz.mangle import NUMBERS, TEXTS, spoil, value
from tests.fuzz.tables import csv_bytes, readings
from tests.identifiers.corpus import corpus_columns
from tests.patients import HEADER, POLICY, patients, write_csv

PIECES = [
    "Ed", "Ed is person(age=34)", "person", "(", ")", "age", "=", "!=", "34", "13000", "and", "or", "not",
    "implies", "->", "in",
    "{", "}", "{flu, asthma}", ",", ";", "\n", "#", "disease", ".", "disease = flu", "Ed.disease = flu",
    "missing", "is", '"',
    "'", '"lung cancer"', "impossible", "impossible(sex=m, disease=flu)", "person(age=20).disease = flu", "-",
    "!", " ",
    "person(zip=13000, sex=m)", "not " * 120, "(" * 120, "Ed.disease = flu or " * 60, "\x00", "é", "𝐄𝐝",
    "\u2028",
]  # fmt: skip
SAID = [
    "Ed is person(age=34)\nnot Ed.disease = flu",
    "person(age=20).disease = flu implies person(age=21).disease = asthma",
    "impossible(sex=m, disease=cancer)",
    "person(age=20).disease in {flu, asthma} and not person(age=22).disease = ulcer",
]  # fmt: skip


class Statements(Target):
    """What an adversary knows, as text; some of it is also believed, and a release attacked with it."""

    name = "statements"
    cpu_s = 20.0

    def begin(self) -> None:
        table = write_csv(self.folder / "patients.csv", patients(12))
        asked = yaml.safe_load(POLICY) | {"require": [{"model": "k-anonymity", "k": 3}],
        "method": {"name": "mondrian"},
                                          "recoding": {"name": "bucketize"}}  # fmt: skip
        self.release = mw.anonymize(table, asked)

    def make(self, rng: random.Random) -> tuple[str, bool]:
        chance = rng.random()
        if chance < 0.5:
            text = rng.choice(["", " "]).join(rng.choice(PIECES) for _ in range(rng.randint(1, 15)))
        elif chance < 0.8:
            text = spoil(rng, rng.choice(SAID).encode(), 3).decode("utf-8", "surrogateescape")
        else:
            text = ";".join(rng.choice(SAID) for _ in range(rng.randint(1, 3))).replace(
                "flu", rng.choice(["flu", value(rng)])
            )
        return text, rng.random() < 0.02

    def feed(self, given: tuple[str, bool]) -> None:
        text, believed = given
        parse_statements(text)
        if believed:
            mw.attack(self.release, ATTACKS["background-knowledge"](knowing=(text,), draws=100))  # type: ignore[call-arg]


class FirstLooks(Target):
    """`init`, `advise`, `audit` and `check` on tables that nobody prepared."""

    name = "first-look"
    cpu_s = 30.0

    def make(self, rng: random.Random) -> tuple[bytes, Any, str]:
        return csv_bytes(rng), readings(rng), rng.choice(["init", "init", "advise", "audit", "check"])

    def feed(self, given: tuple[bytes, Any, str]) -> None:
        data, reading, command = given
        path = self.folder / "table.csv"
        path.write_bytes(data)
        if command in ("init", "advise"):
            answers = None if command == "init" else Answers("researchers", "people", "same-labels")
            suggestion = mw.suggest_policy(path, reading=reading, answers=answers)
            with suppress(MaskwrightError):  # a table without quasi-identifiers has no policy yet
                Policy.of(load_yaml(suggestion.text.encode(), "suggested"), "suggested")
            return
        from maskwright.engines import open_engine

        engine = open_engine(threads=1)
        try:
            names = [c.name for c in engine.open(path, reading).columns]
        finally:
            engine.close()
        if command == "check":
            mw.check(path, names[:2], unit=names[-1], preset="gdpr-wp216", reading=reading).as_dict()
            return
        mw.audit(path, names[:2], names[2:3], reading=reading).as_dict()


SIGNS = "\n\t\x00\u200b٠٩²③Ⅳ０３ -./ABKXßİſ@:"
LENGTHS = [1, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 22, 27, 34]


class Identifiers(Target):
    """Direct identifiers by content, in numbers of every format with some signs replaced; no answer has a value."""

    name = "identifiers"
    cpu_s = 20.0

    def begin(self) -> None:
        self.columns = [column.values for column in corpus_columns(12)]

    def make(self, rng: random.Random) -> tuple[int, list[str]]:
        length, drawn = rng.choice(LENGTHS), []
        for _ in range(rng.choice((1, 6, 20))):
            number = rng.choices("0123456789", k=length)
            for _ in range(rng.choice((0, 1, 1, 2))):
                number[rng.randrange(length)] = rng.choice(SIGNS)
            drawn.append("".join(number))
        return rng.randrange(2**32), drawn

    def feed(self, given: tuple[int, list[str]]) -> None:
        seed, values = given
        rng = random.Random(seed)  # noqa: S311
        if rng.random() < 0.3:
            column = list(rng.choice(self.columns))
            for _ in range(rng.choice((0, 1, 1, 3))):
                place = rng.randrange(len(column))
                column[place] = rng.choice(
                    [spoil(rng, column[place].encode()).decode("utf-8", "replace"), *values]
                )
            values = column
        found = detect_identifier(values) or detect_inside(values)
        if found is not None:
            told = found.sentence()
            assert not any(v in told for v in values if len(v) > 4), "a value was told"
            raise UsageError(told)


PASSING = {"role": "insensitive", "near_unique": "allow"}
PSEUDONYM = {"role": "identifier", "publish": "pseudonym"}
COLUMNS = {
    "name": [*["identifier"] * 6, PSEUDONYM, PSEUDONYM | {"stable": True}],
    "age": [{"role": "quasi-identifier", "hierarchy": h} for h in
            ({"intervals": [5, 10, 20]}, "suppress", {"mask": "right"}, {"intervals": ["1/3", 1, 10]})],
    "zip": [{"role": "quasi-identifier", "hierarchy": {"mask": "right"}}] * 3 + ["sensitive"],
    "sex": [{"role": "quasi-identifier", "hierarchy": "suppress"}, PASSING, "sensitive"],
    "disease": ["sensitive", {"role": "sensitive", "multivalued": ";"}, {"role": "sensitive",
    "multivalued": "u"}],
    "ward": [PASSING, "sensitive"],
}  # fmt: skip
UNITS = [
    "name",
    "none",
    {"column": "name", "publish": "pseudonym", "events": "2"},
    {"column": "name", "rows": "2"},
]
PERTURBED: list[dict[str, Any]] = [
    {"noise": {"share": "0.1"}}, {"round": "5"}, {"rank-swap": {"window": "0.1"}}, {"microaggregate": {"k": "3"}},
    {"top-code": {"limit": "13002"}}, {"bottom-code": {"limit": "13001"}},
]  # fmt: skip
SMALL = ["1", "2", "3", "1/2", "0.3", "0.9", "1.5", "10%", "0.99"]


def sensible(rng: random.Random, registry: Any, key: str) -> dict[str, Any]:
    """A registered thing with settings as somebody would write them, now and then one that nobody would."""
    name = rng.choice(list(registry))
    found: dict[str, Any] = {key: name}
    for field, info in registry[name].model_fields.items():
        if not info.is_required() and rng.random() < 0.6:
            continue
        kind = str(info.annotation)
        words = [w for w in get_args(info.annotation) if isinstance(w, str)]
        if words:
            found[field] = rng.choice(words)
        elif "bool" in kind:
            found[field] = rng.choice(["true", "false"])
        elif "int" in kind and "Fraction" not in kind:
            found[field] = rng.choice(["1", "2", "2", "3", "4"])
        elif "Fraction" in kind or "float" in kind:
            found[field] = rng.choice(SMALL)
        elif info.is_required():
            found[field] = value(rng)
    if len(found) > 1 and rng.random() < 0.3:
        found[rng.choice([f for f in found if f != key])] = rng.choice(NUMBERS)
    return found


class Releases(Target):
    """From a table with odd cells and a policy with odd settings to a folder that is verified and attacked."""

    name = "release"
    cpu_s = 60.0

    def make(self, rng: random.Random) -> tuple[list[list[str]], dict[str, Any], int]:
        rows = patients(rng.choice((1, 6, 12, 12, 24, 40)))
        for _ in range(rng.choice((0, 0, 1, 4))):
            rng.choice(rows)[rng.randrange(1, len(HEADER))] = rng.choice([*TEXTS, *NUMBERS])
        policy: dict[str, Any] = {
            "columns": {name: rng.choice(choices) for name, choices in COLUMNS.items()},
            "require": [{"model": "k-anonymity", "k": 2}],
        }
        if rng.random() < 0.7:
            policy["require"] += [sensible(rng, MODELS, "model")]
        if rng.random() < 0.8:
            policy["method"] = sensible(rng, METHODS, "name")
        if rng.random() < 0.4:
            policy["recoding"] = rng.choice(
                ["bucketize", "permute", {"name": "permute", "quasi_identifiers": "generalised"}]
            )
        if rng.random() < 0.2:
            policy["missing"] = {"tokens": [rng.choice(TEXTS)], "rows": rng.choice(["keep", "drop"])}
        if rng.random() < 0.1:
            policy["unit"] = rng.choice(UNITS)
        if rng.random() < 0.15:
            policy["columns"]["zip"] = {"role": "sensitive", "publish": rng.choice(PERTURBED)}
        if rng.random() < 0.3:
            policy["output"] = {"format": rng.choice(["csv", "parquet"])}
        return rows, policy, rng.randrange(3)

    def feed(self, given: tuple[list[list[str]], dict[str, Any], int]) -> None:
        rows, policy, way = given
        table = write_csv(self.folder / "table.csv", rows)
        out = self.folder / "release"
        shutil.rmtree(out, ignore_errors=True)
        try:
            if way == 0:
                mw.anonymize(table, policy)
                return
            mw.anonymize(table, policy, out)
        except MaskwrightError:
            assert not out.exists(), "a refused release was written"
            assert sorted(p.name for p in self.folder.iterdir()) == [Path(table).name], (
                "something was left behind"
            )
            raise
        assert verify_folder(out).ok
        if way == 2:
            mw.attack(out)
