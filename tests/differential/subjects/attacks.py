"""Attacks that read the classes of a release, against counting by hand and against every world they leave open."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

import maskwright as mw
from maskwright.attacks import ATTACKS
from maskwright.domain.adversary import Adversary, Target
from maskwright.domain.beliefs import Beliefs
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.settings import build_registered
from maskwright.methods import METHODS
from tests.attacks.test_absence import by_listing
from tests.attacks.test_downcoding import by_listing as downcoded
from tests.attacks.test_linked_visits import counted
from tests.differential.subjects import Subject
from tests.differential.subjects.lattices import task_of
from tests.differential.subjects.models import model_of, population
from tests.oracles.facts import with_facts
from tests.oracles.lattices import Problem
from tests.oracles.metrics import Shown
from tests.oracles.models import Asked
from tests.oracles.tables import Node, Small, Value, small

NEIGHBOUR = Adversary()


def published(
    table: Small,
    node: Node,
    k: int = 1,
    star: bool = False,
    asked: list[Asked] | None = None,
    people: Any = (),
) -> tuple[Target, Shown] | None:
    """A release at one node, small classes dropped, as an attack sees it, and as plain Python does."""
    levels = {key.name: [n] for key, n in zip(table.keys, node, strict=True)}
    wanted = [Asked("k-anonymity", {"k": k})]
    made = Problem(table, wanted, suppression=Fraction(1), star=star, levels=levels, people=tuple(people))
    truth = made.evaluate(node)
    if truth is None:
        return None
    how = build_registered(METHODS, "method", "optimal-lattice", made.options(), "here")
    task = task_of(made)
    models = [model_of(a) for a in [*wanted, *(asked or [])]]
    target = Target(how.group(task), models, how, task.context, task.census)
    return target, Shown(table, node, truth.kept, truth.gone, star, False)


def some_release(
    rng: Random, asked: bool = False, **more: Any
) -> tuple[Target, Shown, list[list[str]] | None] | None:
    """At a random node; `asked`: perhaps with a model that says which sets of values are secret."""
    table = small(rng, **more)
    sets = None
    wanted: list[Asked] = []
    if asked and table.domains["s"] and rng.random() < 0.4:
        domain = table.domains["s"]
        sets = [sorted(rng.sample(domain, rng.randint(1, len(domain)))) for _ in range(rng.randint(1, 2))]
        wanted = [Asked("simple-l-diversity", {"l": str(rng.randint(2, 3)), "sets": sets, "attribute": "s"})]
    node = table.top if rng.random() < 0.3 else rng.choice(table.nodes)
    found = published(table, node, rng.randint(1, 2), rng.random() < 0.3, wanted)
    return None if found is None else (*found, sets)


def run(name: str, target: Target, who: Adversary = NEIGHBOUR, **options: Any) -> Beliefs:
    return build_registered(ATTACKS, "attack", name, options, "here").run(target, who)


def secret_sets(shown: Shown, name: str, sets: list[list[str]] | None) -> list[list[str]]:
    return sets if sets is not None and name == "s" else [[v] for v in shown.table.domains[name]]


def linkage(rng: Random) -> str:
    table = small(rng)
    people = population(rng, table)
    node, k = rng.choice(table.nodes), rng.randint(1, 2)
    found = published(table, node, k, rng.random() < 0.3, people=people)
    if found is None:
        return "refused"
    target, shown = found
    who = Adversary("journalist") if rng.random() < 0.4 else NEIGHBOUR
    beliefs = run("linkage", target, who)
    raw, sizes = Counter(table.rows), [len(rows) for rows in shown.groups]
    before, after = Fraction(1, min(raw.values())), Fraction(1, min(sizes))
    average = Fraction(len(sizes), sum(sizes))
    assert Fraction(beliefs.measures["after"]["average"]) == average
    assert beliefs.measures["before"]["unique"] == sum(n == 1 for n in raw.values())
    matching = [
        len(people) if shown.is_starred(rows)
        else sum(table.label(node, p) == table.label(node, table.rows[rows[0]]) for p in people)
        for rows in shown.groups
    ]  # fmt: skip
    journalist = beliefs.measures["journalist"]["after"]
    assert journalist["highest"] == Fraction(1, min(matching))
    linked = sum(
        (Fraction(len(rows), m) for rows, m in zip(shown.groups, matching, strict=True)), Fraction(0)
    )
    assert journalist["marketer"] == linked / sum(sizes)
    if who.name == "journalist":
        everybody = Counter(people)
        before, after = Fraction(1, min(everybody[r] for r in raw)), Fraction(1, min(matching))
    assert (beliefs.worst.before, beliefs.worst.after) == (before, after)
    limit = k if k > 1 else 2
    assert beliefs.measures["vulnerable_people"] == sum(n for n in sizes if n < limit)
    assert beliefs.measures["dropped_people"] == (0 if shown.star else len(shown.gone))
    assert beliefs.kind == "exact"
    return who.name


def learned_by_hand(shown: Shown, rounds: int) -> list[dict[Value, float]]:
    """What whoever learns believes of each published row of `s`, by listing the orders of every group's values."""
    column = shown.table.secrets["s"]
    belief = {
        i: {v: column_share(column, group, v) for v in {column[j] for j in group}}
        for group in shown.groups
        for i in group
    }
    for _ in range(rounds):
        again: dict[int, dict[Value, float]] = {i: dict.fromkeys(known, 0.0) for i, known in belief.items()}
        for group in shown.groups:
            for order in set(itertools.permutations(column[i] for i in group)):
                dealt = list(zip(group, order, strict=True))
                total = math.prod(naive_bayes(shown, belief, i, v) for i, v in dealt)
                for i, v in dealt:
                    again[i][v] += total
        belief = {i: {v: x / sum(known.values()) for v, x in known.items()} for i, known in again.items()}
    return list(belief.values())


