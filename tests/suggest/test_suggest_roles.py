"""Each rule that guesses a role: one column that it is for, and one that it must leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from maskwright.engines.base import Kind
from maskwright.suggest.hierarchy_guess import guess_hierarchy
from maskwright.suggest.profile import Facts, is_date, look_at
from maskwright.suggest.roles import Guess, guess_role
from maskwright.suggest.topics import identifier_topic, is_numbering, name_parts, name_topic
from tests.suggest.conftest import FakeEngine, fake_table

FEW = ["a", "b", "c", "d"] * 30


def facts(name: str, values: Sequence[Any], kind: Kind = "text") -> Facts:
    table = fake_table({name: values}, {name: kind})
    return look_at(FakeEngine(), table, table.columns[0], len(values))  # type: ignore[arg-type]


def guessed(name: str, values: Sequence[Any], kind: Kind = "text") -> Guess:
    return guess_role(facts(name, values, kind))


IDENTIFIERS = """
name Name patient_name PatientName full_name first_name firstname LastName surname Vorname Nachname nom prénom
Nom_de_famille apellidos nombre email E-Mail e_mail phone phone1 Telefon telefono mobile fax address street Straße
Hausnummer adresse dirección url ip_address iban IBAN Kontonummer ssn SSN social_security_number DNI Steuer-ID
passport driver_license Kennzeichen insurance_number Versichertennummer member_id mrn MRN patient_id PatientID id ID
Patienten-Nr KundenNr customer_number numero_paciente usubjid subject_id latitude lon photo username Fallnummer
""".split()  # noqa: SIM905 - names as they stand in files

QUASI_IDENTIFIERS = {
    "sex": ["sex", "Gender", "patient_sex", "Geschlecht", "sexe", "sexo", "género"],
    "ethnicity": ["race", "ethnicity", "Ethnic group", "Herkunft", "raza", "RAC1P", "HISP"],
    "marital-status": [
        "marital-status",
        "MaritalStatus",
        "Familienstand",
        "état civil",
        "estado_civil",
        "MARRIAGE",
    ],
    "education": ["education", "Schulabschluss", "diplôme", "educacion", "SCHL"],
    "occupation": [
        "occupation",
        "job_title",
        "Beruf",
        "Berufsgruppe",
        "métier",
        "workclass",
        "profesion",
        "OCCP",
    ],
    "country": ["country", "POBP", "native-country", "nationality", "Staatsangehörigkeit", "pays", "país"],
    "place": ["city", "County", "Wohnort", "ville", "municipio", "hospital", "PUMA"],
    "state": ["state", "region", "Bundesland", "provincia"],
    "language": ["language", "Muttersprache", "langue", "idioma"],
    "household": ["number_of_children", "Kinder", "enfants", "household"],
    "age": ["age", "age_group", "Alter", "edad", "age_at_diagnosis", "âge"],
    "body": ["height", "weight", "Größe", "Groesse", "Gewicht", "poids", "BMI", "birth_weight"],
    "postcode": ["zip", "ZIP Code", "postcode", "PLZ", "Postleitzahl", "code_postal"],
}

SENSITIVE = {
    "health": ["disease", "diagnosis", "primary_diagnosis", "Diagnose", "Hauptdiagnose", "icd10", "hiv_status"],
    "treatment": ["drug", "drug_name", "medication", "Medikament", "traitement", "procedure"],
    "result": ["test_result", "score", "lab_result", "Ergebnis", "resultado", "exam_grade"],
    "belief": ["religion", "Konfession"],
    "politics": ["party", "political_opinion", "Partei", "voted"],
    "money": ["income", "salary-class", "Einkommen", "Gehalt", "salaire", "ingresos", "PINCP"],
    "orientation": ["sexual_orientation"],
    "crime": ["conviction", "Vorstrafe"],
    "genetic": ["genotype"],
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_names_of_identifiers(name: str) -> None:
    found = guessed(name, FEW)
    assert found.role == "identifier", found
    assert "its name suggests" in found.reason


@pytest.mark.parametrize(("topic", "name"), [(t, n) for t, names in QUASI_IDENTIFIERS.items() for n in names])
def test_names_of_quasi_identifiers(topic: str, name: str) -> None:
    found = guessed(name, FEW)
    assert (found.role, found.topic) == ("quasi-identifier", topic)
    assert "its name suggests" in found.reason


@pytest.mark.parametrize(("topic", "name"), [(t, n) for t, names in SENSITIVE.items() for n in names])
def test_names_of_sensitive_columns(topic: str, name: str) -> None:
    found = guessed(name, FEW)
    assert (found.role, found.topic) == ("sensitive", topic)


@pytest.mark.parametrize(
    "name",
    ["country_name", "city_name", "drug_name", "sex_code", "number_of_visits", "nomad", "cell_count", "sin_hijos"],
)  # fmt: skip
def test_names_that_only_resemble_identifiers(name: str) -> None:
    assert identifier_topic(name) is None
    assert guessed(name, FEW).role != "identifier"


@pytest.mark.parametrize(
    ("values", "looks"),
    [
        ([f"p{i}@example.org" for i in range(40)], "e-mail"),
        ([f"https://example.org/{i}" for i in range(40)], "web"),
        ([f"10.0.0.{i}" for i in range(40)], "network"),
        ([f"00000000-0000-4000-8000-{i:012x}" for i in range(40)], "universally unique"),
        ([f"{i:032x}" for i in range(40)], "keys or hashes"),
        (
            [
                f"DE{98 - int(f'3704004405320130{i:02}131400') % 97:02}3704004405320130{i:02}"
                for i in range(40)
            ],
            "bank",
        ),
        ([f"123-45-{i:04}" for i in range(40)], "social security"),
        ([f"+49 351 1234{i:02}" for i in range(40)], "telephone"),
        ([f"(030) 1234-{i:02}" for i in range(40)], "telephone"),
    ],
)
def test_values_that_identify(values: list[str], looks: str) -> None:
    found = guessed("x", values * 3)
    assert found.role == "identifier"
    assert looks in found.reason


def test_values_that_identify_win_over_a_harmless_name() -> None:
    assert guessed("country", [f"p{i}@example.org" for i in range(40)] * 3).role == "identifier"


def test_near_unique_text_is_an_identifier() -> None:
    found = guessed("x", [f"v{i}" for i in range(100)])
    assert (found.role, found.topic) == ("identifier", None)
    assert "value of its own" in found.reason
    assert guessed("x", [f"v{i % 30}" for i in range(100)]).role == "quasi-identifier"


def test_near_unique_number_is_dropped_and_says_how_to_keep_it() -> None:
    found = guessed("x", [i * 1.5 for i in range(100)], "number")
    assert found.role == "identifier"
    assert "intervals" in found.reason


def test_numbering_is_dropped_unless_it_has_few_values() -> None:
    assert guessed("order_id", [i // 2 for i in range(200)]).role == "identifier"
    assert guessed("site_no", [i % 4 for i in range(200)]).role == "quasi-identifier"
    assert is_numbering("Rechnungsnr")
    assert not is_numbering("number_of_rooms")


@pytest.mark.parametrize(
    "values",
    [
        [f"2024-01-{i % 28 + 1:02}" for i in range(99)],
        [f"{i % 28 + 1:02}.03.1970" for i in range(99)],
        [f"{i % 12 + 1}/{i % 28 + 1}/1970" for i in range(99)],
        [f"2024-01-{i % 28 + 1:02} 12:30:00" for i in range(99)],
    ],
)
def test_dates_by_their_values(values: list[str]) -> None:
    assert guessed("x", values).topic == "date"
    assert guessed("Geburtsdatum", values).topic == "birth-date"
    assert guessed("test_date", values).role == "quasi-identifier"
    assert guessed("admission", values).role == "quasi-identifier"


@pytest.mark.parametrize("text", ["2024-02-30", "32.01.2020", "13/13/2020", "2024-1", "1.5", "20240131"])
def test_what_is_no_date(text: str) -> None:
    assert not is_date(text)


def test_a_date_column_needs_no_telling_values() -> None:
    assert guessed("x", [f"2024-01-{i % 28 + 1:02}" for i in range(99)], "date").topic == "date"


def test_years_and_postcodes_by_their_values() -> None:
    assert guessed("x", [1950 + i % 40 for i in range(200)]).topic == "year"
    assert guessed("x", [f"0{1000 + i % 40}" for i in range(200)]).topic == "postcode"
    assert guessed("x", [f"SW1A {i % 9}A{c}" for i in range(30) for c in "ABC"]).topic == "postcode"
    assert guessed("x", [f"M{i % 9} 1AE" for i in range(90)]).topic == "postcode"
    assert guessed("x", [100 + i % 40 for i in range(200)]).topic is None


def test_icd_codes_by_their_values() -> None:
    found = guessed("x", ["J10.1", "B20", "C34.9", "E11"] * 20)
    assert (found.role, found.topic) == ("sensitive", "health")


def test_free_text_is_dropped_whatever_it_is_about() -> None:
    sentences = [f"The patient reports that pain number {i} began some days ago at home" for i in range(60)]
    for name in ("x", "diagnosis", "occupation"):
        found = guessed(name, sentences)
        assert (found.role, found.topic) == ("identifier", "free-text")
    labels = [
        "A long label that is only a category all the same",
        "Another one of the same kind, also long",
    ] * 50
    assert guessed("x", labels).role == "quasi-identifier"


def test_unknown_columns_are_taken_for_something_an_attacker_knows() -> None:
    for values in (FEW, [1, 2, 3] * 20, ["true", "false"] * 20):
        found = guessed("x", values)
        assert (found.role, found.topic) == ("quasi-identifier", None)
        assert "attacker" in found.reason


def test_constants_and_empty_columns() -> None:
    assert guessed("x", ["a"] * 20).role == "insensitive"
    assert guessed("x", ["a"] * 19 + [None]).role == "quasi-identifier"  # who has none is told apart
    assert guessed("x", [None] * 20).role == "identifier"
    assert guessed("diagnosis", ["HIV"] * 20).role == "sensitive"


def test_missing_tokens_are_no_values() -> None:
    seen = facts("age", ["31", "32", "?", "NA", "N/A", "null", None])
    assert seen.tokens == ("?", "N/A", "NA", "null")
    assert (seen.distinct, seen.missing, seen.present) == (2, 5, 2)
    assert seen.numbers is not None


def test_na_among_two_letter_codes_is_namibia() -> None:
    seen = facts("country", ["NA", "DE", "FR", "GB", "US", "ES", "IT"] * 5)
    assert seen.tokens == ()
    assert seen.perhaps == ("NA",)


def test_words_that_may_mean_missing_stay_values() -> None:
    assert facts("job", ["unknown", "baker", "smith"] * 9).perhaps == ("unknown",)
    assert facts("weight", ["70", "80", "90", "999"] * 9).perhaps == ("999",)
    assert facts("weight", ["97", "98", "99", "100"] * 9).perhaps == ()
    assert facts("visits", ["-9", "0", "1", "2"] * 9).perhaps == ("-9",)


def test_numbers_with_a_few_texts_say_so_without_quoting_them() -> None:
    found = guessed("age", ["31", "32", "33", "secret"] * 9)
    assert found.role == "quasi-identifier"
    assert "1 of its values is no number" in found.notes[0]
    assert "secret" not in str(found)


def test_parts_of_names() -> None:
    assert name_parts("PatientID") == ("patient", "id")
    assert name_parts("Geburts-Datum_2") == ("geburts", "datum", "2")
    assert name_parts("Größe") == ("grosse",)
    assert name_parts("") == ()
    assert name_topic("") is None


def test_many_values_are_counted_without_listing_them() -> None:
    engine = FakeEngine()
    table = fake_table({"x": [str(i) for i in range(6000)] + [None]})
    seen = look_at(engine, table, table.columns[0], 6001)  # type: ignore[arg-type]
    assert (seen.distinct, seen.missing, seen.unique_rows, seen.complete) == (6000, 1, 6000, False)
    assert [call for call, _ in engine.calls] == ["domain", "uniqueness"]


def test_codes_of_an_account_are_no_diagnoses() -> None:
    found = guessed("status_of_existing_checking_account", ["A11", "A12", "A13", "A14"] * 50)
    assert (found.role, found.topic) == ("quasi-identifier", None)
    assert guessed("hauptgrund", ["A11", "C50", "E11", "I10"] * 50).role == "sensitive"
    assert guessed("grund", ["E11.9", "E11.0", "E10.1"] * 50).role == "sensitive"


def test_a_survey_weight_is_no_body_measure() -> None:
    for name in ("instance_weight", "fnlwgt", "Sample Weight", "PWGTP"):
        assert guessed(name, [str(1000 + i % 40) for i in range(400)]).topic == "survey-weight"
    assert guessed("weight", ["60", "70", "80"] * 30).topic == "body"


def test_a_year_ago_is_no_year() -> None:
    found = guessed("live_in_this_house_1_year_ago", ["Yes", "No", "Not in universe under 1 year old"] * 30)
    assert (found.role, found.topic) == ("quasi-identifier", None)
    assert guessed("weeks_worked_in_year", [str(i % 53) for i in range(500)]).topic is None
    assert guessed("year", ["94", "95"] * 40).topic is None
    assert guessed("year", ["1994", "1995"] * 40).topic == "year"


def test_names_of_the_accident_register() -> None:
    values = [str(i % 90) for i in range(400)]
    assert [guessed(n, values).topic for n in ("iage", "isex", "irace")] == ["age", "sex", "ethnicity"]


def test_a_telephone_of_two_values_is_none() -> None:
    assert guessed("telephone", ["yes", "none"] * 40).role == "quasi-identifier"
    assert guessed("telephone", [f"0{i}" for i in range(80)]).role == "identifier"


def test_the_number_of_a_thing_that_many_rows_share_points_to_nobody() -> None:
    """Items that thousands of visitors saw; but not the number of a person, and none that few rows share."""
    items = [1000 + i % 60 for i in range(60 * 50)]
    assert guessed("item_id", items, "integer").role == "quasi-identifier"
    assert guessed("item_id", items[:-1], "integer").role == "identifier"
    assert guessed("patient_id", items, "integer").role == "identifier"
    groups = guess_hierarchy(facts("item_id", [*items, *[1000] * 900], "integer"), "code", 11).hierarchy
    assert groups == "suppress" or "groups" in groups, "no intervals of numbers that are names"
