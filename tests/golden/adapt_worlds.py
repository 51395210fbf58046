"""Possible worlds: the attacks on known methods, MASK, formulas, joins and COUNT queries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from maskwright.worlds.counting.credibility import credibility_global, credibility_local, vector_table
from maskwright.worlds.counting.general_credibility import Group, credibility_general
from maskwright.worlds.counting.group_beliefs import even_split_beliefs as after_refusal
from maskwright.worlds.counting.group_beliefs import greedy_group, greedy_group_of_values, randomised_group
from maskwright.worlds.counting.mask_worlds import mask_plan as plan_mask
from maskwright.worlds.counting.mask_worlds import mask_posterior as after_mask
from maskwright.worlds.counting.multisets import Counts, Test, memoised_test
from maskwright.worlds.reference_methods import (
    ReferenceMondrian,
    anatomy_publications,
    count_actual,
    count_estimate,
    first_row_anatomy,
    global_recoding,
    greedy_grouping,
    randomised_greedy,
    relative_error,
    symmetric_grouping,
)
from maskwright.worlds.reference_methods import anatomy_counts as count_anatomy
from maskwright.worlds.sampling.possible_worlds import Likelihood, as_publication, deterministic_likelihood
from maskwright.worlds.sampling.possible_worlds import posterior_beliefs as enumerate_worlds
from maskwright.worlds.statements.fact_beliefs import (
    ClassedRelease,
    belief_given_facts,
    implication_fact,
    joint_of_different_attributes,
    joint_of_same_attribute,
    negation_fact,
)
from maskwright.worlds.statements.fact_beliefs import matching_shares as join

Case = dict[str, Any]


def _models() -> Any:
    """The adapter of privacy models, which lies beside this file and belongs to no package."""
    path = Path(__file__).parent / "adapt_models.py"
    spec = importlib.util.spec_from_file_location("golden_models_for_worlds", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODELS = _models()


def requirement(model: Case, whole_table: Sequence[Any]) -> Test:
    """The product's model as a test on the counts of one class; what it compares with is the whole table."""
    built = MODELS.build_model(model)
    everything = MODELS.count({"s": [list(whole_table)]}, {"s": model.get("domain")})
    context = MODELS.context_of(everything, model)
    domain = model.get("domain") or sorted(set(whole_table))

    def passes(counts: Counts) -> bool:
        values = [value for value, c in counts.items() for _ in range(c)]
        return bool(built.check(MODELS.count({"s": [values]}, {"s": domain}), context).ok)

    return memoised_test(passes)


def run_algorithm(case: Case) -> Case:
    groups = _grouping(case)(case["sa"])
    found = sorted(sorted(group) for group in groups)
    grouped = {i for group in found for i in group}
    return {"groups": found, "dropped": [i for i in range(len(case["sa"])) if i not in grouped]}


def _grouping(case: Case) -> Callable[[Sequence[Any]], list[list[int]]]:
    """The deterministic algorithm of a case, as a function of the sensitive values."""
    algorithm, qi = case["algorithm"], case["qi"]
    passes = requirement(algorithm["model"], case["sa"])
    least = algorithm.get("min_child") or 0
    match algorithm["name"]:
        case "gg":
            return lambda sa: greedy_grouping(qi, sa, passes, int(algorithm["l"]))
        case "gg_rowwise":
            return lambda sa: greedy_grouping(qi, sa, passes)
        case "sg":
            return lambda sa: symmetric_grouping(qi, sa, passes, least)
        case "mondrian":
            policy, side = algorithm.get("policy") or "fallback", algorithm.get("side") or "lt"
            mondrian = ReferenceMondrian(algorithm["strict"], policy, side, least)
            return lambda sa: mondrian.group(qi, sa, passes)
        case "global_recoding":
            return lambda sa: global_recoding(qi, sa, passes)
    raise KeyError(algorithm["name"])


def _likelihood(case: Case) -> Likelihood:
    algorithm = case["algorithm"]
    match algorithm["name"]:
        case "rgg":
            passes, size = requirement(algorithm["model"], case["sa"]), int(algorithm["l"])
            p, qi = Fraction(algorithm["p"]), case["qi"]
            return lambda sa, seen: randomised_greedy(qi, sa, passes, size, p, seen).get(seen, 0)
        case "anatomy" if algorithm.get("deterministic"):
            return lambda sa, seen: int(
                as_publication(first_row_anatomy(sa, int(algorithm["l"])) or ()) == seen
            )
        case "anatomy":
            return lambda sa, seen: anatomy_publications(sa, int(algorithm["l"]), seen).get(seen, 0)
    return deterministic_likelihood(_grouping(case))