def naive_bayes(shown: Shown, belief: dict[int, dict[Value, float]], row: int, value: Value) -> float:
    """P(value) · Π P(quasi-identifier | value), with 1 added to every count."""
    held = sum(known.get(value, 0.0) for known in belief.values())
    found = held / len(belief)
    for a, mine in enumerate(shown.table.rows[row]):
        others = {i: shown.table.rows[i][a] for i in belief}
        same = sum(belief[i].get(value, 0.0) for i, other in others.items() if other == mine)
        found *= (same + 1) / (held + len(set(others.values())))
    return found


def column_share(column: Any, group: Any, value: Value) -> float:
    """The share of a value in a group."""
    return sum(column[j] == value for j in group) / len(group)


def learned(rng: Random) -> str:
    made = some_release(rng)
    if made is None:
        return "refused"
    target, shown, _ = made
    if max(map(len, shown.groups)) > 6 or len(shown.table.secrets) > 1:
        return "not listed"
    rounds = rng.randint(1, 2)
    beliefs = run("learned", target, Adversary("learns", learns=True), rounds=rounds)
    column, rows = shown.table.secrets["s"], [i for group in shown.groups for i in group]
    truth = learned_by_hand(shown, rounds)
    values = set(shown.table.domains["s"])
    worst = max((x for b in truth for v, x in b.items() if v in values), default=0.0)
    assert math.isclose(float(beliefs.worst.after), worst, abs_tol=1e-9)
    mean = beliefs.measures["attributes"]["s"]["mean_belief_in_the_truth"]
    expected = sum(b[column[i]] for i, b in zip(rows, truth, strict=True)) / len(rows)
    assert math.isclose(mean["learned"], expected, abs_tol=1e-9)
    even = sum(column_share(column, group, column[i]) for group in shown.groups for i in group) / len(rows)
    assert math.isclose(mean["random worlds"], even, abs_tol=1e-9)
    return "compared"


def shares(shown: Shown, name: str, sets: list[list[str]]) -> list[tuple[Fraction, Fraction, int]]:
    """(share in the class, share in the table, class) of every secret that a class holds."""
    column, found = shown.table.secrets[name], []
    for g, rows in enumerate(shown.groups):
        for members in sets:
            here, whole = sum(column[i] in members for i in rows), sum(v in members for v in column)
            if here:
                found.append((Fraction(here, len(rows)), Fraction(whole, shown.table.n), g))
    return found


