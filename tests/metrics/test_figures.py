"""The figures that the docs page quotes for the Adult table are those that the metrics give."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.metrics import METRICS
from maskwright.metrics.queries import Workload, query_errors
from tests.support import ADULT

PAGE = (Path(__file__).parents[2] / "docs" / "metrics" / "README.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    text = PAGE.split(f"## {name}\n")[1].split("\n## ")[0]
    return " ".join(text.split("Example")[1].split())


@cache
def release(method: str) -> Any:
    policy = mw.Policy.load(ADULT / "policy.yaml")
    values: dict[str, Any] = policy.to_dict()
    values["columns"]["occupation"] = "sensitive"
    for column in values["columns"].values():
        if isinstance(column, dict):
            column["hierarchy"]["file"] = str(ADULT / column["hierarchy"]["file"])
    options = {"suppression": "2%"} if method == "optimal-lattice" else {}
    values["method"] = {"name": method, **options}
    values["require"] = [{"model": "k-anonymity", "k": 5}]
    if method == "anatomy":
        values["require"].append({"model": "simple-l-diversity", "l": 5})
        values["recoding"] = "bucketize"
    return mw.anonymize(ADULT / "adult.csv", values, seed=1)


@pytest.mark.parametrize(
    ("method", "query", "correlation", "prediction"),
    [
        ("optimal-lattice", ("3.75", "0.520"), "0.084", "0.81"),
        ("mondrian", ("0.29", "0.067"), "0.022", "0.99"),
        ("anatomy", ("0.16", "0.098"), None, "0.67"),
    ],
)
def test_the_figures_of_the_page(
    method: str, query: tuple[str, str], correlation: str | None, prediction: str
) -> None:
    made, exact = release(method), method == "anatomy"
    found = query_errors(made.grouping, Workload(queries=10_000), exact)
    assert (f"{found.mean:.2f}", f"{found.median:.3f}") == query
    assert all(figure in section("query-error") for figure in query)
    if correlation:
        assert f"{METRICS['correlation-change'].measure(made.grouping, {}, exact):.3f}" == correlation
        assert correlation in section("correlation-change")
    assert f"{METRICS['predictive-utility'].measure(made.grouping, {}, exact):.2f}" == prediction
    assert prediction in section("predictive-utility")
