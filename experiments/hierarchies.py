"""The taxonomies of Adult in Minimality attack [Wong et al. 2007], reconstructed: only their heights are printed.

Table 12 of the paper states distinct values and height: age 74/4 (ranges of 5, 10 and 20 years), work class 7/3,
marital status 7/3, occupation 14/2, race 5/2, sex 2/1, native country 41/3, salary class 2/1, education 16/4. Which
values share a node is not printed; the nodes below are ours.
"""

from __future__ import annotations

from typing import Any

WHITE_COLLAR = ["Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"]
BLUE_COLLAR = [
    "Craft-repair",
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Transport-moving",
]
SERVICE = ["Armed-Forces", "Other-service", "Priv-house-serv", "Protective-serv"]
OTHER_RACES = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other"]
SELF, GOVERNMENT = ["Self-emp-inc", "Self-emp-not-inc"], ["Federal-gov", "Local-gov", "State-gov"]
TOGETHER, APART = (
    ["Married-AF-spouse", "Married-civ-spouse"],
    ["Divorced", "Married-spouse-absent", "Separated"],
)
REGIONS = {
    "America": {
        "North America": ["Canada", "Outlying-US(Guam-USVI-etc)", "United-States"],
        "Central America": ["El-Salvador", "Guatemala", "Honduras", "Mexico", "Nicaragua"],
        "Caribbean": ["Cuba", "Dominican-Republic", "Haiti", "Jamaica", "Puerto-Rico", "Trinadad&Tobago"],
        "South America": ["Columbia", "Ecuador", "Peru"],
    },
    "Europe": {
        "Western Europe": ["England", "France", "Germany", "Holand-Netherlands", "Ireland", "Scotland"],
        "Southern and Eastern Europe": ["Greece", "Hungary", "Italy", "Poland", "Portugal", "Yugoslavia"],
    },
    "Asia": {
        "East Asia": ["China", "Hong", "Japan", "South", "Taiwan"],
        "South and West Asia": ["India", "Iran"],
        "South-East Asia": ["Cambodia", "Laos", "Philippines", "Thailand", "Vietnam"],
    },
}
SENSITIVE = ("Preschool", "1st-4th", "5th-6th", "7th-8th")  # 1,566 of 45,222 rows, as printed
SCHOOLING = {
    "no college": {
        "primary school": {"up to 4th": ["Preschool", "1st-4th"], "5th to 8th": ["5th-6th", "7th-8th"]},
        "secondary school": {
            "9th-10th": ["9th", "10th"], "11th-12th": ["11th", "12th"], "graduate": ["HS-grad"],
        },
    },
    "college": {
        "undergraduate": {"some college": ["Some-college", "Assoc-acdm", "Assoc-voc"], "bachelor": ["Bachelors"]},
        "higher": {"higher degree": ["Masters", "Doctorate"], "professional school": ["Prof-school"]},
    },
}  # fmt: skip
HIERARCHIES: dict[str, Any] = {
    "age": {"intervals": [5, 10, 20]},
    "workclass": {
        "tree": {
            "paid": {"private": ["Private"], "self-employed": SELF, "government": GOVERNMENT},
            "unpaid": {"without pay": ["Without-pay"]},
        }
    },
    "marital-status": {
        "tree": {
            "has married": {"with spouse": TOGETHER, "without spouse": APART, "widow": ["Widowed"]},
            "never": {"never married": ["Never-married"]},
        }
    },
    "occupation": {"tree": {"white collar": WHITE_COLLAR, "blue collar": BLUE_COLLAR, "services": SERVICE}},
    "race": {"tree": {"white": ["White"], "other races": OTHER_RACES}},
    "sex": "suppress",
    "native-country": {"tree": REGIONS},
    "salary-class": "suppress",
}
QUASI = tuple(HIERARCHIES)  # in the order in which the paper adds attributes


def columns(size: int) -> dict[str, Any]:
    """The policy's columns for the first so many quasi-identifiers, with education as the sensitive one."""
    quasi = {name: {"role": "quasi-identifier", "hierarchy": HIERARCHIES[name]} for name in QUASI[:size]}
    return {**quasi, "education": {"role": "sensitive", "hierarchy": {"tree": SCHOOLING}}}


def at_most_one_in(m: int) -> dict[str, Any]:
    """At most one row in m of a class may have one of the sensitive values."""
    return {"model": "simple-l-diversity", "l": m, "attribute": "education", "sets": [list(SENSITIVE)]}