def homogeneity(rng: Random) -> str:
    made = some_release(rng, asked=True)
    if made is None:
        return "refused"
    target, shown, sets = made
    beliefs = run("homogeneity", target)
    every = {name: shares(shown, name, secret_sets(shown, name, sets)) for name in shown.table.secrets}
    pairs = [p for found in every.values() for p in found]
    worst = max((a for a, _, _ in pairs), default=Fraction(0))
    assert beliefs.worst.after == worst
    if worst:
        assert beliefs.worst.before in {b for a, b, _ in pairs if a == worst}
    for name, found in every.items():
        limit = beliefs.measures["attributes"][name]["threshold"]
        above = {g for a, _, g in found if a > limit}
        people = sum(len(shown.groups[g]) for g in above)
        assert beliefs.measures["attributes"][name]["vulnerable_people"] == people
    return "certain" if worst == 1 else "uncertain"


def skewness(rng: Random) -> str:
    made = some_release(rng, asked=True)
    if made is None:
        return "refused"
    target, shown, sets = made
    beliefs = run("skewness", target)
    for name in shown.table.secrets:
        found = shares(shown, name, secret_sets(shown, name, sets))
        measured = beliefs.measures["attributes"][name]
        assert measured["ratio"] == max((a / b for a, b, _ in found), default=0)
        assert measured["gain"]["gain"] == max((a - b for a, b, _ in found), default=0)
        doubled = {g for a, b, g in found if a > 2 * b}
        assert measured["vulnerable_people"] == sum(len(shown.groups[g]) for g in doubled)
    ratio = max(m["ratio"] for m in beliefs.measures["attributes"].values())
    if ratio:
        assert beliefs.worst.after / beliefs.worst.before == ratio
    return "doubled" if ratio > 2 else "less"


def similarity(rng: Random) -> str:
    numbers = rng.random() < 0.5
    made = some_release(rng, secrets=1, numbers=numbers)
    if made is None:
        return "refused"
    target, shown, _ = made
    column, domain = shown.table.secrets["s"], shown.table.domains["s"]
    ranges: list[set[str]] = []
    width = Fraction(rng.choice(["0", "1/10", "1/4"]))
    if numbers and len(domain) >= 3:
        values = sorted(map(Fraction, domain))
        far = (values[-1] - values[0]) * width
        ranges = [{v for v in domain if low <= Fraction(v) <= low + far} for low in values]
    elif domain:
        label = {v: rng.choice("xy") for v in domain}
        tree = Hierarchy.of("s", domain, [("kind", [label[v] for v in domain])])
        target = replace(target, context=replace(target.context, hierarchies={"s": tree}))
        blocks = [{v for v in domain if label[v] == x} for x in sorted(set(label.values()))]
        ranges = [b for b in blocks if 1 < len(b) < len(domain)]
    attack = build_registered(ATTACKS, "attack", "similarity", {"width": width}, "here")
    assert attack.applies(target) == bool(ranges)
    if not ranges:
        return "does not apply"
    beliefs = attack.run(target, NEIGHBOUR)
    found = [Fraction(sum(column[i] in r for i in rows), len(rows)) for rows in shown.groups for r in ranges]
    assert beliefs.worst.after == max(found)
    return "by range" if numbers else "by tree"


def background_knowledge(rng: Random) -> str:
    made = some_release(rng, secrets=1, most=6)
    if made is None:
        return "refused"
    target, shown, _ = made
    k = rng.choice([1, 1, 2])
    beliefs = run("background-knowledge", target, Adversary("insider", facts=k), most=2)
    buckets = [shown.table.values("s", rows) for rows in shown.groups]
    truth = [with_facts(buckets, h) for h in range(k + 1)]
    assert beliefs.measures["attributes"]["s"]["implications"][: k + 1] == truth
    assert (beliefs.worst.before, beliefs.worst.after) == (truth[0], truth[k])
    return "certain" if truth[k] == 1 else "uncertain"


