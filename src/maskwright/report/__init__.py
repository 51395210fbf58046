"""Results as self-contained HTML: the private report and the public data card."""

from maskwright.report.card import write_data_card
from maskwright.report.report import write_report

__all__ = ["write_data_card", "write_report"]
