"""The ten words that a data steward meets; docs/glossary.md says the same, and a test compares the two."""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "identifier": "a column that names a person: name, record number, e-mail. It is never published.",
    "quasi-identifier": "a column that somebody else could know about a person: age, postcode, occupation. Together "
    "they single people out, so they are coarsened.",
    "sensitive": "a column that nobody should learn about a person: diagnosis, income. It is published, and what can "
    "be believed about it is bounded.",
    "class": "the rows that look alike in all published quasi-identifiers. Whoever looks for a person finds the class, "
    "not the row.",
    "k": "the least number of people in a class. With k = 11 nobody is found with more than a chance of 1 in 11.",
    "l": "with simple l-diversity no sensitive value is held by more than one in l people of a class.",
    "hierarchy": "the ways in which a column may be coarsened: 37 → 35-39 → 30-39 → *.",
    "information loss": "what is lost of the detail of the quasi-identifiers: 0 % is the table as it was, 100 % is * "
    "everywhere.",
    "belief": "how sure somebody can be that a person has a value, after all that the release, the method and known "
    "facts tell.",
    "guaranteed, measured": "guaranteed: proven for the settings before any row was read. measured: what the attacks "
    "found on this release. A look at the outcome of other settings makes the first into the second.",
}
