"""2^31 and more rows in one cell: counts, products and sums against Python's integers.

No row is ever made. A small table is taken many times over: what depends on shares must stay exactly what it was, and
what counts people must be multiplied exactly. Models are compared with their definitions in fractions besides.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwright.attacks import ATTACKS
from maskwright.attacks.passing_columns import narrowed_belief
from maskwright.domain.adversary import PassingBelief, Target
from maskwright.domain.beliefs import Belief
from maskwright.domain.classes import Classes, Originals, ValueCounts
from maskwright.domain.exact import exact_dot
from maskwright.domain.grouping import Grouping
from maskwright.domain.guards import Guards
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.method import Method
from maskwright.domain.model import Context
from maskwright.domain.sample import Sample
from maskwright.domain.summary import Joint, Summary
from maskwright.engines.sql.packed_keys import Packing, number
from maskwright.errors import MaskwrightError, PolicyError
from maskwright.kernels import compiled
from maskwright.kernels.node_check import LatticeColumn, NodeProblem
from maskwright.methods import METHODS
from maskwright.metrics import METRICS
from maskwright.models import MODELS
from maskwright.pipeline.attacking import ADVERSARIES
from maskwright.population.estimates import Estimator
from tests.leaks.by_counts import NUMBERS, PAPER, TINY, Table, around, distances, most_believed
from tests.methods.row_tables import build
from tests.models.build import DOMAIN, model, weighted
from tests.models.build import context_of as context_of_classes
from tests.support import context_of, task_of

# the first two: all forty people are the most that the compiled search takes, and a few more
FACTORS = [53_687_091, 53_687_092, 2**31 - 1, 2**31, 2**31 + 1, 2**32 + 1, 2**40]
AGES = Hierarchy.of(
    "q0", [str(a) for a in range(20, 28)],
    [("pairs", [f"p{i // 2}" for i in range(8)]), ("halves", [f"h{i // 4}" for i in range(8)])], ordered=True,
)  # fmt: skip
TOWNS = Hierarchy.of("q1", ["x", "y", "z", "w"], [("sides", ["l", "l", "r", "r"])])
DISEASES = Hierarchy.of("s", ["a", "b", "c"], [("organs", ["stomach", "stomach", "lung"])])


def small(two: bool = False) -> Summary:
    """Forty people; `two`: with a second sensitive column."""
    rng = np.random.default_rng(8)
    qi = list(
        zip(rng.integers(20, 28, 40).tolist(), rng.choice(["x", "y", "z", "w"], 40).tolist(), strict=True)
    )
    sensitive = {name: rng.choice(list("abc"), 40).tolist() for name in ("s", "h")[: 1 + two]}
    return build(qi, sensitive, [AGES, TOWNS]).summary


def times(summary: Summary, factor: int) -> Summary:
    """The same people, each of them many times."""
    sensitive = {n: replace(vc, counts=vc.counts * factor) for n, vc in summary.sensitive.items()}
    joint = summary.joint
    assert joint is not None
    return replace(
        summary, rows=summary.rows * factor, sizes=summary.sizes * factor, sensitive=sensitive,
        joint=Joint(joint.tuples, joint.values, joint.rows * factor),
    )  # fmt: skip


def grouped(summary: Summary, k: int, method: Method, ell: str = "6/5") -> tuple[Grouping, Target]:
    models = [MODELS["k-anonymity"](k=k), MODELS["simple-l-diversity"](l=ell, attribute="s")]
    grouping = method.group(task_of(summary, models))
    context = replace(context_of(summary), hierarchies={"s": DISEASES})
    return grouping, Target(grouping, models, method, context)


# --- models -------------------------------------------------------------------------------------------

counts = st.dictionaries(st.sampled_from([*DOMAIN, None]), st.integers(1, 9), min_size=1)
near = st.sampled_from([-1, 0, 1])


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """One person more or less decides, with billions of others in the same class; some people are alone in theirs."""
    factor = draw(st.sampled_from(FACTORS))
    small_ = draw(st.lists(counts, min_size=1, max_size=4))
    rows = [
        {v: n * factor + (draw(near) if v == "a" else 0) for v, n in row.items()} for row in small_
    ]  # fmt: skip
    rows += [{draw(st.sampled_from([*DOMAIN, None])): 1} for _ in range(draw(st.integers(0, 2)))]
    return Table(
        rows, [sum(row.values()) * draw(st.integers(1, 3)) + draw(st.integers(0, 1)) for row in rows]
    )


def as_classes(table: Table, name: str) -> Classes:
    """With what the models ask for: numbers, a population, weights, and the raw classes, none of which were merged."""
    if name == "ke-anonymity":
        rows = [{v and NUMBERS.get(v, v): n for v, n in row.items()} for row in table.rows]
        made = weighted(rows, sorted({v for row in rows for v in row if v is not None}))
    else:
        made = weighted(table.rows)
    originals = Originals(np.arange(made.n + 1), made.sizes)
    people = np.array(table.people)
    counts = next(iter(made.sensitive.values()))
    held = np.flatnonzero(counts.codes > 0)
    each = Guards.of([frozenset({v}) for v in counts.values], counts.owner[held], counts.codes[held] - 1)
    guards = dict.fromkeys(made.sensitive, each)
    made = replace(made, guards=guards)
    return replace(made, population=people, weights=people.astype(np.float64), originals=originals)


def verdicts(name: str, table: Table, parameters: dict[str, Any]) -> list[bool]:
    """Of the product, with `passing` and with `check`."""
    classes = as_classes(table, name)
    sample = Sample(sum(table.people), sum(table.sizes), weighted=True)
    found, context = model(name, **parameters), context_of_classes(classes, sample=sample)
    passes: list[bool] = found.passing(classes, context).tolist()
    assert found.check(classes, context).passes.tolist() == passes
    return passes


@pytest.mark.parametrize("name", sorted(PAPER))
@given(table=tables())
def test_models_against_their_definitions(name: str, table: Table) -> None:
    for parameters, expected in PAPER[name](table):
        assert verdicts(name, table, parameters) == expected, parameters


@given(tables())
def test_what_is_measured(table: Table) -> None:
    """Not the verdict alone: the numbers that are reported, as fractions."""
    classes = as_classes(table, "any")
    context = context_of_classes(classes)
    risk = Fraction(len(table.rows), sum(table.sizes))
    assert model("average-risk", max=1).check(classes, context).worst == risk
    for name, parameters in (
        ("simple-l-diversity", {"l": 1}),
        ("belief", {"max": 1}),
        ("m-confidentiality", {"m": 1}),
    ):
        assert list(model(name, **parameters).check(classes, context).values) == table.shares
    for distance in ("equal", "ordered"):
        found = model("t-closeness", t=1, distance=distance).check(classes, context).values
        assert list(found) == distances(table, distance)


@given(tables(), st.sampled_from([0, 1]))
def test_safety_against_its_definition(table: Table, facts: int) -> None:
    """It is about the release as a whole; each class is measured as if it were the only one."""
    classes = as_classes(table, "ck-safety")
    worst = most_believed(table.rows, facts)
    alone = [most_believed([row], facts) for row in table.rows]
    for c in around([worst], TINY, 1):
        verdict = model("ck-safety", c=c, k=facts).check(classes, context_of_classes(classes))
        assert (verdict.worst if worst else 0, verdict.ok) == (worst, worst < c)
        assert [float(x) for x in verdict.values] == pytest.approx([float(x) for x in alone], rel=1e-12)
        assert not verdict.passes[[x >= c for x in alone]].any()
        assert verdict.passes.all() == verdict.ok


def edges(f: int) -> dict[str, list[tuple[Table, dict[str, Any], list[bool]]]]:
    """Every registered model on its boundary and one person beyond it: the verdicts, by hand."""
    full, even, odd = {"a": 4 * f}, {"a": 2 * f, "b": 2 * f}, {"a": 2 * f + 1, "b": 2 * f - 1}
    less, mixed, twice = {"a": 4 * f - 1}, {"a": 4 * f - 1, "b": 1}, {"a": 4 * f, "b": 4 * f}
    rest = {"a": 2 * f, "b": f, "c": f}
    # `twice` beside `odd` is 1/12f from the whole table, in which 6f + 1 of 12f have a; `odd` is twice as far
    near_, lift, one, yes_no = Fraction(1, 12 * f), Fraction(1, 6 * f - 1), {"attribute": "s"}, [True, False]

    def of(*rows: dict[Any, int]) -> Table:
        return Table(list(rows), [8 * f, 8 * f - 1])

    # where everybody is drawn, 4f people are found with one in 4f; and one of 4f + 1, or of 4f, is alone
    alone, share = {"a": 1}, Fraction(2, 8 * f + 1)
    single, fewer = Table([full, alone], [4 * f, 1]), Table([less, alone], [4 * f - 1, 1])

    return {
        "k-anonymity": [(of(full, less), {"k": 4 * f}, yes_no)],
        "k-map": [(of(full, full), {"k": 8 * f}, yes_no)],
        "highest-risk": [(of(full, less), {"max": Fraction(1, 4 * f)}, yes_no)],
        "average-risk": [
            (of(full, full), {"max": Fraction(2, 8 * f)}, [True, True]),
            (of(full, less), {"max": Fraction(2, 8 * f)}, [False, False]),
        ],
        "delta-presence": [(of(full, full), {"delta_max": "1/2"}, yes_no)],
        "simple-l-diversity": [(of(even, odd), {"l": 2}, yes_no)],
        "belief": [(of(even, odd), {"max": "1/2"}, yes_no)],
        "m-confidentiality": [(of(even, odd), {"m": 2, **one}, yes_no)],
        "personalised-privacy": [(of(even, odd), {"p": "1/2", "guarding": "g"}, yes_no)],
        "alpha-k-anonymity": [(of(even, odd), {"alpha": "1/2", "k": 4 * f}, yes_no)],
        "entropy-l-diversity": [(of(even, odd), {"l": 2}, yes_no)],
        "distinct-l-diversity": [(of(mixed, full), {"l": 2}, yes_no)],
        "p-sensitive-k-anonymity": [(of(mixed, full), {"p": 2, "k": 4 * f}, yes_no)],
        "ke-anonymity": [(of(mixed, full), {"k": 4 * f, "e": 12}, yes_no)],
        "recursive-cl-diversity": [(of(rest | {"c": f + 1}, rest), {"c": 1, "l": 2}, yes_no)],
        "ck-safety": [(of(even | {"c": 1}, even), {"c": "1/2", "k": 0}, yes_no)],
        "t-closeness": [(of(twice, odd), {"t": near_}, yes_no)],
        "nt-closeness": [
            (of(twice, odd), {"n": 12 * f, "t": near_}, yes_no),
            (of(twice, odd), {"n": 12 * f + 1, "t": near_}, [False, False]),
        ],
        "beta-likeness": [(of(twice, odd), {"beta": lift}, yes_no)],
        "delta-disclosure": [(of(twice, odd), {"delta": 3 * near_}, yes_no)],
        "individual-risk": [
            (Table([full, less], [4 * f, 4 * f - 1]), {"max": Fraction(2, 8 * f - 1)}, yes_no),
            # of W = 8f people half are drawn: about (1 + 1/W)/W; of two people less, (1 + 3/W)/W
            (Table([full, full], [8 * f, 8 * f - 2]), {"max": Fraction(1, 8 * f - 2)}, yes_no),
        ],
        "population-uniqueness": [
            *((single, {"max": share, "estimator": name}, [True, True]) for name in get_args(Estimator)),
            *((fewer, {"max": share, "estimator": name}, [False, False]) for name in get_args(Estimator)),
            (of(full, alone), {"max": share, "estimator": "zayatz"}, [True, True]),
            (of(less, alone), {"max": share, "estimator": "zayatz"}, [False, False]),
        ],
    }


@pytest.mark.parametrize("name", sorted(MODELS))
def test_one_person_decides(name: str) -> None:
    assert {*PAPER, "ck-safety"} == set(edges(1)) == set(MODELS)
    for factor in FACTORS:
        for table, parameters, expected in edges(factor)[name]:
            assert verdicts(name, table, parameters) == expected, factor


@pytest.mark.parametrize("factor", FACTORS)
def test_credibility_of_merged_classes(factor: int) -> None:
    """Two raw classes each, in the first of which no value can violate; in the second there is one world only.

    Where more worlds than that are possible they must be counted, and those of billions are too many: not compared.
    """
    classes = weighted([dict.fromkeys(DOMAIN, factor), {"a": 4 * factor}])
    classes = replace(classes, originals=Originals(np.array([0, 2, 4]), np.full(4, 2 * factor)))
    verdict = model("m-confidentiality", m=2).check(classes, context_of_classes(classes))
    assert (list(verdict.values), verdict.passes.tolist()) == ([Fraction(1, 4), 1], [True, False])


def test_one_person_of_quadrillions() -> None:
    """Beyond 2^53, where floating point no longer counts every person."""
    classes = weighted([{"a": 2**53, "b": 2**53}, {"a": 2**53 + 1, "b": 2**53 - 1}])
    classes = replace(classes, originals=Originals(np.array([0, 1, 2]), np.full(2, 2**54)))
    verdict = model("m-confidentiality", m=2).check(classes, context_of_classes(classes))
    assert verdict.passes.tolist() == [True, False]


def test_classes_of_too_many_people_are_refused_before_they_are_listed() -> None:
    classes = weighted([{"a": 2**40, "b": 2**40, "c": 2**40}])
    classes = replace(classes, originals=Originals(np.array([0, 2]), np.array([2**41, 2**40])))
    with pytest.raises(PolicyError, match="too large to count"):
        model("m-confidentiality", m=2).check(classes, context_of_classes(classes))


# --- methods, metrics, attacks ------------------------------------------------------------------------

WHOLE = ["optimal-lattice", "samarati", "incognito", "local-recoding"]
# which suppress cells of whole tuples, count rows in pieces, or need several sensitive columns
OTHERS = {"local-suppression", "dp-sample", "codip"}
OBJECTIVES = ["information-loss", "arx-loss", "precision", "discernibility", "average-class-size", "height"]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", WHOLE)
def test_methods_that_keep_tuples_together(name: str, factor: int) -> None:
    options = {} if name == "local-recoding" else {"suppression": "1/10"}
    one, many = (
        grouped(times(small(), f), 4 * f, METHODS[name](**options))[0] for f in (1, factor)
    )  # fmt: skip
    assert many.levels == one.levels
    assert many.classes.sizes.tolist() == [n * factor for n in one.classes.sizes.tolist()]
    assert many.suppressed_rows == one.suppressed_rows * factor


@pytest.mark.parametrize("factor", [FACTORS[0], FACTORS[1], 2**31, 2**40])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives(objective: str, factor: int) -> None:
    method = METHODS["optimal-lattice"](objective=objective, suppression="1/10")
    one, many = (grouped(times(small(), f), 4 * f, method)[0] for f in (1, factor))
    assert many.levels == one.levels


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(WHOLE) - OTHERS))
def test_methods_that_hold_rows_refuse(name: str) -> None:
    """More rows than they can number: one clear line before anything is made."""
    options: dict[str, Any] = {"anatomy": {"l": 2}, "mask": {"l": 2, "values": ["a"]}}.get(name, {})
    with pytest.raises(MaskwrightError, match="rows"):
        METHODS[name](**options).parts(task_of(times(small(), 2**31), [MODELS["k-anonymity"](k=4 * 2**31)]))


BY_ROWS = {"non-uniform-entropy": 1, "average-class-size": 1, "discernibility": 2}


@pytest.mark.parametrize("factor", FACTORS)
def test_metrics(factor: int) -> None:
    method = METHODS["optimal-lattice"](suppression="1/10", suppressed_rows="star")
    one, many = (grouped(times(small(), f), 4 * f, method)[0] for f in (1, factor))
    compared = 0
    for name, metric in METRICS.items():
        if metric.on_request:
            continue
        first, second = (metric.measure(g, {}, False) for g in (one, many))
        expected = first * factor ** BY_ROWS.get(name, 0)
        if isinstance(first, Fraction | int):
            assert second == expected, name
        else:
            assert second == pytest.approx(expected, rel=1e-12, nan_ok=True), name
        compared += not (isinstance(first, float) and math.isnan(first))
    assert compared > 9


SHARES = ["homogeneity", "similarity", "skewness", "background-join"]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", ["linkage", *SHARES])
def test_attacks_by_shares(name: str, factor: int) -> None:
    method = METHODS["optimal-lattice"](suppression="1/10")
    found = []
    for f in (1, factor):
        _, target = grouped(times(small(name == "background-join"), f), 10 * f, method)
        assert ATTACKS[name]().applies(target)
        found.append(ATTACKS[name]().run(target, ADVERSARIES["insider"]).worst)
    one, many = found
    assert 0 < one.after < 1, "otherwise nothing is compared"
    assert many.after == (one.after / factor if name == "linkage" else one.after)
    assert many.before == (one.before / factor if name == "linkage" else one.before)


def target_for(name: str) -> Target:
    """A release of billions that the attack applies to."""
    factor = 2**33
    method = METHODS["optimal-lattice"]()
    if name == "absence":
        method = METHODS["optimal-lattice"](suppression="3/10", suppress="failing-classes")
        return grouped(times(small(), factor), 2 * factor, method)[1]
    if name == "downcoding":
        return grouped(times(small(), factor), 4 * factor, METHODS["local-recoding"]())[1]
    target = grouped(times(small(), factor), 4 * factor, method)[1]
    if name == "intersection":
        other = grouped(times(small(), factor), 4 * factor, METHODS["local-recoding"]())[1]
        return replace(target, beside=(replace(other, name="other"),))
    if (
        name == "passing-columns"
    ):  # a column that halves every class: rows of one side hold what its class holds
        asked = model("belief", max="1/2", attribute="s")
        before = asked.shares(target.grouping.summary.totals())
        prior = Belief(before[before.argmax()], Fraction(0), "", "")
        told = narrowed_belief(asked.shares(target.grouping.classes), prior, ["side"])
        return replace(target, passing=(PassingBelief("s", None, told, in_rows=True),))
    return target


# Visits, pseudonyms, sets and changed numbers are listed person by person, never in billions; a control is needed
ONE_BY_ONE = {
    "linked-visits",
    "linked-releases",
    "known-items",
    "perturbed-columns",
    "perturbed-numbers",
    "singling-out",
}


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - {"linkage", *SHARES} - ONE_BY_ONE))
def test_other_attacks_stay_sane(name: str) -> None:
    """They end, and what they find is a belief that is no less than what the class shows."""
    target = target_for(name)
    assert ATTACKS[name]().applies(target)
    worst = ATTACKS[name]().run(target, ADVERSARIES["insider"]).worst
    assert 0 < worst.before < worst.after <= 1
    if name in ("absence", "downcoding"):  # about people whom no class shows, or about quasi-identifiers
        return
    shown = max(ATTACKS["homogeneity"]().run(t, ADVERSARIES["insider"]).worst.after for t in target.tables)
    assert worst.after >= shown * (1 - Fraction(1, 10**6))


def test_boxes_of_billions_are_counted_against_a_control() -> None:
    """The boxes that hold nobody of the control are the same; each isolates as its own number of people says."""
    found = []
    for factor in (1, 2**33):
        method = METHODS["optimal-lattice"]()
        _, target = grouped(times(small(), factor), 4 * factor, method)
        control = [{h.attribute: h.values[0] for h in target.grouping.summary.attributes}]
        found.append(ATTACKS["singling-out"](control=control).run(target, ADVERSARIES["insider"]))  # type: ignore[call-arg]
    one, many = found
    assert many.measures["empty_boxes"] == one.measures["empty_boxes"] > 0
    assert 0 < many.worst.after <= 1
    assert abs(many.worst.after - Fraction(math.exp(-1))) < Fraction(1, 10**6), (
        "(1 − 1/n)^(n−1) of a class of billions"
    )


def test_the_compiled_search_ends_where_its_counters_do() -> None:
    """Just below 2^31 people in the table the kernel serves, above it its twin; the results above are alike."""
    assert 40 * FACTORS[0] < 2**31 - 1 <= 40 * FACTORS[1]
    column = LatticeColumn(np.zeros(1, np.int32), (np.zeros(1, np.int32),))
    problems = [
        NodeProblem((column,), n, n, {}, (), 1, True, False, 0)
        for n in (np.array([40 * f]) for f in FACTORS[:2])
    ]
    assert [compiled.can_take(p) for p in problems] == [compiled.kernel_available(), False]


# --- kernels and keys ---------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 2**58)), min_size=1, max_size=16)
)
def test_counts_are_added_exactly(entries: list[tuple[int, int, int]]) -> None:
    owner, codes, numbers = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    made = ValueCounts.collect(("a", "b"), 4, owner, codes, numbers)
    expected: dict[tuple[int, int], int] = {}
    for o, c, n in entries:
        expected[o, c] = expected.get((o, c), 0) + n
    found = dict(
        zip(zip(made.owner.tolist(), made.codes.tolist(), strict=True), made.counts.tolist(), strict=True)
    )
    assert found == expected
    assert made.totals.tolist() == [sum(n for _, c, n in entries if c == code) for code in range(3)]


def test_disclosure_refuses_what_floats_cannot_hold() -> None:
    big = weighted([{"a": 2**54, "b": 2**54}])
    with pytest.raises(OverflowError, match="2\\^53"):
        model("ck-safety", c="3/4", k=1).passing(big, context_of_classes(big))


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=9), st.data())
def test_keys_beyond_63_bits(radices: list[int], data: st.DataObject) -> None:
    """Digits of any number of attributes come back from their words, and order and equality are those of the digits."""
    packing = Packing.of(radices)
    rows = data.draw(
        st.lists(st.tuples(*(st.one_of(st.just(0), st.just(r - 1), st.integers(0, r - 1)) for r in radices)),
                 min_size=1, max_size=12)
    )  # fmt: skip
    digits = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    words = packing.pack(digits)
    assert len(words) == len(packing.words)
    assert all((w >= 0).all() for w in words)
    assert [packing.unpack(words, i).tolist() for i in range(len(radices))] == [d.tolist() for d in digits]
    keys, numbers = number(words, len(rows))
    ordered = sorted(set(rows))
    assert [ordered[n] for n in numbers.tolist()] == rows
    assert len(keys[0]) == len(ordered)


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**61)), max_size=3))
def test_sums_of_products(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array(column, dtype=np.int64) for column in (zip(*pairs, strict=True) if pairs else ([], [])))
    assert exact_dot(a, b) == sum(x * y for x, y in pairs)


def test_sizes_near_two_to_the_63() -> None:
    """The most that a table can hold: sizes add up without a wrap."""
    classes = weighted([{"a": 2**61, "b": 2**61}, {"a": 2**61}])
    assert int(classes.sizes.sum()) == 3 * 2**61
    assert model("k-anonymity", k=2**61).passing(classes, Context()).all()
    assert model("simple-l-diversity", l=2).passing(classes, Context()).tolist() == [True, False]


def test_classes_of_a_summary() -> None:
    made: Classes = times(small(), 2**40).totals()
    assert made.sizes.tolist() == [40 * 2**40]
    assert sum(made.sensitive["s"].totals.tolist()) == 40 * 2**40