def absence(rng: Random) -> str:
    """What is believed about people who were dropped because their class violated l-diversity."""
    table = small(rng, secrets=1, keys=1, most=8)
    if not table.domains["s"]:
        return "no values"
    flagged = sorted(rng.sample(table.domains["s"], rng.randint(1, min(2, len(table.domains["s"])))))
    k, ell = rng.randint(1, 2), Fraction(rng.randint(3, 6), 2)
    asked = [Asked("k-anonymity", {"k": k}),
             Asked("simple-l-diversity", {"l": str(ell), "values": flagged, "attribute": "s"})]  # fmt: skip
    node = rng.choice(table.nodes)
    made = Problem(
        table, asked, suppression=Fraction(1), by_size=False, levels={table.keys[0].name: [node[0]]}
    )
    truth = made.evaluate(node)
    if truth is None:
        return "refused"
    how, task = build_registered(METHODS, "method", "optimal-lattice", made.options(), "here"), task_of(made)
    target = Target(how.group(task), [model_of(a) for a in asked], how, task.context)
    attack = build_registered(ATTACKS, "attack", "absence", {}, "here")
    gone = [rows for rows in table.classes(node).values() if rows[0] in truth.gone and len(rows) >= k]
    assert attack.applies(target) == bool(gone)
    if not gone:
        return "nobody dropped for values"
    beliefs = attack.run(target, NEIGHBOUR)
    shown = [table.secrets["s"][i] for rows in truth.kept for i in rows]
    weights = [shown.count(v) for v in flagged]
    worst = Fraction(0)
    for size in {len(rows) for rows in gone}:
        cap = int(size / ell)
        mine = list(weights)
        if not any(w and cap < size for w in mine):  # what nobody has is taken to occur once
            mine = [max(1, w) for w in mine]
        found = by_listing(size, [*mine, len(shown) - sum(weights)], [cap] * len(flagged))
        assert found is not None
        worst = max(worst, *found[:-1])
    assert beliefs.worst.after == worst
    assert beliefs.measures["dropped_for_values"] == sum(map(len, gone))
    return "dropped"


def background_join(rng: Random) -> str:
    made = some_release(rng, secrets=2)
    if made is None:
        return "refused"
    target, shown, _ = made
    table = shown.table
    worst, certain = Fraction(0), 0
    for known, asked in (("s", "t"), ("t", "s")):
        sure = 0
        for rows in shown.groups:
            for value in set(table.values(known, rows)):
                match = [table.secrets[asked][i] for i in rows if table.secrets[known][i] == value]
                top = max((match.count(v) for v in match if v is not None), default=0)
                worst = max(worst, Fraction(top, len(match)))
                sure += len(match) if top == len(match) else 0
        certain = max(certain, sure)
    beliefs = run("background-join", target)
    assert beliefs.worst.after == worst
    assert beliefs.measures["certain_people"] == certain
    return "certain" if worst == 1 else "uncertain"


def intersection(rng: Random) -> str:
    """The same column under two groupings: every assignment that both tables allow."""
    table = small(rng, secrets=1, most=6, keys=2)
    nodes = [rng.choice(table.nodes), rng.choice(table.nodes)]
    if rng.random() < 0.7:  # each shows what the other hides
        nodes = [(0, table.top[1]), (table.top[0], 0)]
    pair = [published(table, node) for node in nodes]
    assert pair[0] is not None
    assert pair[1] is not None
    targets = [replace(p[0], name=f"table-{i}") for i, p in enumerate(pair) if p is not None]
    attack: Any = build_registered(ATTACKS, "attack", "intersection", {}, "here")
    beliefs = attack.over(targets, NEIGHBOUR)
    values = table.secrets["s"]
    groups = [p[1].groups for p in pair if p is not None]

    def seen(world: tuple[Value, ...]) -> list[list[Counter[Value]]]:
        return [[Counter(world[i] for i in rows) for rows in listed] for listed in groups]

    truth = seen(values)
    worlds = [w for w in itertools.product(sorted(set(values), key=repr), repeat=table.n) if seen(w) == truth]
    worst = max(
        (
            Fraction(sum(w[i] == v for w in worlds), len(worlds))
            for i in range(table.n)
            for v in table.domains["s"]
        ),
        default=Fraction(0),
    )
    assert beliefs.kind == "exact"
    assert beliefs.worst.after == worst, (beliefs.worst, worst)
    alone = max((a for p in pair if p is not None for a, _, _ in shares(p[1], "s", [[v] for v in table.domains["s"]])),
                default=Fraction(0))  # fmt: skip
    return "more together" if worst > alone else "no more"


