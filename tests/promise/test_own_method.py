"""A method of one's own: one file that says how it decides, and brings its own analysis."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, get_args

import pyarrow as pa
import pytest

import maskwright as mw
from maskwright.domain.beliefs import Belief
from maskwright.domain.grouping import Grouping
from maskwright.domain.method import Decisions, Method, Task
from maskwright.domain.rules import Rule
from maskwright.methods import METHODS
from maskwright.methods.optimal_lattice import OptimalLattice

BELIEVED = Fraction(3, 5)


def analysis(grouping: Grouping, attribute: str, sets: tuple[tuple[str, ...], ...]) -> Belief:
    return Belief(Fraction(1, 5), BELIEVED, "everybody", f"of {attribute} the toy gives away this much")


class Toy(Method):
    """Publishes everything as one class."""

    name: ClassVar[str] = "toy"

    def decisions(self) -> Decisions:
        return Decisions(analysis=analysis)

    def group(self, task: Task) -> Grouping:
        top = {h.attribute: [h.top] for h in task.summary.attributes}
        return OptimalLattice().group(Task(task.summary, task.search, task.context, task.rng, levels=top))


@pytest.fixture
def registered() -> Iterator[None]:
    METHODS.add("toy", Toy)
    yield
    METHODS.remove("toy")


def policy(largest: str) -> dict[str, object]:
    return {
        "columns": {"q": "quasi-identifier", "s": "sensitive"},
        "require": [{"model": "simple-l-diversity", "l": 2}, {"model": "belief", "max": largest}],
        "method": "toy",
    }


@pytest.mark.usefixtures("registered")
def test_its_own_analysis_is_the_minimality_attack() -> None:
    table = pa.table({"q": list("aabbcc"), "s": list("pqrpqr")})
    release = mw.anonymize(table, policy("3/5"))
    [found] = [b for b in release.beliefs if b.attack == "minimality"]
    assert (found.worst.after, found.worst.whom) == (BELIEVED, "everybody")
    verdict = next(v for v in release.verdicts if v.model == "belief")
    assert (verdict.ok, verdict.status, verdict.worst) == (True, "measured", BELIEVED)
    assert "toy is no part of Maskwright, and nothing of a third party is proven" in verdict.why


@pytest.mark.usefixtures("registered")
def test_the_bound_counts_it() -> None:
    table = pa.table({"q": list("aabbcc"), "s": list("pqrpqr")})
    with pytest.raises(mw.errors.PolicyNotMet, match=r"3/5.*the toy gives away"):
        mw.anonymize(table, policy("1/2"))


# what is called like a method there, and is not one: a default that users see, a hierarchy by masks, a lemma, a bound
OTHER_THINGS = {
    ("policy/policy.py", "optimal-lattice"), ("suggest/sections.py", "optimal-lattice"),
    ("workbench/forms.py", "optimal-lattice"), ("workbench/pages.py", "optimal-lattice"),
    ("hierarchies/__init__.py", "mask"), ("__init__.py", "mask"),
    ("suggest/hierarchy_guess.py", "mask"), ("suggest/presets.py", "mask"),
    ("promise/lemmas/anatomy_buckets.py", "anatomy"),
    # policies that are offered: by `init` and `advise`, and beside a refusal
    *((place, name)
      for place in ("suggest/__init__.py", "suggest/sections.py", "suggest/advice.py", "pipeline/alternatives.py")
      for name in ("optimal-lattice", "mondrian", "local-recoding")),
}  # fmt: skip


def test_no_other_module_knows_a_method_by_its_name() -> None:
    """What an attacker knows of a method is a member of the method: its name is written in `methods` alone."""
    root = Path(mw.__path__[0])
    found = {
        (file.relative_to(root).as_posix(), node.value)
        for file in root.rglob("*.py")
        if file.parent.name != "methods"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in METHODS
    }
    assert found == OTHER_THINGS


def test_no_attack_or_proof_imports_a_method() -> None:
    """Nor asks whether a method is of some class."""
    root = Path(mw.__path__[0])
    classes = {METHODS[name].__name__ for name in METHODS}
    for file in (
        *root.glob("attacks/**/*.py"),
        *root.glob("promise/**/*.py"),
        root / "pipeline/gates.py",
        root / "policy/calibration.py",
    ):
        names = {
            n.id for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, ast.Name)
        }
        assert not names & classes, file


# what translates rules into integers: kernels, and the methods that have one of their own
TRANSLATORS = {
    "kernels/compiled.py", "kernels/node_check.py", "kernels/rule_checks.py",
    "methods/_rows/collecting.py", "methods/alpha_k_local.py",
}  # fmt: skip


def test_only_kernels_ask_of_which_kind_a_rule_is() -> None:
    """What follows from a rule is a member of it (`Conclusions`): adding one is one class and its kernel."""
    root = Path(mw.__path__[0])
    kinds = {kind.__name__ for kind in get_args(Rule)}
    assert len(kinds) == 7
    asking = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "isinstance"
            ):
                named = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                if named & kinds:
                    asking.add(file.relative_to(root).as_posix())
    assert asking == TRANSLATORS


def test_only_the_report_reads_the_figures_of_a_search() -> None:
    """`Grouping.search` is words and figures for readers; what anything is decided by is the typed `trace`."""
    root = Path(mw.__path__[0])
    readers = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if re.search(r"(grouping|\bg|base|found)\.search\b", file.read_text(encoding="utf-8"))
    }
    assert {
        name
        for name in readers
        if name.startswith(("attacks/", "promise/", "pipeline/gates", "policy/calibration"))
    } == set()
    assert {name for name in readers if name.startswith(("domain/", "folder/"))} <= {
        "folder/saved_state.py",
        "domain/release.py",
        "domain/grouping.py",
    }
