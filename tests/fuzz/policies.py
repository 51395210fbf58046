"""Bad policies: wrong values everywhere, YAML tricks, and spoilt text."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, get_args

import yaml

from maskwright.attacks import ATTACKS
from maskwright.domain.missing_values import Missing
from maskwright.domain.settings import Registered
from maskwright.errors import MaskwrightError
from maskwright.hierarchies import WAYS
from maskwright.methods import METHODS
from maskwright.models import MODELS
from maskwright.policy.binding import method_of, models_of
from maskwright.policy.policy import Column, Input, Output, Policy, Population, Recoding
from maskwright.policy.yaml_text import load_yaml
from tests.fuzz.harness import Target
from tests.fuzz.mangle import NUMBERS, TEXTS, spoil, value
from tests.patients import POLICY
from tests.support import ADULT

SEEDS = [POLICY.encode(), *(path.read_bytes() for path in sorted(ADULT.glob("*.yaml")))]
TREES = [load_yaml(seed, "seed") for seed in SEEDS]
WORDS = sorted(
    {name for cls in (Policy, Column, Input, Missing, Output, Population,
    Recoding) for name in cls.model_fields}
    | {name for way in WAYS.values() for name in way.model_fields}
    | {*MODELS, *METHODS, *ATTACKS, "model", "name", "generalise", "bucketize", "permute", "suppress",
    "right", "left"}
)  # fmt: skip

TRICKS = [
    b"a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n", b"<<: *x\n", b"base: &x {k: 1}\nother: {<<: *x}\n",
    b"!!python/object/apply:os.system ['id']\n", b"columns: !!python/name:os.system\n", b"k: !!int 5\n",
    b"!!binary R0lGOD\n",
    b"%YAML 9.9\n---\na: 1\n", b"%TAG ! tag:x,2000:\n---\n!foo\n", b"---\n---\n", b"a: 1\n---\nb: 2\n",
    b"? [a, b]\n: c\n",
    b"? {a: b}\n: c\n", b"a: |\n  text\n", b"a: >-\n  text\n", b"a: 1\na: 2\n", b"\ttab: 1\n",
    b"- - - - - x\n", b"[" * 60,
    b"{a: " * 60, b"a: [" * 2000, b'"\\ud800"\n', b'"\\ud83d\\ude00"\n', b'"\\x00": 1\n', b"'", b"a: 'b\n",
    b"null\n",
    b"~: ~\n", b"? \n", b"? ? ? a\n", b"&a", b"*a\n", b"a: *b\n", b"!", b"!<", b"%", b"@", b"`",
    b"\xef\xbb\xbfversion: 1\n",
    b"version: 1\ncolumns: {a: quasi-identifier}\nrequire: [{model: k-anonymity, k: 2}]\n" + b"#" * 1000,
    b"...\n", b"- \n" * 500,
    b"a: " + b"9" * 6000 + b"\n", b"a: 1:2:3\n", b"a: 0o7\n", b"a: 2024-01-31\n", b"=: =\n", b"a: <<\n",
    b"\xff\xfea\x00",
]  # fmt: skip


def registered(rng: random.Random, registry: dict[str, type[Registered]], key: str) -> dict[str, Any]:
    """A registered thing with some of its settings, most of them wrong."""
    name = rng.choice(list(registry))
    found: dict[str, Any] = {key: name}
    for field, info in registry[name].model_fields.items():
        if rng.random() < 0.6:
            words = [w for w in get_args(info.annotation) if isinstance(w, str)]
            found[field] = rng.choice(words) if words and rng.random() < 0.7 else scalar(rng)
    return found


def scalar(rng: random.Random) -> Any:
    chance = rng.random()
    if chance < 0.5:
        return rng.choice(NUMBERS)
    if chance < 0.7:
        return rng.choice(TEXTS)
    if chance < 0.85:
        return rng.choice(WORDS)
    if chance < 0.9:
        return None
    return [value(rng) for _ in range(rng.randrange(4))]


def hierarchy(rng: random.Random) -> Any:
    def numbers(most: int) -> list[Any]:
        return [rng.choice(NUMBERS) for _ in range(rng.randrange(most))]

    ways: list[Any] = [
        "suppress",
        {"intervals": [*sorted(rng.sample(range(1, 60), rng.randint(1, 3)))]},
        {"intervals": numbers(4)},
        {"intervals": [numbers(4), numbers(4)], "origin": rng.choice(NUMBERS)},
        {"mask": rng.choice(["right", "left", value(rng)])},
        {"dates": [rng.choice(["day", "week", "month", "quarter", "year", "decade",
        value(rng)]) for _ in range(3)]},
        {"groups": [[value(rng) for _ in range(3)] for _ in range(3)]},
        {"tree": {value(rng): {value(rng): [value(rng), value(rng)], value(rng): value(rng)}}},
        {"file": rng.choice(["zip.csv", "../x", "/dev/zero", "/proc/self/mem", "", "a\x00b", "x" * 5000, "."])},
        scalar(rng),
    ]  # fmt: skip
    chosen = rng.choice(ways)
    if isinstance(chosen, dict) and rng.random() < 0.3:
        way = WAYS.get(next(iter(chosen)))
        if way:
            chosen[rng.choice(list(way.model_fields))] = scalar(rng)
    return chosen


def column(rng: random.Random) -> Any:
    if rng.random() < 0.3:
        return rng.choice(["identifier", "quasi-identifier", "sensitive", "insensitive", value(rng)])
    role = rng.choice(["quasi-identifier"] * 4 + ["sensitive", "insensitive", "identifier"])
    found: dict[str, Any] = {"role": role}
    if role == "quasi-identifier":
        found["hierarchy"] = hierarchy(rng)
    if rng.random() < 0.3:
        found[
            rng.choice(
                ["weight", "levels", "order", "sensitive_sets", "multivalued", "near_unique", "hierarchy"]
            )
        ] = scalar(rng) if rng.random() < 0.5 else [scalar(rng), [scalar(rng)]]
    return found


def tree(rng: random.Random) -> Any:
    """A policy as mappings and lists, with something wrong in it more often than not."""
    found = dict(TREES[0] if rng.random() < 0.9 else rng.choice(TREES))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 4))):
        way = rng.randrange(8)
        if way == 0:
            columns = dict(found["columns"]) if isinstance(found.get("columns"), dict) else {}
            columns[rng.choice([*columns, value(rng)])] = column(rng)
            found["columns"] = columns
        elif way == 1:
            found["require"] = [registered(rng, MODELS, "model") for _ in range(rng.randint(1, 3))]
        elif way == 2:
            found["method"] = registered(rng, METHODS, "name")
        elif way == 3:
            name = rng.choice([("input", Input), ("output", Output), ("missing", Missing), ("recoding",
            Recoding),
                               ("population", Population)])  # fmt: skip
            found[name[0]] = {f: scalar(rng) for f in name[1].model_fields if rng.random() < 0.5}
        elif way == 4:
            found[rng.choice(list(Policy.model_fields))] = scalar(rng)
        elif way == 5:
            _anywhere(rng, found)
        elif way == 6:
            found[value(rng)] = scalar(rng)
        else:
            found.pop(rng.choice(list(found)), None)
    return found


def _anywhere(rng: random.Random, node: Any) -> None:
    """Replace something, at any depth."""
    while isinstance(node, (dict, list)) and node:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if rng.random() < 0.4 or not isinstance(node[key], (dict, list)):
            node[key] = scalar(rng) if rng.random() < 0.8 else {value(rng): scalar(rng)}
            return
        node[key] = node = type(node[key])(node[key])


def written(rng: random.Random, found: Any) -> bytes:
    """As YAML: in its own style, or as JSON, which is YAML too and faster to write."""
    if rng.random() < 0.7:
        return json.dumps(found, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    text: str = yaml.dump(
        found, default_flow_style=rng.choice([None, True, False]), allow_unicode=True, sort_keys=False
    )
    return text.encode("utf-8", "surrogatepass")


DOMAINS: list[list[str]] = [
    [],
    ["a", "b"],
    [str(i) for i in range(20, 60)],
    ["-5", "0", "3.5", "1e300", "-1e-300", "00", "+7"],
    ["nan", "inf", "1/2", "1e400", "9" * 400],
    ["2024-01-31", "2023-12-31", "0001-01-01", "9999-12-31", "2024-02-30"],
    ["2024-01-31 12:00:00", "1969-12-31 23:59:59.999999"],
    [*TEXTS[12:18], "x" * 3000],
    ["*", "?", "level0", "13001", "1300*"],
]


class Policies(Target):
    """Policy files: read, checked against the registries, and their hierarchies built on odd values."""

    name = "policy"

    def make(self, rng: random.Random) -> tuple[bytes, list[str]]:
        chance = rng.random()
        if chance < 0.6:
            data = written(rng, tree(rng))
        elif chance < 0.8:
            data = spoil(rng, rng.choice(SEEDS), chunks=TRICKS)
        elif chance < 0.9:
            data = spoil(rng, written(rng, tree(rng)))
        else:
            data = rng.choice(TRICKS) + (rng.choice(SEEDS) if rng.random() < 0.5 else b"")
        return data, rng.choice(DOMAINS)

    def feed(self, given: tuple[bytes, list[str]]) -> None:
        data, values = given
        path = self.folder / "policy.yaml"
        path.write_bytes(data)
        policy = Policy.load(path)
        again = Policy.of(load_yaml(policy.to_yaml().encode(), "again"), "again")
        assert again.to_dict() == policy.to_dict(), "what was written is not what was read"
        use(policy, values)


def use(policy: Policy, values: list[str]) -> None:
    """Build all that a policy names, on these values; the first refusal of several is raised at the end."""
    refusals = []
    for name, spec in policy.columns.items():
        try:
            if spec.hierarchy is not None:
                spec.hierarchy.build(name, values, policy.folder, policy.missing.tokens, spec.order)
        except MaskwrightError as refused:
            refusals.append(refused)
    models_of(policy)
    method_of(policy)
    if refusals:
        raise refusals[0]


class Settings(Target):
    """Policies as Python values, as an API caller or a form would hand them in: wrong types everywhere."""

    name = "settings"
    ODD: ClassVar = [
        0, -1, 1, 2, 5, 10**30, -(10**4000), 2**63, 0.0, -0.0, 0.5, 1e308, float("nan"), float("inf"), True,
        False, None, (), [],
        {}, set(), b"x", "\ud800", Fraction(1, 3), Decimal("1e999999"), Decimal("nan"), Decimal("sNaN"),
        object, 1j, ...,
        [[[[]]]], {"a": {"b": {}}}, {1: 2}, {None: None}, range(5), Path("x"), datetime.date(2024, 1, 31),
    ]  # fmt: skip

    def make(self, rng: random.Random) -> tuple[Any, list[str]]:
        found = tree(rng)
        for _ in range(rng.randrange(3)):
            node: Any = found
            while isinstance(node, (dict, list)) and node:
                key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
                if rng.random() < 0.5 or not isinstance(node[key], (dict, list)):
                    node[key] = rng.choice(self.ODD)
                    break
                node[key] = node = type(node[key])(node[key])
        return found, rng.choice(DOMAINS)

    def feed(self, given: tuple[Any, list[str]]) -> None:
        policy = Policy.load(given[0])
        policy.to_dict()
        use(policy, given[1])


def hierarchy_seeds() -> Iterator[tuple[bytes, list[str]]]:
    folders = [ADULT / "hierarchies", Path(__file__).parents[1] / "data" / "fars" / "hierarchies"]
    for folder in folders:
        for path in sorted(folder.glob("*.csv")):
            data = path.read_bytes()[:1500].rsplit(b"\n", 1)[0]
            separator = ";" if data.count(b";") > data.count(b",") else ","
            yield data, [line.split(separator)[0] for line in data.decode().splitlines()[1:]]


LABELS = list(hierarchy_seeds())


class HierarchyFiles(Target):
    """Hierarchy files: cycles, gaps, levels that do not nest, ragged and spoilt lines."""

    name = "hierarchy"

    def make(self, rng: random.Random) -> tuple[bytes, list[str], dict[str, Any]]:
        chance = rng.random()
        if chance < 0.4:
            data, values = rng.choice(LABELS)
            data = spoil(rng, data)
        else:
            odd = rng.choice([0, 0.1, 0.5])
            values = [value(rng) if rng.random() < odd else str(i) for i in range(rng.randrange(1, 12))]
            rows = [[v, *(self._label(rng, values) for _ in range(rng.randint(1, 3)))] for v in values]
            if rng.random() < 0.4:
                rows.sort(key=lambda row: row[0])
                for row in rows:
                    row[1:] = [str(len(row[0]) % 3), "*"]
            if rng.random() < 0.2:
                rows[rng.randrange(len(rows))].append(value(rng))
            if rng.random() < 0.1:
                rows.append(list(rng.choice(rows)))
            separator = rng.choice([";", ",", "\t"])
            text = rng.choice(["\n", "\r\n", "\r"]).join(separator.join(row) for row in rows)
            data = text.encode(rng.choice(["utf-8", "utf-8-sig", "utf-16", "utf-8"]), "surrogatepass")
            data = spoil(rng, data, 2) if rng.random() < 0.3 else data
        options: dict[str, Any] = {}
        if rng.random() < 0.2:
            options["header"] = rng.choice([True, False])
        if rng.random() < 0.2:
            options["delimiter"] = rng.choice(
                [";", ",", "\t", " ", '"', "a", "\n", "\r", "\x00", "é", "\u2028"]
            )
        return data, values, options

    @staticmethod
    def _label(rng: random.Random, values: list[str]) -> str:
        return rng.choice(values) if rng.random() < 0.5 else rng.choice(["*", "a", "b", "", value(rng)])

    def feed(self, given: tuple[bytes, list[str], dict[str, Any]]) -> None:
        data, values, options = given
        (self.folder / "h.csv").write_bytes(data)
        built = WAYS["file"](file="h.csv", **options).build("a", values, self.folder, ("?", "NA"))
        for finer, coarser in pairwise(built.levels):
            above: dict[int, int] = {}
            for low, high in zip(finer.blocks.tolist(), coarser.blocks.tolist(), strict=True):
                assert above.setdefault(low, high) == high, "levels that do not nest were taken"