def posterior(case: Case) -> Case:
    found = enumerate_worlds(case["sa"], case["published"], _likelihood(case))
    return {"worlds": found.worlds, "consistent": found.consistent, "posterior": found.beliefs}


def anatomy_counts(case: Case) -> Case:
    groups, residual = count_anatomy(case["freqs"], int(case["l"]))
    return {"groups": groups, "residual": residual}


def gg_pb(case: Case) -> Case:
    found = greedy_group(case["l"], case["m"])
    return {"p": found.beliefs, "l_times_p1": case["l"] * found.beliefs[0], "N_k": found.first_bucket}


def rgg_pb(case: Case) -> list[Fraction] | None:
    return randomised_group(case["l"], case["m"], case["r"], Fraction(case["p"]))


def gg_simple_pb(case: Case) -> list[list[Fraction]] | None:
    return greedy_group_of_values(case["counts"], case["l"], case["m"])


def even_split(case: Case) -> list[Fraction] | None:
    return after_refusal(case["sizes"], case["r"], Fraction(case["l"]))


def wong_global(case: Case) -> Case:
    ell = Fraction(case["l"])
    table = vector_table(case["sizes"], case["ns"], ell)
    found = credibility_global(case["sizes"], case["ns"], ell, exact=True)
    return {
        "table": table,
        "total": sum(weight for _, weight in table),
        "credibility": None if found is None else found.values,
    }


def wong_local(case: Case) -> list[Fraction] | None:
    found = credibility_local(
        case["n"], case["n_u"], case["n_us"], case["ns_g"], Fraction(case["l"]), exact=True
    )
    return None if found is None else list(found.values)


def wong_multi(case: Case) -> Case | None:
    groups = [Group(group["members"], group["values"]) for group in case["groups"]]
    values = [value for group in groups for value in group.values]
    found = credibility_general(groups, requirement(case["model"], values), bool(case.get("strict")))
    return (
        None if found is None else {name: {str(v): p for v, p in row.items()} for name, row in found.items()}
    )


def mask_plan(case: Case) -> Case:
    inside = set(case["s"])
    sensitive = [sum(value in inside for value in values) for values in case["classes"]]
    found = plan_mask([len(values) for values in case["classes"]], sensitive, Fraction(case["l"]))
    return {
        "V": found.violating,
        "L": found.models,
        "u": found.wanted,
        "D": found.shares,
        "targets": found.targets,
    }


def mask_posterior(case: Case) -> list[Fraction] | None:
    return after_mask(case["sizes"], case["observed"], Fraction(case["l"]), Fraction(case["theta"]))


def _atom(atom: Any) -> tuple[tuple[int, int], Any]:
    (bucket, position), value = atom
    return (bucket, position), value


def given_formula(case: Case) -> Fraction | None:
    knowledge = [
        negation_fact(_atom(one["not"])) if isinstance(one, dict)
        else implication_fact([_atom(a) for a in one[0]], [_atom(a) for a in one[1]])
        for one in case["implications"]
    ]  # fmt: skip
    return belief_given_facts(case["buckets"], knowledge, _atom(case["target"]))


def background_join(case: Case) -> Case | None:
    known = {int(attribute): value for attribute, value in case["known"].items()}
    return join(case["rows"], case["members"], known, int(case["target"]))


def joint_release(case: Case) -> Case | None:
    releases = [ClassedRelease(release["classes"], release["values"]) for release in case["releases"]]
    if not case["disjoint"]:
        return joint_of_same_attribute(releases, case["person"])
    found = joint_of_different_attributes(releases, case["person"])
    return {" | ".join(map(str, values)): p for values, p in found.items()}


def count_query(case: Case) -> Case:
    predicate = {int(a): allowed for a, allowed in case["qi_pred"].items()}
    groups = [(group["qi"], group["sa"]) for group in case["groups"]]
    estimate = count_estimate(groups, predicate, case["sa_set"])
    if case.get("rows") is None:
        return {"estimate": estimate}
    actual = count_actual([(qi, value) for qi, value in case["rows"]], predicate, case["sa_set"])
    return {"estimate": estimate, "actual": actual, "relative_error": relative_error(estimate, actual)}


FUNCTIONS = {
    "run_algorithm": run_algorithm,
    "posterior": posterior,
    "anatomy_counts": anatomy_counts,
    "gg_pb": gg_pb,
    "rgg_pb": rgg_pb,
    "gg_simple_pb": gg_simple_pb,
    "even_split": even_split,
    "wong_global": wong_global,
    "wong_local": wong_local,
    "wong_multi": wong_multi,
    "mask_plan": mask_plan,
    "mask_posterior": mask_posterior,
    "given_formula": given_formula,
    "background_join": background_join,
    "joint_release": joint_release,
    "count_query": count_query,
}
