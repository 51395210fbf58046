"""The product on one world: what becomes public, and what is promised. The only file here that touches the pipeline."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from maskwright.attacks._shared.timed import Timed
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.release import Release
from maskwright.errors import MaskwrightError
from maskwright.kernels.randomness import random_generator, secret_key
from maskwright.models.belief import BeliefAtMost
from maskwright.pipeline import feasibility
from maskwright.pipeline.folder_contents import data_dictionary, for_readers
from maskwright.pipeline.history import EarlierLooks
from maskwright.pipeline.job import Job
from maskwright.pipeline.publish import Run
from maskwright.pipeline.publish import publish_release as publish
from maskwright.pipeline.session import Prepared
from maskwright.policy.policy import Policy
from maskwright.runtime.events import Progress
from maskwright.worlds.sampling.choices import Choices
from tests.promise.draws import Draws, chance
from tests.promise.small_engine import Row, SmallEngine, SmallTable, Text, coarse_labels

Public = Hashable
GROUP = "group"


@dataclass(frozen=True)
class Bound:
    """A requirement on belief as it was judged: what must not be believed more than `max`, and is it guaranteed?"""

    column: str
    max: Fraction
    sets: tuple[tuple[str, ...], ...] | None
    facts: int
    guaranteed: bool
    within: Fraction | None = None


@dataclass(frozen=True)
class Outcome:
    """What one run of the product makes of one world.

    Attributes:
        public: everything that is published, without what is drawn independently of it (the order of rows, the numbers
            of groups, the order of values in a group); None: it was refused.
        bounds: what was judged about beliefs.
        there: for each row, is it published? None: it cannot be told from its quasi-identifiers.
        why: the refusal.
    """

    public: Public | None
    bounds: tuple[Bound, ...] = ()
    there: tuple[bool | None, ...] = ()
    why: str = ""

    @property
    def guaranteed(self) -> bool:
        return any(bound.guaranteed for bound in self.bounds)


class SmallRun(Run):
    """A run without a memory of others, whose random choices are given; what only feeds the report is left out."""

    draws: Choices | None = None
    made: Any = None
    whole = False

    def look(self, fingerprint: str) -> None:
        self.looked = EarlierLooks()

    def make(self, prepared: Prepared | None = None) -> Any:
        ready = prepared or self.prepare()
        if self.draws is not None:
            joint = ready.task.summary.cells
            if joint is not None:
                cells = np.repeat(np.arange(len(joint.rows)), joint.rows)
                self.draws.rows = joint.tuples[cells], cells
            ready = replace(ready, task=replace(ready.task, rng=self.draws))
        self.made = super().make(ready)
        return self.made

    def finish(self, made: Any, verdicts: Any, tables: Any, places: Any) -> Release:
        each = Timed.each if self.whole else _quickly(Timed.each)
        with mock.patch.object(Timed, "each", each):
            return super().finish(made, verdicts, tables, places)

    def useful(self, grouping: Any, weights: Any) -> dict[str, Any]:
        return {}

    def check_disk(self, rows: int = 0, summary: Any = None) -> None:
        pass

    def make_room(self, things: object, share: float = 0, more: int = 0) -> None:
        pass

    def close(self) -> None:
        pass


def _quickly(each: Any) -> Any:
    """Attacks on possible worlds decide about what is *measured*, which nobody examines here: a few will do."""

    def quickly(self: Timed, *rest: Any) -> Any:
        return each(self.model_copy(update={"draws": 10, "seconds": 0.05}), *rest)

    return quickly


SPILL = Path(tempfile.gettempdir()) / "no-such-folder-for-spilling"


def published(table: SmallTable, policy: Policy, draws: Choices, seed: int | None = None) -> Outcome:
    """Run the product on a table, with these random choices; with a seed there are none."""
    try:
        run, release = _run(table, policy, draws, seed)
    except MaskwrightError as refusal:
        return Outcome(None, why=f"{type(refusal).__name__}: {refusal}")
    tables = {name: (t.names, t.rows) for name, t in release.tables.items()}
    public = public_tables(policy, tables), words_of(release, run.made), promised(release)
    return Outcome(public, tuple(bounds_of(release)), rows_there(table, policy, run.made))


def _run(
    table: SmallTable,
    policy: Policy,
    draws: Choices,
    seed: int | None,
    attacks: tuple[str, ...] = (),
    whole: bool = False,
) -> tuple[SmallRun, Release]:
    chance = draws if seed is None else random_generator(secret_key(seed), "small")
    job = Job(table, policy, seed=seed, attacks=attacks, engine="duckdb")
    run = SmallRun(job, Progress(), SPILL, SmallEngine(chance))
    run.draws, run.whole = draws if seed is None else None, whole
    with mock.patch.object(feasibility, "_offer", _no_offer):
        return run, run.in_memory()


def _no_offer(*_: Any) -> str:
    """A refusal names the nearest setting that would suffice: words alone, which take longer than all the rest."""
    return "another setting would suffice"


def published_to(folder: Path, source: Path, policy: Policy, seed: int | None = None) -> Outcome:
    """The same by the usual way: from a file, with DuckDB, to a folder whose public files are read again."""
    try:
        release = publish(Job(source, policy, folder, seed=seed, keep_private="none", attacks=()))
    except MaskwrightError as refusal:
        return Outcome(None, why=f"{type(refusal).__name__}: {refusal}")
    tables = {}
    for name in release.tables:
        with (folder / "public" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        tables[name] = header, [tuple(cell or None for cell in row) for row in rows]
    dictionary = json.loads((folder / "public" / "data-dictionary.json").read_bytes())
    manifest = json.loads((folder / "public" / "manifest.json").read_bytes())
    sets = [[(s["name"], s["values"]) for s in table["sets"]] for table in manifest["tables"]]
    words = json.dumps([dictionary, sets], sort_keys=True)
    return Outcome((public_tables(policy, tables), words, promised(release)), tuple(bounds_of(release)))


def minimality_of(
    table: SmallTable, policy: Policy, public: Public, whole: bool = False
) -> tuple[str, float]:
    """How the attack on the method describes its own result, and the largest belief that it finds.

    `whole`: with all the worlds that it would look at.
    """
    [found] = release_of(table, policy, public, ("minimality",), whole).beliefs
    return found.kind, float(found.worst.upper)


def release_of(
    table: SmallTable, policy: Policy, public: Public, attacks: tuple[str, ...] = (), whole: bool = False
) -> Release:
    """A release of a table with this output, attacked."""
    for key in range(500):
        if published(table, policy, Draws(chance(key))).public == public:
            return _run(table, policy, Draws(chance(key)), None, attacks, whole)[1]
    raise AssertionError("this output is not one of this table")


def bounds_of(release: Release) -> Iterable[Bound]:
    """The requirements on belief, each with its label."""
    for verdict in release.verdicts:
        if verdict.model == BeliefAtMost.name:
            model = BeliefAtMost(**{**verdict.parameters, "attribute": verdict.attribute})
            if model.adversary in ("neighbour", "journalist"):
                continue  # they believe what a class shows, and nobody claims more
            facts = (3 if model.facts is None else model.facts) if model.adversary == "insider" else 0
            yield Bound(
                str(verdict.attribute),
                model.max,
                model.sets,
                int(facts),
                verdict.status == "guaranteed",
                model.within,
            )


def public_tables(policy: Policy, tables: Mapping[str, tuple[Sequence[str], Sequence[Row]]]) -> Public:
    """The tables as far as they say anything: rows in no order, groups without their numbers."""
    if policy.recoding.name == "generalise":
        return tuple((name, tuple(names), _sorted(rows)) for name, (names, rows) in tables.items())
    parts: dict[str, dict[str, list[tuple[str, Any]]]] = {}
    blocks = policy.recoding.blocks(policy.sensitive) or []
    for name, (names, rows) in tables.items():
        part = name.removesuffix("quasi-identifiers").removesuffix("sensitive").removesuffix("-")
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(str(row[names.index(GROUP)]), []).append(row)
        others = [n for n in names if n != GROUP and n not in policy.sensitive]
        here = [tuple(n for n in block if n in names) for block in blocks]
        for group, mine in groups.items():
            shown = [(block, _sorted(_picked(names, block, mine))) for block in here if block]
            if others:
                shown.append((tuple(others), _sorted(_picked(names, others, mine))))
            parts.setdefault(part, {}).setdefault(group, []).extend((repr(n), rows) for n, rows in shown)
    return tuple(
        (name, tuple(sorted(map(repr, map(sorted, groups.values()))))) for name, groups in parts.items()
    )


def _picked(names: Sequence[str], wanted: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    at = [list(names).index(n) for n in wanted]
    return [tuple(row[i] for i in at) for row in rows]


def _sorted(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=repr))


def words_of(release: Release, made: Any) -> str:
    """The other public files, as far as they depend on data."""
    parts, _ = for_readers(made.parts)
    sets = [[(s.name, s.values) for s in layout.sets] for p in parts for layout in p.layouts]
    return json.dumps([data_dictionary(release.policy, parts), sets], sort_keys=True, default=str)


def promised(release: Release) -> str:
    """The requirements as the public manifest lists them."""
    return repr(
        sorted((v.model, repr(v.parameters), v.attribute or "", v.status or "") for v in release.verdicts)
    )


def _codes(hierarchy: Hierarchy) -> dict[Text, int]:
    """The code of each value of the table."""
    code = {None: 0} | {v: i + 1 for i, v in enumerate(hierarchy.values)}
    return {value: code[shown] for value, shown in coarse_labels(hierarchy).items()}


def rows_there(table: SmallTable, policy: Policy, made: Any) -> tuple[bool | None, ...]:
    """Is each row published (in every part)? None where only some rows with the same quasi-identifiers are."""
    found: list[set[bool]] = [set() for _ in table.rows]
    for part in made.parts:
        summary, allocation = part.grouping.summary, part.grouping.allocation
        codes = [_codes(h) for h in summary.attributes]
        fate: dict[tuple[int, ...], set[bool]] = {}
        for t, group in zip(allocation.tuples.tolist(), allocation.groups.tolist(), strict=True):
            fate.setdefault(tuple(summary.codes[:, t].tolist()), set()).add(group >= 0)
        missing = policy.missing.rows == "drop"
        for i, quasi in enumerate(table.picked([h.attribute for h in summary.attributes])):
            gone = missing and (None in quasi or None in table.picked(policy.sensitive)[i])
            key = tuple(c[v] for c, v in zip(codes, quasi, strict=True))
            found[i] |= {False} if gone else fate.get(key, {False})
    return tuple(next(iter(f)) if len(f) == 1 else None for f in found)
