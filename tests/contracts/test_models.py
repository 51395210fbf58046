"""The battery that every registered privacy model goes through; a new model adds its line to EXAMPLES."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import maskwright.models
from maskwright.domain.classes import Classes, Originals, ValueCounts
from maskwright.domain.guards import Guards
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.model import Context, Model
from maskwright.domain.sample import Sample
from maskwright.domain.settings import build_registered
from maskwright.errors import PolicyError
from maskwright.models import MODELS
from tests.support import passes

DOCS = Path(__file__).parents[2] / "docs" / "models"

# several settings for each model: strict and lenient ones, and every option that changes what is decided
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "k-anonymity": [{"k": 2}, {"k": 4}, {"k": 1}],
    "simple-l-diversity": [
        {"l": 2}, {"l": "3/2"}, {"l": 2, "values": ["4"]}, {"l": 2, "sets": [["1", "4"], ["6"]]},
    ],
    "distinct-l-diversity": [{"l": 1}, {"l": 2}, {"l": 3}],
    "entropy-l-diversity": [{"l": 2}, {"l": "3/2"}, {"l": 3}, {"l": "1/2"}],
    "recursive-cl-diversity": [{"c": 2, "l": 2}, {"c": "1.5", "l": 1}, {"c": 3, "l": 3}],
    "alpha-k-anonymity": [
        {"alpha": "1/2", "k": 2}, {"alpha": "2/3", "k": 3}, {"alpha": "0.5", "k": 1, "values": ["4"]},
    ],
    "p-sensitive-k-anonymity": [{"p": 2, "k": 3}, {"p": 1, "k": 2}, {"p": 2, "k": 1, "attributes": ["s"]}],
    "personalised-privacy": [
        {"p": "1/2", "guarding": "g"}, {"p": "1/3", "guarding": "g", "unnamed": "unguarded"},
        {"p": "2/5", "guarding": "g"},
    ],
    "t-closeness": [
        {"t": "1/4"}, {"t": "1/3", "distance": "ordered"}, {"t": "0.3", "distance": "hierarchical"}, {"t": 0},
    ],
    "nt-closeness": [{"n": 5, "t": "1/4"}, {"n": 1, "t": "1/3", "distance": "ordered"}],
    "ke-anonymity": [{"k": 2, "e": 3}, {"k": 1, "e": 5, "distinct": True}, {"k": 3, "e": 0}],
    "ck-safety": [{"c": "3/4", "k": 0}, {"c": 1, "k": 1}, {"c": "2/3", "k": 1}],
    "m-confidentiality": [{"m": 2}, {"m": "3/2", "l": 2}, {"m": 2, "sets": [["4"]]}],
    "belief": [{"max": "1/2"}, {"max": "2/3", "adversary": "neighbour", "sets": [["1", "4"]]}],
    "delta-disclosure": [{"delta": "0.5"}, {"delta": 1}, {"delta": 1, "strict": True}],
    "beta-likeness": [{"beta": "1/2"}, {"beta": 1}, {"beta": 1, "enhanced": True}],
    "delta-presence": [{"delta_max": "1/2"}, {"delta_max": "2/3", "delta_min": "0.4"}],
    "k-map": [{"k": 3}, {"k": 8}],
    "average-risk": [{"max": "1/4"}, {"max": "1/8", "adversary": "marketer"}],
    "highest-risk": [{"max": "1/4"}, {"max": "1/8", "adversary": "journalist"}],
    "individual-risk": [{"max": "1/4"}, {"max": "1/8"}],
    "population-uniqueness": [
        {"max": "1/4"}, {"max": "1/10", "estimator": "pitman"}, {"max": "1/2", "estimator": "zayatz"},
        {"max": "1/2", "estimator": "snb"},
    ],
}  # fmt: skip

BAD: dict[str, list[dict[str, Any]]] = {
    "k-anonymity": [
        {}, {"k": 0}, {"k": 2.5}, {"k": "many"}, {"k": True}, {"k": 2, "on": []}, {"k": 2, "on": [["a", "a"]]},
    ],
    "simple-l-diversity": [
        {}, {"l": 0}, {"l": -1}, {"l": "x"}, {"l": 2, "values": []}, {"l": 2, "sets": [[]]},
        {"l": 2, "values": ["a"], "sets": [["a"]]},
    ],
    "distinct-l-diversity": [{"l": 0}, {"l": "5/2"}],
    "entropy-l-diversity": [{"l": 0}, {"l": "1/0"}],
    "recursive-cl-diversity": [{"c": 0, "l": 2}, {"c": 2, "l": 0}, {"c": 2}],
    "alpha-k-anonymity": [{"alpha": 0, "k": 2}, {"alpha": 2, "k": 2}, {"alpha": "1/2"}, {"alpha": "1/2", "k": 0}],
    "p-sensitive-k-anonymity": [{"p": 0, "k": 2}, {"p": 2}, {"p": 2, "k": 2, "attributes": []}],
    "personalised-privacy": [
        {}, {"p": "1/2"}, {"p": 0, "guarding": "g"}, {"p": 2, "guarding": "g"}, {"p": "1/2", "guarding": ""},
        {"p": "1/2", "guarding": "g", "unnamed": "perhaps"},
    ],
    "t-closeness": [{"t": -1}, {"t": "0.1", "distance": "euclidean"}],
    "nt-closeness": [{"n": 0, "t": "0.1"}, {"n": 5, "t": "-0.1"}, {"t": "0.1"}],
    "ke-anonymity": [{"k": 0, "e": 1}, {"k": 2, "e": -1}, {"k": 2}],
    "ck-safety": [{"c": 0, "k": 1}, {"c": "1/2", "k": -1}, {"c": 2, "k": 1}],
    "m-confidentiality": [{"m": 0}, {"m": 2, "sets": [["a"], ["a"]]}, {"m": 2, "l": 0}],
    "belief": [
        {}, {"max": 0}, {"max": 2}, {"max": "1/4", "adversary": "nobody"}, {"max": "1/4", "use": "search"},
        {"max": "1/4", "facts": 2}, {"max": "1/4", "sets": []},
    ],
    "delta-disclosure": [{"delta": 0}, {"delta": "1", "strict": "perhaps"}],
    "beta-likeness": [{"beta": 0}, {"beta": -1}],
    "delta-presence": [{"delta_max": 2}, {"delta_max": 0}, {"delta_max": "0.1", "delta_min": "0.2"}],
    "k-map": [{"k": 0}, {"k": "1/2"}],
    "average-risk": [{"max": 0}, {"max": 2}, {"max": "0.1", "adversary": "neighbour"}],
    "highest-risk": [{"max": 0}, {"max": 2}, {"max": "0.1", "adversary": "marketer"}],
    "individual-risk": [{}, {"max": 0}, {"max": 2}, {"max": "much"}],
    "population-uniqueness": [{}, {"max": 0}, {"max": 2}, {"max": "0.1", "estimator": "guess"}],
}  # fmt: skip

SETTINGS = [(name, parameters) for name, settings in EXAMPLES.items() for parameters in settings]
each_model = pytest.mark.parametrize("name", MODELS)
each_setting = pytest.mark.parametrize(("name", "parameters"), SETTINGS, ids=lambda v: str(v))

# A universe of small classes that is searched completely. A class is a tuple of original classes, each a tuple of
# values; "" is missing. The table they are compared with is fixed.
Group = tuple[tuple[str, ...], ...]
VALUES = ("1", "4", "6")
REFERENCE = {"1": 6, "4": 4, "6": 2, "": 1}
MATCHING = {"1": 1, "4": 3, "6": 2, "": 4}  # people of the population for every person with that value
HIERARCHY = Hierarchy.of("s", VALUES, [("pair", ["low", "low", "high"])])


def make(name: str, parameters: dict[str, Any]) -> Model:
    return build_registered(MODELS, "model", name, parameters, "require[0]")


def tally(groups: Sequence[Sequence[str]]) -> ValueCounts:
    code = {"": 0, **{value: i + 1 for i, value in enumerate(VALUES)}}
    owner = np.array([g for g, values in enumerate(groups) for _ in values], dtype=np.int64)
    codes = np.array([code[value] for values in groups for value in values], dtype=np.int64)
    return ValueCounts.collect(VALUES, len(groups), owner, codes, np.ones(len(codes), dtype=np.int64), True)


def table(groups: Sequence[Group]) -> tuple[Classes, Context]:
    flat = [[value for original in group for value in original] for group in groups]
    sizes = np.array([len(values) for values in flat], dtype=np.int64)
    original_sizes = np.array([len(original) for group in groups for original in group], dtype=np.int64)
    context = Context(
        reference={"s": np.array([REFERENCE[""], *(REFERENCE[v] for v in VALUES)], dtype=np.int64)},
        n_people=sum(REFERENCE.values()),
        hierarchies={"s": HIERARCHY},
        domains={"s": VALUES},
        sample=Sample(40, sum(REFERENCE.values()), weighted=True),
    )
    population = np.array([sum(MATCHING[v] for v in values) for values in flat], dtype=np.int64)
    class_of = np.array([g for g, group in enumerate(groups) for _ in group], dtype=np.int64)
    originals = Originals.of(class_of, original_sizes, len(groups))
    weights = population.astype(np.float64)
    made = Classes(
        sizes, sizes, {"s": tally(flat)}, population=population, originals=originals, weights=weights,
        guards={"s": guards_of(flat)},
    )  # fmt: skip
    return made, context


def guards_of(flat: Sequence[Sequence[str]]) -> Guards:
    """Whoever has 6 guards 1 and 4, and whoever has 1 guards 6."""
    nodes = {"6": 0, "1": 1}
    pairs = [(g, nodes[value]) for g, values in enumerate(flat) for value in values if value in nodes]
    owner, node = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Guards.of([frozenset({"1", "4"}), frozenset({"6"})], owner, node)


def decide(model: Model, groups: Sequence[Group]) -> list[bool]:
    """Which classes pass, each as if it were the whole release; of `releases`, whether all of their classes do."""
    if model.is_local():
        result: list[bool] = model.passing(*table(groups)).tolist()
        return result
    apart = model.name in OF_RELEASES
    return [
        bool(model.passing(*table([(o,) for o in group] if apart else [group])).all()) for group in groups
    ]


def multisets(values: Sequence[str], largest: int) -> list[tuple[str, ...]]:
    return [m for n in range(1, largest + 1) for m in itertools.combinations_with_replacement(values, n)]


def universe(name: str) -> list[Group]:
    if name == "m-confidentiality":  # what matters there is how a class is made up of original ones
        originals = multisets(("1", "4"), 3)
        return [g for n in (1, 2) for g in itertools.combinations_with_replacement(originals, n)]
    return [(values,) for values in multisets((*VALUES, ""), 4)]


OF_RELEASES = {
    "population-uniqueness"
}  # of a single class, only that of one person fails, who is no more in parts


def releases(name: str) -> list[Group]:
    """What parts are taken of: classes, or whole releases of up to three classes, each an original class here."""
    if name not in OF_RELEASES:
        return universe(name)
    return [g for n in (1, 2, 3) for g in itertools.combinations_with_replacement(multisets(("1",), 4), n)]


def merged(a: Group, b: Group, name: str) -> Group:
    return a + b if name == "m-confidentiality" else (tuple(sorted(a[0] + b[0])),)


def parts(group: Group) -> Iterator[Group]:
    """The proper non-empty parts of a class."""
    people = [(o, value) for o, original in enumerate(group) for value in original]
    for n in range(1, len(people)):
        for chosen in sorted(set(itertools.combinations(people, n))):
            split = (tuple(v for o, v in chosen if o == i) for i in range(len(group)))
            yield tuple(original for original in split if original)


def merge_counterexamples(model: Model) -> tuple[int, list[tuple[Group, Group]]]:
    """(pairs of passing classes tried, those whose union fails)."""
    groups = universe(model.name)
    good = [group for group, ok in zip(groups, decide(model, groups), strict=True) if ok]
    pairs = list(itertools.combinations_with_replacement(good, 2))
    verdicts = decide(model, [merged(a, b, model.name) for a, b in pairs])
    return len(pairs), [pair for pair, ok in zip(pairs, verdicts, strict=True) if not ok]


def part_counterexamples(model: Model) -> tuple[int, list[tuple[Group, Group]]]:
    """(parts of failing classes tried, those that pass)."""
    groups = releases(model.name)
    bad = [group for group, ok in zip(groups, decide(model, groups), strict=True) if not ok]
    pairs = [(group, part) for group in bad for part in parts(group)]
    verdicts = decide(model, [part for _, part in pairs])
    return len(pairs), [pair for pair, ok in zip(pairs, verdicts, strict=True) if ok]


def _two_supersets() -> tuple[bool, bool]:
    """(n,t)-closeness: two classes near their own ancestors; of the class merged only the table is an ancestor."""
    model = make("nt-closeness", {"n": 4, "t": 0})
    apart, context = table([(("1",),), (("4",),), (("1", "1", "1"),), (("4", "4", "4"),)])
    families = [[[0, 2]], [[1, 3]], [[0, 2]], [[1, 3]]]
    before = model.passing(apart, Context(reference=context.reference, supersets=families)).all()
    together, context = table([(("1", "4"),), (("1", "1", "1"),), (("4", "4", "4"),)])
    return bool(before), bool(model.passing(together, context)[0])


def _somebody_of_no_class() -> tuple[bool, bool]:
    """δ-presence: two classes with half of their people; the class merged also matches one whom neither matched."""
    model = make("delta-presence", {"delta_min": "1/2", "delta_max": 1})
    apart, context = table([(("1",),), (("4",),)])
    before = model.passing(replace(apart, population=np.array([2, 2])), context).all()
    together, context = table([(("1", "4"),)])
    return bool(before), bool(model.passing(replace(together, population=np.array([5])), context)[0])


def _small_class_dropped() -> tuple[bool, bool]:
    """Average risk: a table fails, and passes without its class of one."""
    model = make("average-risk", {"max": "1/4"})
    whole, context = table([(("1",),), (("1", "4", "4", "6"),)])
    rest, _ = table([(("1", "4", "4", "6"),)])
    return not model.passing(whole, context).any(), bool(model.passing(rest, context).all())


def _pairs_joined() -> tuple[bool, bool]:
    """Population uniqueness: two classes of two become one of four, and the class of one looks rarer."""
    model = make("population-uniqueness", {"max": "1/20", "estimator": "zayatz"})
    context = Context(sample=Sample(30, 5))
    before, after = (np.array(sizes, dtype=np.int64) for sizes in ([1, 2, 2], [1, 4]))
    found = [model.check(Classes(sizes, sizes), context) for sizes in (before, after)]
    return found[0].ok, found[1].ok


# counterexamples that need more than one class, or supersets: (premise, conclusion that is false when it does not hold)
MERGE_ELSEWHERE: dict[str, Callable[[], tuple[bool, bool]]] = {
    "nt-closeness": _two_supersets,
    "delta-presence": _somebody_of_no_class,
    "population-uniqueness": _pairs_joined,
}
PART_ELSEWHERE: dict[str, Callable[[], tuple[bool, bool]]] = {
    "average-risk": _small_class_dropped,
}


def test_every_model_has_examples_here() -> None:
    assert set(EXAMPLES) == set(BAD) == set(MODELS)


def test_every_file_is_registered() -> None:
    folder = Path(maskwright.models.__path__[0])
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {name.replace("-", "_") for name in MODELS} == files
    for name, cls in MODELS.items():
        assert cls.name == name
        assert cls.__module__ == f"maskwright.models.{name.replace('-', '_')}"


@each_model
def test_it_explains_itself(name: str) -> None:
    cls = MODELS[name]
    assert cls.summary_line().endswith(".")
    described = cls.__doc__ or ""
    for field in cls.model_fields:
        assert field == "use" or f"{field}:" in described, f"{field} is not described"


@each_model
def test_it_has_a_page(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text("utf-8")
    assert text.startswith("# ")
    for heading in (
        "## Definition",
        "## Example",
        "## Parameters",
        "## What it protects against",
        "## Properties",
    ):
        assert heading in text, heading
    parameters = text.split("## Parameters")[1].split("\n## ")[0]
    for field in MODELS[name].model_fields:
        assert field == "use" or f"`{field}`" in parameters, field
    properties = text.split("## Properties")[1]
    for claim, holds in (("Merge-safe", MODELS[name].merge_safe), ("Hereditary", MODELS[name].hereditary)):
        assert f"{claim}: {'yes' if holds else 'no'}" in properties, claim
    assert f"({name}.md)" in (DOCS / "README.md").read_text("utf-8")


@each_setting
def test_it_survives_a_policy_file(name: str, parameters: dict[str, Any]) -> None:
    model = make(name, {**parameters, "use": "gate"})
    read = make(name, yaml.safe_load(yaml.safe_dump(model.options())))
    assert read == model
    assert read.options() == model.options()


@pytest.mark.parametrize(("name", "bad"), [(n, b) for n, bs in BAD.items() for b in bs], ids=lambda v: str(v))
def test_it_refuses_bad_parameters_in_one_line(name: str, bad: dict[str, Any]) -> None:
    with pytest.raises(PolicyError) as caught:
        make(name, bad)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("require[0]")


@each_setting
def test_it_refuses_unknown_parameters(name: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"unknown key 'nonsense'"):
        make(name, {**parameters, "nonsense": 1})


@each_setting
def test_passing_is_what_check_says(name: str, parameters: dict[str, Any]) -> None:
    model = make(name, parameters)
    classes, context = table(universe(name))
    verdict = model.check(classes, context)
    assert verdict.passes.dtype == bool
    assert verdict.passes.tolist() == model.passing(classes, context).tolist()
    assert verdict.ok == verdict.passes.all()
    assert len(verdict.values) == classes.n
    assert verdict.worst is not None
    assert verdict.worst_group is not None
    json.dumps(verdict.as_dict(), allow_nan=False)
    assert verdict.sentence()


@each_setting
def test_it_can_pass_and_fail(name: str, parameters: dict[str, Any]) -> None:
    decided = decide(make(name, parameters), universe(name))
    assert any(decided)
    assert not all(decided) or parameters in ({"k": 1}, {"l": 1})


@each_setting
def test_no_classes_are_no_trouble(name: str, parameters: dict[str, Any]) -> None:
    model = make(name, parameters)
    classes, context = table([])
    verdict = model.check(classes, context)
    assert verdict.ok
    assert (verdict.worst, verdict.worst_group, len(verdict.values)) == (None, None, 0)
    assert len(model.passing(classes, context)) == 0
    assert model.nearest(classes, context) is None
    assert "nothing to measure" in verdict.sentence()


@each_model
def test_merge_safe_is_true(name: str) -> None:
    tried, found = 0, []
    for parameters in EXAMPLES[name]:
        pairs, counterexamples = merge_counterexamples(make(name, parameters))
        tried += pairs
        found += counterexamples
    assert tried > 50
    if MODELS[name].merge_safe:
        assert found == []
    elif name in MERGE_ELSEWHERE:
        assert MERGE_ELSEWHERE[name]() == (True, False)
    else:
        assert found, "declared not merge-safe, but nothing shows it"


@each_model
def test_hereditary_is_true(name: str) -> None:
    tried, found = 0, []
    for parameters in EXAMPLES[name]:
        pairs, counterexamples = part_counterexamples(make(name, parameters))
        tried += pairs
        found += counterexamples
    assert tried > 50
    if MODELS[name].hereditary:
        assert found == []
    elif name in PART_ELSEWHERE:
        assert PART_ELSEWHERE[name]() == (True, True)
    else:
        assert found, "declared not hereditary, but nothing shows it"


@each_setting
def test_kernel_rules_decide_the_same(name: str, parameters: dict[str, Any]) -> None:
    model = make(name, parameters)
    classes, context = table(universe(name))
    rules = model.kernel(context)
    if rules is None:
        assert name not in KERNELS
        return
    counts = classes.sensitive["s"]
    for c, decided in enumerate(model.passing(classes, context).tolist()):
        part = slice(int(counts.start[c]), int(counts.start[c + 1]))
        held = Counter(dict(zip(counts.codes[part].tolist(), counts.counts[part].tolist(), strict=True)))
        assert decided == all(passes(rule, int(classes.sizes[c]), held) for rule in rules), universe(name)[c]


KERNELS = {
    "k-anonymity", "simple-l-diversity", "distinct-l-diversity", "entropy-l-diversity", "recursive-cl-diversity",
    "alpha-k-anonymity", "p-sensitive-k-anonymity", "t-closeness", "delta-disclosure", "beta-likeness",
}  # fmt: skip


def satisfied(model: Model, text: str, classes: Classes, context: Context) -> bool:
    setting = dict(part.split(": ") for part in text.split(", "))
    return make(model.name, {**model.options(), **setting}).check(classes, context).ok


@each_setting
def test_the_nearest_setting_would_do(name: str, parameters: dict[str, Any]) -> None:
    model = make(name, parameters)
    told = 0
    for group in universe(name):
        classes, context = table([group])
        text = model.nearest(classes, context)
        if text is not None:
            told += 1
            assert satisfied(model, text, classes, context), (group, text)
    assert told


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=6, unique=True), st.data())
def test_combinations_of_columns_are_monotone_in_generalisation(
    codes: list[tuple[int, int]], data: st.DataObject
) -> None:
    """k-anonymity with `on`: what fails at coarse labels fails at fine ones, and all pass → all pass."""
    sizes = [data.draw(st.integers(1, 3)) for _ in codes]
    upper = [(a // 2, b // 2) for a, b in codes]
    coarse = sorted(set(upper))
    size = [sum(s for s, u in zip(sizes, upper, strict=True) if u == c) for c in coarse]
    model = make("k-anonymity", {"k": data.draw(st.integers(1, 7)), "on": [["x"], ["y"]]})

    def passing(labels: list[tuple[int, int]], people: list[int]) -> list[bool]:
        n = np.array(people, dtype=np.int64)
        classes = Classes(n, n, {}, ("x", "y"), np.array(labels, dtype=np.int32).T)
        result: list[bool] = model.passing(classes, Context()).tolist()
        return result

    fine, above = passing(codes, sizes), passing(coarse, size)
    for ok, label in zip(fine, upper, strict=True):
        assert not ok or above[coarse.index(label)]
    assert Fraction(sum(above), len(above)) == 1 or not all(fine)
