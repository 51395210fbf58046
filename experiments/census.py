"""Census-Income as the CODIP paper uses it: 98,839 rows, 4 quasi-identifiers, 15 sensitive attributes."""

from __future__ import annotations

from typing import Any

from experiments.common import HERE

CENSUS = HERE / "data" / "census_income.parquet"
ROWS = 98_839
NATIVE = ["Native- Born in the United States", "Native- Born abroad of American Parent(s)",
          "Native- Born in Puerto Rico or U S Outlying"]  # fmt: skip
FOREIGN = ["Foreign born- Not a citizen of U S", "Foreign born- U S citizen by naturalization"]
OTHER = ["Asian or Pacific Islander", "Other", "Amer Indian Aleut or Eskimo"]
QUASI: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "race": {
        "role": "quasi-identifier",
        "hierarchy": {"groups": [[["White"], ["Black"], OTHER], [["White"], ["Black", *OTHER]]]},
    },
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "citizenship": {"role": "quasi-identifier", "hierarchy": {"groups": [NATIVE, FOREIGN]}},
}
SINGLE = ("worker_class", "education", "industry", "employment", "business", "income", "occupation", "wage",
          "dividends", "gains", "losses")  # fmt: skip
COLUMNS: dict[str, Any] = {
    **QUASI,
    **dict.fromkeys(SINGLE, "sensitive"),
    "household": {"role": "sensitive", "multivalued": ";"},
}
