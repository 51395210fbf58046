"""With any one repair taken out, a promise is broken, and the enumeration of worlds finds it.

Each repair is undone for one test of `test_cases`, which must then fail: a test that cannot fail would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.attacks import ATTACKS, homogeneity, minimality
from maskwright.domain import references
from maskwright.domain.promise import Design, Ingredient
from maskwright.errors import PolicyError
from maskwright.kernels.randomness import secret_key
from maskwright.methods._rows.group_requirement import GroupRequirement
from maskwright.pipeline import gates, publish, random_keys
from maskwright.pipeline.random_keys import InstallationKey
from maskwright.policy import binding
from maskwright.promise import policy_promise as promises
from maskwright.promise.lemmas import LEMMAS
from maskwright.runtime.events import Progress
from tests.promise import test_cases as cases

Patch = pytest.MonkeyPatch


def covered(name: str) -> Callable[[Patch], None]:
    """As if every ingredient of a kind were named by a proof."""

    def undo(patch: Patch) -> None:
        ask = getattr(promises, name)

        def all_covered(question: Any) -> Iterator[Ingredient]:
            for found in ask(question):
                yield Ingredient(found.name, found.setting, True, found.why)

        every = tuple(all_covered if a is ask else a for a in promises.INGREDIENTS)
        patch.setattr(promises, "INGREDIENTS", every)

    return undo


def rows_are_counted_as_people(patch: Patch) -> None:
    """Everybody is taken to have one row of each class."""
    owned = homogeneity.OwnedRows.of

    def one_row_each(grouping: Any) -> homogeneity.OwnedRows:
        found = owned(grouping)
        return replace(found, rows=np.ones_like(found.rows))

    patch.setattr(homogeneity.OwnedRows, "of", staticmethod(one_row_each))


def nothing_is_asked(patch: Patch) -> None:
    """Fail open: what no attack took into account does not count."""
    patch.setattr(gates, "_unanswered", lambda *_, **__: None)


def facts_of_the_same_row_are_left_out(patch: Patch) -> None:
    covered("_columns")(patch)
    covered("_method")(patch)
    counting = gates.counting_attacks
    patch.setattr(
        gates,
        "counting_attacks",
        lambda adversary: [n for n in counting(adversary) if n != "background-join"],
    )
    nothing_is_asked(patch)


def tables_are_judged_apart(patch: Patch) -> None:
    covered("_tables")(patch)
    covered("_sets")(patch)
    patch.setattr(gates, "_joint_beliefs", lambda *_: [])


def the_plan_is_no_ingredient(patch: Patch) -> None:
    covered("_tables")(patch)


def gates_refer_to_the_whole_table(patch: Patch) -> None:
    patch.setattr(references, "released_context", lambda _, context: context)


def insensitive_columns_say_nothing(patch: Patch) -> None:
    covered("_insensitive")(patch)
    counting = gates.counting_attacks
    patch.setattr(
        gates,
        "counting_attacks",
        lambda adversary: [n for n in counting(adversary) if n != "passing-columns"],
    )
    nothing_is_asked(patch)


def seeds_are_no_ingredient(patch: Patch) -> None:
    covered("_run")(patch)


def labels_are_those_of_the_method(patch: Patch) -> None:
    patch.setattr(publish, "rendered_part", lambda part, _: part)


def facts_beside_a_unit_are_left_out(patch: Patch) -> None:
    covered("_people")(patch)
    nothing_is_asked(patch)
    asked = gates.counting_attacks
    patch.setattr(
        gates, "counting_attacks", lambda a: [n for n in asked(a) if "facts" not in ATTACKS[n].takes]
    )


def rows_that_are_left_out_tell_nothing(patch: Patch) -> None:
    patch.setattr(promises, "_may_be_partly_published", lambda _: False)


def facts_about_sets_are_left_out(patch: Patch) -> None:
    covered("_secrets")(patch)
    nothing_is_asked(patch)


def lists_tell_nothing(patch: Patch) -> None:
    covered("_listed_values")(patch)


def why_a_row_was_left_out_tells_nothing(patch: Patch) -> None:
    """Covered as soon as nobody was left out because a value is missing, whoever else was."""
    ask = promises._missing

    def without_others(question: Any) -> Iterator[Ingredient]:
        for found in ask(question):
            known = question.outcome is not None and not question.outcome.dropped_missing
            yield replace(found, covered=found.covered or known)

    patch.setattr(
        promises, "INGREDIENTS", tuple(without_others if a is ask else a for a in promises.INGREDIENTS)
    )


def cuts_refer_to_the_whole_table(patch: Patch) -> None:
    """Balanced cuts compare with everybody, also with those whom they dropped."""
    gates_refer_to_the_whole_table(patch)
    patch.setattr(GroupRequirement, "among", lambda requirement, _: requirement)


def values_must_occur(patch: Patch) -> None:
    """A policy that names a value which nobody holds is refused."""
    tell = binding._tell_absent

    def refuse(policy: Any, models: Any, domains: Any, _: Any) -> None:
        tell(policy, models, domains, Refusing())

    patch.setattr(binding, "_tell_absent", refuse)


class Refusing(Progress):
    """Takes a note for a refusal."""

    def note(self, text: str, **_: Any) -> None:
        raise PolicyError(text)


def groups_with_the_same_labels_are_told_apart(patch: Patch) -> None:
    """As if a reader could see which of several groups with the same labels a row is in."""
    patch.setattr(minimality, "labels_repeat", lambda _: False)
    patch.setattr(minimality, "groups_are_told", lambda _: True)
    patch.setattr(minimality, "every_world", lambda *_: None)


def every_run_draws_anew(patch: Patch) -> None:
    """A key for each run, as if it were that of the installation, and nobody noticed that it is another."""
    numbers = count()
    patch.setattr(random_keys.Chance, "name", "one for all")
    patch.setattr(random_keys, "installation_key", lambda: InstallationKey(secret_key(next(numbers))))


REPAIRS: list[tuple[Callable[[Patch], None], Callable[[], Any]]] = [
    (rows_are_counted_as_people, cases.test_one_person_has_most_rows_of_a_class),
    (facts_beside_a_unit_are_left_out, cases.test_an_insider_with_facts_beside_unit),
    (facts_of_the_same_row_are_left_out, cases.test_an_insider_who_knows_another_column_of_the_same_row),
    (facts_about_sets_are_left_out, cases.test_an_insider_who_asks_about_a_set_of_values),
    (rows_that_are_left_out_tell_nothing, cases.test_somebody_who_is_published_with_some_rows_only),
    (cuts_refer_to_the_whole_table, lambda: cases.test_a_searched_model_whose_reference_is_the_whole_table(CLOSE)),
    (values_must_occur, cases.test_a_value_that_does_not_occur),
    (lists_tell_nothing, lambda: cases.test_a_value_that_is_not_listed({"order": ["a", "b"]})),
    (lists_tell_nothing, lambda: cases.test_a_secret_that_weighs_rows_or_tells_households_apart(("1", "2", "0"))),
    (lists_tell_nothing, lambda: cases.test_a_secret_that_weighs_rows_or_tells_households_apart(("1", "2", None))),
    (why_a_row_was_left_out_tells_nothing, cases.test_rows_with_missing_values_that_are_dropped),
    (tables_are_judged_apart, cases.test_values_of_one_set_in_several_tables),
    (the_plan_is_no_ingredient, lambda: cases.test_a_plan_that_was_chosen_by_looking("greedy")),
    (the_plan_is_no_ingredient, lambda: cases.test_a_plan_that_was_chosen_by_looking("best")),
    (gates_refer_to_the_whole_table, cases.test_a_gate_whose_reference_is_the_whole_table),
    (insensitive_columns_say_nothing, cases.test_an_insensitive_column_that_is_a_copy),
    (insensitive_columns_say_nothing, cases.test_an_insensitive_column_that_tells_the_rows_of_a_class_apart),
    (seeds_are_no_ingredient, cases.test_a_seeded_release),
    (labels_are_those_of_the_method, lambda: cases.test_labels_say_nothing_about_somebody_who_is_not_published("97.5")),
    (groups_with_the_same_labels_are_told_apart, cases.test_groups_with_the_same_labels_are_one_class_to_a_reader),
    (groups_with_the_same_labels_are_told_apart, cases.test_eight_rows_in_groups_with_the_same_labels),
]  # fmt: skip


CLOSE = {"model": "t-closeness", "t": "1/10"}


@pytest.mark.parametrize(("undo", "case"), REPAIRS, ids=[undo.__name__ for undo, _ in REPAIRS])
def test_without_the_repair_the_promise_is_broken(
    undo: Callable[[Patch], None], case: Callable[[], Any], monkeypatch: Patch
) -> None:
    """With the repair `test_cases` shows that the promise is kept."""
    undo(monkeypatch)
    with pytest.raises(AssertionError):
        case()


@pytest.mark.parametrize(
    "case", [cases.test_the_same_policy_twice, cases.test_running_again_until_a_draw_pleases]
)
def test_without_one_key_for_all_runs(
    case: Callable[[Path], None], monkeypatch: Patch, tmp_path: Path
) -> None:
    every_run_draws_anew(monkeypatch)
    with pytest.raises(AssertionError):
        case(tmp_path)


def test_a_design_that_is_not_known_promises_nothing() -> None:
    """What an old release does not say is taken to be the worst."""
    assert Design(**Design.facts({})).seeded
    assert Design(**Design.facts({})).looked


def test_every_lemma_is_listed_and_its_test_is_there() -> None:
    """A lemma says which test enumerates it; a file in the folder that is not listed has no lemma for the docs."""
    here = Path(__file__).parents[2]
    files = {p.stem for p in (here / "src/maskwright/promise/lemmas").glob("*.py")} - {"__init__"}
    assert {lemma.proof.rpartition(".")[2] for lemma in LEMMAS.values()} == files
    for lemma in LEMMAS.values():
        file, _, test = lemma.checked_by.partition("::")
        assert (here / file).is_file(), lemma.name
        assert not test or f"def {test}(" in (here / file).read_text(encoding="utf-8"), lemma.name


def test_the_tests_that_lemmas_name_are_there() -> None:
    """A lemma says which test enumerates it."""
    here = Path(__file__).parents[2]
    sources = sorted((here / "src/maskwright/promise").rglob("*.py"))
    named = [
        word.strip('`",.:')
        for s in sources
        for word in s.read_text(encoding="utf-8").split()
        if "tests/" in word
    ]
    assert len(named) > 10
    for name in named:
        file, _, test = name.partition("::")
        assert (here / file).is_file(), name
        assert not test or f"def {test}(" in (here / file).read_text(encoding="utf-8"), name
