"""What is done with a release after it was made, or refused: damaged files, and commands with odd words."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import maskwright as mw
from maskwright.auditing.evidence_page import STATED, write_evidence_page
from maskwright.cli.commands import command_parser, main
from maskwright.errors import MaskwrightError, UsageError
from maskwright.pipeline.alternatives import alternatives_to, chosen_alternative
from maskwright.pipeline.history import state_folder
from maskwright.pipeline.job import Job
from maskwright.pipeline.revealing import reveal_people
from tests.fuzz.harness import Target
from tests.fuzz.mangle import NUMBERS, TEXTS, spoil
from tests.patients import HEADER, patients, write_csv

ROWS = 24
NAME = re.compile(r"P0\d\d")  # whom nothing but an answer to `reveal` names
DATES = ("admitted", "discharged")
ODD: list[Any] = [
    None, [], {}, "", "\ud800", "a\nb", -1, 0, 1.5, 10**40, True, [[[]]], {"a": {}}, "0", "1/0", "nan", "../x",
    float("nan"), float("inf"), "x" * 300,
]  # fmt: skip
WORDS = [
    "--json", "--verbose", "--overwrite", "--help", "-o", "-p", "-k", "--", "-", "@", "@/dev/null", "@nowhere", ".",
    "..", "--reason", "--title", "--date", "--qi", "--preset", "--require", "--choose", "--facts", "--max-belief",
    "--metric", "table.csv", "policy.yaml", "release", "--seed", "\udcff", "AAAAAAAAAAAAAAAA", "--source", "--html",
    "https://u:p@host/t.csv", "--grid", "--memory", "--no-header",
]  # fmt: skip
PAIRS = {
    "anonymize": [("--seed", "5"), ("--keep-private", "none"), ("--metric", "query-error"), ("--choose", "1"),
                  ("--memory", "1GB"), ("--into", "t"), ("--overwrite",), ("--engine", "duckdb")],
    "init": [("--preset", "open-data"), ("--delimiter", ";"), ("--encoding", "latin-1"), ("--no-header",),
             ("--untried",)],
    "advise": [("--recipient", "regulator"), ("--knows", "people"), ("--needs", "guarantee")],
    "verify": [("--recount-only",), ("-p", "policy.yaml")],
    "attack": [("--adversary", "insider"), ("--facts", "2"), ("--max-belief", "1/4"), ("--attack", "linkage"),
               ("--knowing", "not person(age=20).disease = flu"), ("--control", "table.csv"), ("release",)],
    "audit": [("--require", "k-anonymity k=2"), ("--original", "table.csv"), ("--html", "audit.html"),
              ("-p", "policy.yaml"),
              ("--unit", "name"), ("--population", "table.csv"), ("--missing", "flu"), ("--group", "age")],
    "check": [("-k", "3"), ("--preset", "gdpr-wp216"), ("--unit", "name"), ("-p", "policy.yaml"),
              ("--allow", "name")],
    "evidence": [("--title", "a study"), ("--date", "2026-05-31"), ("--approved-by", "us"), ("--overwrite",)],
    "reveal": [("--column", "name"), ("--json",)],
    "compare": [("-o", "comparison"), ("--risk", "linkage"), ("--no-cache",), ("-p", "policy.yaml")],
}  # fmt: skip
USUAL = {
    "anonymize": ["table.csv", "-p", "policy.yaml", "-o", "out"],
    "init": ["table.csv", "-o", "new.yaml"],
    "advise": ["table.csv", "-o", "new.yaml"],
    "verify": ["release"],
    "attack": ["release"],
    "audit": ["table.csv", "--qi", "age,zip", "--sensitive", "disease"],
    "check": ["table.csv", "--qi", "age,zip"],
    "evidence": ["release"],
    "reveal": ["release", "A" * 16, "--source", "table.csv", "--reason", "why"],
    "compare": ["table.csv", "-p", "policy.yaml", "--grid", "k=2,3", "--metric", "none"],
    "contract": ["tests.fuzz.mangle"],
    **{name: [] for name in ("models", "methods", "attacks", "metrics", "schema", "glossary")},
}
ELSEWHERE = {"ui", "demo"}  # serves until it is stopped; takes a table of its own


def write_table(path: Path) -> Path:
    """Patients with a day of admission and of discharge."""
    rows = [
        [*row, f"2024-0{1 + i % 9}-1{i % 10}", f"2024-0{1 + i % 9}-2{i % 9}"]
        for i, row in enumerate(patients(ROWS))
    ]
    return write_csv(path, rows, [*HEADER, *DATES])


def policy(**more: Any) -> dict[str, Any]:
    """Pseudonyms of people, and moved dates beside recoded columns."""
    passing = {"role": "insensitive", "near_unique": "allow"}
    columns: dict[str, Any] = {
        "name": {"role": "identifier", "publish": "pseudonym"},
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
        "disease": "sensitive",
    }
    return {
        "columns": columns | dict.fromkeys(DATES, passing),
        "shift_dates": {"columns": list(DATES), "within": 30, "person": "name"},
        "require": [{"model": "k-anonymity", "k": 2}],
        "method": {"name": "optimal-lattice"},
        **more,
    }


def odd_json(rng: random.Random, data: bytes) -> bytes:
    """JSON with some of its values replaced or taken away."""
    try:
        whole = json.loads(data)
    except ValueError:
        return spoil(rng, data, 2)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = whole
        while isinstance(place, (dict, list)) and place:
            key: Any = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
            if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.2:
                if rng.random() < 0.2:
                    del place[key]
                else:
                    place[key] = rng.choice(ODD)
                break
            place = place[key]
    return json.dumps(whole).encode()


class Custody(Target):
    """Evidence, reveals, verification, attacks and choices on a release of which some file was changed."""

    name = "custody"
    cpu_s = 30.0

    def begin(self) -> None:
        self.table = write_table(self.folder.parent / "table.csv")
        self.release = self.folder.parent / "release"
        mw.anonymize(self.table, policy(), self.release)
        [token, *_] = (line.split(",")[0] for line in self.published().read_text().splitlines()[1:])
        self.token = token
        reveal_people(self.release, self.table, [token], "the first")
        reveal_people(self.release, self.table, [token], "the second")
        write_evidence_page(self.release, {"title": "a study"})
        self.job = Job(
            self.table, mw.Policy.load(policy(method={"name": "optimal-lattice", "suppression": "0"}))
        )
        alternatives_to(self.job)
        [self.kept] = (state_folder() / "alternatives").iterdir()
        self.told = self.kept.read_bytes()

    def published(self) -> Path:
        return self.release / "public" / "data.csv"

    def make(self, rng: random.Random) -> tuple[int, int]:
        return rng.randrange(len(WAYS)), rng.randrange(2**32)

    def feed(self, given: tuple[int, int]) -> None:
        way, seed = given
        rng = random.Random(seed)  # noqa: S311
        folder = self.folder / "release"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.release, folder)
        self.damage(rng, folder)
        try:
            WAYS[way](self, folder, rng)
        except MaskwrightError as refused:
            assert not NAME.search(f"{refused} {refused.details}"), "a name was told"
            raise

    def damage(self, rng: random.Random, folder: Path) -> None:
        """One file or two; the later ones, which no manifest lists, and manifests, which nothing lists, more often."""
        every = sorted(p for p in folder.rglob("*") if p.is_file())
        later = [
            p
            for p in every
            if p.name in ("evidence.json", "reveals.jsonl", "pseudonyms.json", "manifest.json")
        ]
        for path in (
            rng.choice(later if rng.random() < 0.6 else every) for _ in range(rng.choice((1, 1, 2)))
        ):
            data = path.read_bytes()
            whole = path.suffix == ".json" and rng.random() < 0.7
            path.write_bytes(odd_json(rng, data) if whole else spoil(rng, data, 2))

    def verify(self, folder: Path, rng: random.Random) -> None:
        found = mw.verify(folder, recount_only=rng.random() < 0.3)
        assert not NAME.search(str(found.as_dict())), "a name was told"

    def evidence(self, folder: Path, rng: random.Random) -> None:
        stated = {
            rng.choice(list(STATED)): rng.choice([*TEXTS, "2026-05-31", "\ud800"])
            for _ in range(rng.randrange(4))
        }
        write_evidence_page(folder, stated, overwrite=rng.random() < 0.9)
        assert not [p for p in mw.verify(folder).problems if "evidence" in p], "evidence that does not verify"

    def reveal(self, folder: Path, rng: random.Random) -> None:
        odd = rng.choice([*TEXTS, "A" * 16, "\udcff"])
        tokens = [self.token, odd] if rng.random() < 0.3 else [self.token]
        found = reveal_people(folder, self.table, tokens, rng.choice(["why", *TEXTS, "\udcff"]))
        assert found.values[self.token] == self.first(), "somebody else was named"

    def first(self) -> tuple[str, ...]:
        return reveal_people(self.release, self.table, [self.token], "to compare").values[self.token]

    def loaded(self, folder: Path, rng: random.Random) -> None:
        release = mw.load(folder)
        str(release), release.as_dict(), mw.attack(release)

    def attacked(self, folder: Path, rng: random.Random) -> None:
        mw.attack([folder, self.release] if rng.random() < 0.5 else folder)

    def chosen(self, folder: Path, rng: random.Random) -> None:
        self.kept.parent.mkdir(exist_ok=True)
        self.kept.write_bytes((odd_json if rng.random() < 0.7 else spoil)(rng, self.told))
        found = chosen_alternative(self.job, rng.choice((1, 2, -1, 0, 10**9)))
        mw.anonymize(self.table, found)

    def evidence_as_json(self, folder: Path, rng: random.Random) -> None:
        """As `evidence --json` prints it: nothing in it that JSON or a terminal cannot hold."""
        found = write_evidence_page(folder, overwrite=True)
        json.dumps(asdict(found)["content"] | {"answers": dict(found.answers)}, ensure_ascii=False).encode()


WAYS: list[Callable[[Custody, Path, random.Random], None]] = [
    Custody.verify, Custody.verify, Custody.evidence, Custody.evidence_as_json, Custody.reveal, Custody.loaded,
    Custody.attacked, Custody.chosen,
]  # fmt: skip


class Commands(Target):
    """Every command, with words that belong to it, to others, or to none: known exit codes, and short lines."""

    name = "command"
    cpu_s = 60.0

    def begin(self) -> None:
        self.prepared = self.folder.parent / "prepared"
        self.prepared.mkdir()
        table = write_table(self.prepared / "table.csv")
        (self.prepared / "policy.yaml").write_text(mw.Policy.load(policy()).to_yaml(), "utf-8")
        mw.anonymize(table, policy(), self.prepared / "release")

    def make(self, rng: random.Random) -> list[str]:
        command = rng.choice(list(USUAL))
        words = [command, *USUAL[command]]
        for _ in range(rng.choice((0, 1, 1, 2)) if command in PAIRS else 0):
            words += rng.choice(PAIRS[command])
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
            at, new = rng.randrange(1, len(words) + 1), rng.choice(rng.choice((WORDS, WORDS, TEXTS, NUMBERS)))
            way = rng.randrange(4)
            if at == len(words) or way == 0:
                words.insert(at, new)
            elif way == 1:
                del words[at]
            elif way == 2:
                words[at] = spoil(rng, os.fsencode(words[at]), 1).decode("utf-8", "surrogateescape")
            else:
                words[at] = new
        return words

    def feed(self, given: list[str]) -> None:
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(self.prepared, self.folder, dirs_exist_ok=True)
        os.chdir(self.folder)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([word.replace("\0", "") for word in given])  # no system hands over a NUL
        told = err.getvalue()
        assert code in (0, 1, 2), (code, told)
        assert "Traceback" not in told and "internal error" not in told, told
        assert not NAME.search(out.getvalue() + told) or given[0] == "reveal", "a name was told"
        for line in told.splitlines():
            assert len(line) < 2_500, "a line that nobody reads"
        if code:
            raise UsageError(told.splitlines()[0] if told else f"exit code {code}")


def every_command() -> set[str]:
    """The commands that there are."""
    [choices] = [a.choices for a in command_parser()._actions if a.dest == "command"]
    return set(choices or ())