def passing_columns(rng: Random) -> str:
    """Insensitive columns through the whole product: the share among rows that agree in class and columns."""
    n = rng.randint(4, 12)
    rows = [(rng.choice("ab"), rng.choice("xyz"), rng.choice("pqr")) for _ in range(n)]
    recoding = rng.choice(["generalise", "permute"])
    table = pa.table(dict(zip(("q", "ward", "s"), map(list, zip(*rows, strict=True)), strict=True)))
    policy = {
        "columns": {"q": "quasi-identifier", "ward": {"role": "insensitive", "near_unique": "allow"},
                    "s": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 1}, {"model": "belief", "max": 1}],
        "method": {"name": "optimal-lattice"}, "recoding": recoding,
    }  # fmt: skip
    release = mw.anonymize(table, policy)
    [found] = [b for b in release.beliefs if b.attack == "passing-columns"]
    if recoding == "permute":  # nothing is above a bound of 1
        assert found.worst.after == 0
        return "apart"
    sizes, held = Counter((q, w) for q, w, _ in rows), Counter(rows)
    worst = max(Fraction(held[row], sizes[row[:2]]) for row in rows)
    assert found.worst.after == worst
    return "certain" if worst == 1 else "uncertain"


def linked_visits(rng: Random) -> str:
    """Visits under a pseudonym through the whole product: every set of visits, listed in the published table."""
    who = [p for p in range(rng.randint(2, 5)) for _ in range(rng.randint(1, 3))]
    rows = [(f"p{p}", rng.choice("12"), rng.choice("AB"), rng.choice(["flu", "HIV", "asthma"])) for p in who]
    table = pa.table(
        dict(zip(("who", "age", "ward", "ill"), map(list, zip(*rows, strict=True)), strict=True))
    )
    events = rng.randint(1, 3)
    policy = {
        "unit": {"column": "who", "publish": "pseudonym", "events": events},
        "columns": {"who": "identifier", "age": "quasi-identifier", "ward": "quasi-identifier", "ill": "sensitive"},
        "require": [{"model": "k-anonymity", "k": 1}], "method": rng.choice(["optimal-lattice", "mondrian"]),
    }  # fmt: skip
    release = mw.anonymize(table, policy)
    fewest, _, share = counted(release.table.to_pandas(), events)
    [found] = [b for b in release.beliefs if b.attack == "linked-visits"]
    [linkage] = [b for b in release.beliefs if b.attack == "linkage"]
    known = [
        level["smallest_match"] for level in linkage.measures["known_visits"] if level["visits"] != "every"
    ]
    assert (found.worst.after, min(known)) == (share, fewest)
    return "certain" if share == 1 else "uncertain"


def linked_releases(rng: Random) -> str:
    """Two releases with stable pseudonyms through the whole product: joined and counted in plain Python."""
    n = rng.randint(4, 9)
    rows = [(f"p{i}", str(rng.randint(0, 3)), rng.choice(["flu", "HIV"])) for i in range(n)]
    tables = []
    for part, cut in ((rows[: rng.randint(2, n)], 2), (rows[rng.randint(0, 1) :], 3)):
        groups = [[str(x) for x in range(4) if x < cut], [str(x) for x in range(4) if x >= cut]]
        policy = {
            "columns": {
                "who": {"role": "identifier", "publish": "pseudonym", "stable": True},
                "age": {"role": "quasi-identifier", "hierarchy": {"groups": groups}, "levels": [1]},
                "ill": "sensitive",
            },
            "require": [{"model": "k-anonymity", "k": 1}],
        }  # fmt: skip
        source = dict(zip(("who", "age", "ill"), map(list, zip(*part, strict=True)), strict=True))
        tables.append(mw.anonymize(pa.table(source), policy))
    shown = [{r["who"]: (r["age"], r["ill"]) for r in t.table.to_pylist()} for t in tables]
    both = shown[0].keys() & shown[1].keys()
    found = [b for b in mw.attack(tables) if b.attack == "linked-releases"]  # type: ignore[union-attr]
    if not both:
        assert not found
        return "apart"
    alike = Counter((shown[0][t][0], shown[1][t][0]) for t in both)
    ill = Counter((shown[0][t][0], shown[1][t][0], value) for t in both for value in {s[t][1] for s in shown})
    worst = max(Fraction(many, alike[key[:2]]) for key, many in ill.items())
    assert (found[0].worst.after, found[0].measures["smallest_match"]) == (worst, min(alike.values()))
    assert found[0].measures["people_found"] == sum(many == 1 for many in alike.values())
    return "joined"


