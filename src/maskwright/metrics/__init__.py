"""Utility metrics: plain functions of a grouping. One file per family, one line here."""

from maskwright.domain.metric import Metric, MetricRegistry
from maskwright.metrics.distributions import (
    correlation_change,
    distribution_distance,
    earth_movers_distance,
    sensitive_distortion,
    two_way_distance,
)
from maskwright.metrics.loss import (
    arx_loss,
    association_loss,
    average_class_size,
    discernibility,
    granularity,
    information_exposure,
    information_loss,
    non_uniform_entropy,
    precision,
    suppression,
)
from maskwright.metrics.prediction import predictive_utility
from maskwright.metrics.queries import query_error

METRICS = MetricRegistry(
    __name__,
    (
        Metric("information-loss", information_loss, "0 = nothing lost, 1 = everything", better="low"),
        Metric("granularity", granularity, "1 = as detailed as the input, 0 = nothing left", better="high"),
        Metric("arx-loss", arx_loss, "0 = nothing lost, 1 = everything (ARX's score)", better="low"),
        Metric("precision", precision, "0 = level 0 everywhere, 1 = the top everywhere", better="low"),
        Metric("non-uniform-entropy", non_uniform_entropy, "bits; 0 = nothing lost", better="low"),
        Metric(
            "discernibility", discernibility, "sum of squared class sizes; rows² is the worst", better="low"
        ),
        Metric("average-class-size", average_class_size, "rows per class", better="low"),
        Metric(
            "association-loss",
            association_loss,
            "0 = one table, 1 = every attribute on its own",
            better="low",
        ),
        Metric(
            "information-exposure",
            information_exposure,
            "0 = every attribute on its own, 1 = one table",
            better="low",
        ),
        Metric("suppression", suppression, "share of rows without quasi-identifiers", better="low"),
        Metric("distribution-distance", distribution_distance, "0 = the same, 1 = disjoint", "low", "groups"),
        Metric("earth-movers-distance", earth_movers_distance, "0 = the same, 1 = farthest", "low", "groups"),
        Metric("correlation-change", correlation_change, "0 = the same, 1 = most", "low", "groups", True),
        Metric("two-way-distance", two_way_distance, "0 = the same, 1 = disjoint", "low", "groups", True),
        Metric(
            "query-error", query_error, "0 = every answer is right, 1 = off by 100 %", "low", "groups", True
        ),
        Metric(
            "predictive-utility", predictive_utility, "1 = as good as the original", "high", "groups", True
        ),
        Metric(
            "sensitive-distortion", sensitive_distortion, "0 = every value is true, 1 = none is", better="low"
        ),
    ),
)
