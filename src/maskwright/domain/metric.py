"""What a utility metric is: a plain function of a grouping, with the meaning of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from maskwright.domain.exact import number_text, percent_text
from maskwright.domain.grouping import Grouping, exact_view
from maskwright.domain.registry import load_plugin, plugin_entries
from maskwright.domain.settings import first_line

Weights = Mapping[str, Fraction]


@dataclass(frozen=True)
class Metric:
    """`function(grouping, weights)`; `meaning` says what the ends of its scale stand for.

    A metric of what the quasi-identifiers show reads nothing but their labels. One that reads sensitive values too
    (`reads="groups"`) takes a third argument: are the quasi-identifiers published as they are? Costly metrics are
    computed only where somebody asks for them (`on_request`). NaN: not defined for this release.
    """

    name: str
    function: Callable[..., Fraction | float | int]
    meaning: str
    better: Literal["low", "high"]
    reads: Literal["labels", "groups"] = "labels"
    on_request: bool = False

    def measure(self, grouping: Grouping, weights: Weights, exact: bool = False) -> Fraction | float | int:
        """Its value for a release; `exact`: quasi-identifiers are published as they are."""
        if self.reads == "groups":
            return self.function(grouping, weights, exact)
        return self.function(exact_view(grouping) if exact else grouping, weights)

    def summary_line(self) -> str:
        """The first line of the docstring of its function."""
        return first_line(self.function)


PERCENTAGES = ("information-loss", "granularity", "suppression")


def metric_text(name: str, value: Fraction | float) -> str:
    """The value of a metric for people: shares of the detail as percentages, others as numbers."""
    return percent_text(value) if name in PERCENTAGES else number_text(float(value))


class MetricRegistry(MutableMapping[str, Metric]):
    """Name → metric; those that installed packages offer are loaded when somebody looks."""

    def __init__(self, package: str, metrics: Iterable[Metric]) -> None:
        self._package = package
        self._metrics = {metric.name: metric for metric in metrics}

    def _all(self) -> dict[str, Metric]:
        for name in plugin_entries(self._package).keys() - self._metrics.keys():
            self._metrics[name] = load_plugin(plugin_entries(self._package)[name])
        return self._metrics

    def __getitem__(self, name: str) -> Metric:
        return self._all()[name]

    def __setitem__(self, name: str, metric: Metric) -> None:
        self._metrics[name] = metric

    def __delitem__(self, name: str) -> None:
        del self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