def downcoding(rng: Random) -> str:
    """Local recoding of one column with a tree: every class by listing the assignments that fit its label."""
    values = [f"{rng.choice('ab')}{rng.choice('123')}" for _ in range(rng.randint(3, 7))]
    letters = {v[0]: sorted({w for w in values if w[0] == v[0]}) for v in values}
    column = {"role": "quasi-identifier", "hierarchy": {"tree": letters}}
    policy = {
        "version": 1, "columns": {"q": column}, "require": [{"model": "k-anonymity", "k": 2}],
        "method": {"name": "local-recoding"},
    }  # fmt: skip
    release = mw.anonymize(pa.table({"q": values}), policy)
    kept = [c for c in Counter(release.table["q"].to_pylist()).items() if c[0] not in values]
    if release.grouping.labelling == "levels":
        return "one level"
    found, worst, determined = mw.attack(release, "downcoding"), (Fraction(0), Fraction(0)), 0
    merges = any(len(members) > 1 for members in letters.values()) and len(letters) > 1
    for label, rows in kept:
        covered = values if label == "*" else letters[label]
        parts = (
            [letters[x] for x in sorted(letters)]
            if label == "*" and merges
            else [[v] for v in sorted(set(covered))]
        )
        inside = [v for v in values if v in covered]
        shares = [Fraction(sum(v in part for v in inside), len(inside)) for part in parts]
        after = downcoded(shares, rows, lambda there: len(there) > 1)
        worst = max([worst, *((b, -a) for a, b in zip(shares, after, strict=True) if b > a)])
        determined += rows * (rows == len(parts) == 2)
    assert (found.worst.after, -found.worst.before) == worst
    assert found.measures["generalised_cells"] == sum(rows for _, rows in kept)
    assert found.measures["determined_cells"] == determined
    return "determined" if determined else "wide" if kept else "exact"


