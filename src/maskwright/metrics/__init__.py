"""Utility metrics: plain functions of a grouping. One file per family, one line here."""

from maskwright.core.metric import Metric
from maskwright.metrics.association import association_loss, information_exposure
from maskwright.metrics.classes import average_class_size, discernibility, suppression
from maskwright.metrics.distortion import sensitive_distortion
from maskwright.metrics.loss import arx_loss, granularity, information_loss, precision

METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("information-loss", information_loss, "0 = nothing lost, 1 = everything", better="low"),
        Metric("granularity", granularity, "1 = as detailed as the input, 0 = nothing left", better="high"),
        Metric("arx-loss", arx_loss, "0 = nothing lost, 1 = everything (ARX's score)", better="low"),
        Metric("precision", precision, "0 = level 0 everywhere, 1 = the top everywhere", better="low"),
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
        Metric(
            "sensitive-distortion", sensitive_distortion, "0 = every value is true, 1 = none is", better="low"
        ),
    )
}