def singling_out(rng: Random) -> str:
    """One column in decades: the classes that a reader finds nobody of the control in."""
    ages, outside = ([rng.randint(0, 59) for _ in range(n)] for n in (rng.randint(3, 9), rng.randint(1, 4)))
    decades = {"tree": {f"d{d}": [str(10 * d + i) for i in range(10)] for d in range(6)}}
    policy = {
        "version": 1, "columns": {"age": {"role": "quasi-identifier", "hierarchy": decades, "levels": [1, 2]}},
        "require": [{"model": "k-anonymity", "k": 2}], "method": {"name": "optimal-lattice", "suppression": "60%"},
    }  # fmt: skip
    try:
        release = mw.anonymize(pa.table({"age": [str(a) for a in ages]}), policy)
    except mw.errors.PolicyNotMet:
        return "refused"
    found = mw.attack(release, mw.attacks.SinglingOut(control=[{"age": str(a)} for a in outside]))
    if "*" in release.table["age"].to_pylist():
        assert (found.measures["empty_boxes"], found.worst.after) == (0, 0)
        return "everybody"
    sizes = Counter(a // 10 for a in ages)
    empty = [n for d, n in sizes.items() if n >= 2 and d not in {a // 10 for a in outside}]
    assert found.measures["empty_boxes"] == len(empty)
    assert found.worst.after == max((Fraction(n - 1, n) ** (n - 1) for n in empty), default=0)
    return "rare" if empty else "common"


def known_items(rng: Random) -> str:
    """Every set of up to two values that somebody may be known by, inside the classes."""
    sets = [{v for v in "abc" if rng.random() < 0.5} | {rng.choice("abc")} for _ in range(rng.randint(2, 8))]
    towns = [rng.choice("xy") for _ in sets]
    policy = {
        "version": 1, "require": [{"model": "k-anonymity", "k": 1}],
        "columns": {
            "town": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [0]},
            "s": {"role": "sensitive", "multivalued": ";"},
        },
    }  # fmt: skip
    release = mw.anonymize(pa.table({"town": towns, "s": [";".join(sorted(s)) for s in sets]}), policy)
    fewest = len(sets)
    for town, values in zip(towns, sets, strict=True):
        for known in [set(c) for n in (1, 2) for c in itertools.combinations(sorted(values), n)]:
            fewest = min(fewest, sum(t == town and known <= s for t, s in zip(towns, sets, strict=True)))
    [found] = [b for b in release.beliefs if b.attack == "known-items"]
    assert found.worst.after == Fraction(1, fewest)
    return "certain" if fewest == 1 else "uncertain"


def perturbed_columns(rng: Random) -> str:
    """Everybody of a class who is published with the same multiple, or beyond the limit, may be meant."""
    amounts = [rng.randint(0, 30) for _ in range(rng.randint(2, 10))]
    towns, width = [rng.choice("xy") for _ in amounts], rng.choice([4, 10])
    publish: dict[str, Any] = {"round": width} | ({"top-code": 18} if rng.random() < 0.5 else {})
    policy = {
        "version": 1, "unit": "none", "require": [{"model": "k-anonymity", "k": 1}],
        "columns": {
            "town": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [0]},
            "amount": {"role": "sensitive", "publish": publish},
        },
    }  # fmt: skip
    release = mw.anonymize(pa.table({"town": towns, "amount": [str(a) for a in amounts]}), policy)
    shown = [width * round(Fraction(min(a, 18) if "top-code" in publish else a, width)) for a in amounts]
    many = [
        sum((town, image) == other for other in zip(towns, shown, strict=True))
        for town, image in zip(towns, shown, strict=True)
    ]
    [found] = [b for b in release.beliefs if b.attack == "perturbed-columns"]
    assert found.kind == "exact"
    assert abs(float(found.worst.after) - 1 / min(many)) < 2e-6
    [figures] = found.measures["perturbed"]["linkage"]
    assert math.isclose(figures["in_class"]["truth"], sum(1 / n for n in many) / len(many), rel_tol=1e-9)
    return "certain" if min(many) == 1 else "uncertain"


def perturbed_numbers(rng: Random) -> str:
    """Of each published multiple everybody's number that is rounded to it may be meant; one guess is near to some."""
    amounts = [rng.choice([90, 97, 104, 109, 112, 140, 300]) for _ in range(rng.randint(2, 10))]
    towns, width = [rng.choice("xy") for _ in amounts], rng.choice([10, 50])
    asked = {"model": "belief", "max": "1", "attribute": "amount", "within": "1/10"}
    policy = {
        "version": 1, "unit": "none", "require": [{"model": "k-anonymity", "k": 1}, asked],
        "columns": {
            "town": {"role": "quasi-identifier", "hierarchy": "suppress", "levels": [0]},
            "amount": {"role": "sensitive", "publish": {"round": width}},
        },
    }  # fmt: skip
    release = mw.anonymize(pa.table({"town": towns, "amount": [str(a) for a in amounts]}), policy)
    image = {a: width * round(Fraction(a, width)) for a in amounts}
    worst = Fraction(0)
    for town in set(towns):
        here = [image[a] for t, a in zip(towns, amounts, strict=True) if t == town]
        for guess in {a * (1 + Fraction(sign, 10)) for a in amounts for sign in (-1, 1)}:
            believed = Fraction(0)
            for shown in here:
                alike = [a for a in amounts if image[a] == shown]
                believed += Fraction(sum(10 * abs(guess - a) <= a for a in alike), len(alike) * len(here))
            worst = max(worst, believed)
    [found] = [b for b in release.beliefs if b.attack == "perturbed-numbers"]
    assert found.kind == "exact"
    assert abs(float(found.worst.after) - worst) < 2e-6
    return "certain" if worst == 1 else "uncertain"


def _subject(name: str, case: Any, *expect: str) -> Subject:
    return Subject("attack", name, case, expect)


SUBJECTS = [
    _subject("linkage", linkage, "journalist", "neighbour", "refused"),
    _subject("homogeneity", homogeneity, "certain", "uncertain"),
    _subject("learned", learned, "compared"),
    _subject("skewness", skewness, "doubled", "less"),
    _subject("similarity", similarity, "by range", "by tree"),
    _subject("background-knowledge", background_knowledge, "certain", "uncertain"),
    _subject("absence", absence, "dropped"),
    _subject("background-join", background_join, "certain", "uncertain"),
    _subject("intersection", intersection, "more together", "no more"),
    replace(_subject("downcoding", downcoding, "determined", "wide"), weight=0.2),
    replace(_subject("known-items", known_items, "certain", "uncertain"), weight=0.2),
    replace(_subject("perturbed-columns", perturbed_columns, "certain", "uncertain"), weight=0.2),
    replace(_subject("perturbed-numbers", perturbed_numbers, "certain", "uncertain"), weight=0.2),
    replace(_subject("singling-out", singling_out, "rare", "common"), weight=0.2),
    replace(_subject("linked-releases", linked_releases, "joined"), weight=0.2),
    replace(_subject("linked-visits", linked_visits, "certain", "uncertain"), weight=0.2),
    replace(_subject("passing-columns", passing_columns, "apart", "certain", "uncertain"), weight=0.2),
]
