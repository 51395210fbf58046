"""What column names mean, in English, German, French and Spanish: a topic for each kind of column.

A word is matched against whole parts of a name ("patient_sex", "patientSex" and "Patient Sex" have the parts
*patient* and *sex*); a word that begins with ~ may stand anywhere inside (German compounds).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from maskwright.policy.policy import Role


@dataclass(frozen=True)
class Topic:
    """What a column is about.

    Attributes:
        key: a short name.
        role: the role such a column gets.
        what: the topic in words, for reasons ("looks like …").
        words: what to look for in a column's name.
    """

    key: str
    role: Role
    what: str
    words: str

    @cached_property
    def _pieces(self) -> list[tuple[str, ...]]:
        """The words that are matched against whole parts, each in its own parts."""
        return [tuple(word.split("_")) for word in self.words.split() if not word.startswith("~")]

    @cached_property
    def _compact(self) -> frozenset[str]:
        return frozenset(map("".join, self._pieces))

    @cached_property
    def _single(self) -> frozenset[str]:
        """Parts that are a word by themselves, or its plural."""
        words = {pieces[0] for pieces in self._pieces if len(pieces) == 1}
        return frozenset(words | {word + "s" for word in words if len(word) > 3})

    @cached_property
    def _inside(self) -> list[str]:
        return [word[1:] for word in self.words.split() if word.startswith("~")]

    def matches(self, parts: tuple[str, ...]) -> bool:
        """Whether the words of a column's name belong to the topic."""
        compact = "".join(parts)
        if compact in self._compact or compact.rstrip("0123456789") in self._compact:
            return True
        if any(part in self._single for part in parts) or any(word in compact for word in self._inside):
            return True
        return any(_in_a_row(pieces, parts) for pieces in self._pieces if len(pieces) > 1)


def name_parts(column: str) -> tuple[str, ...]:
    """The words of a column name, lower case, without accents: "GeburtsDatum_2" → geburts, datum, 2."""
    text = re.sub(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])", " ", column)
    text = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return tuple(re.findall(r"[^\W\d_]+|\d+", text))


def _in_a_row(pieces: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    starts = range(len(parts) - len(pieces) + 1)
    return any(all(_same(p, q) for p, q in zip(pieces, parts[i:], strict=False)) for i in starts)


def _same(word: str, part: str) -> bool:
    return part == word or (len(word) > 3 and part == word + "s")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Somebody whom a record can be about: "name", "id" or "number" next to one of these identifies a person.
PERSON = _words(
    "person patient patients patienten subject participant proband probanden client customer kunde "
    "kunden employee mitarbeiter user member mitglied student schuler pupil teacher doctor arzt "
    "physician mother father mutter vater parent child spouse partner contact emergency insured "
    "versicherten versicherter full first last given family middle maiden sur fore nick birth display "
    "complete completo de d famille usage apellido paciente cliente empleado usuario personne "
    "individu individual personal pers nom prenom my"
)
NAME_WORDS = _words("name names namen nom noms nombre nombres")
ID_WORDS = _words("id ids uuid guid key nr no num number nummer numero identifier identifiant kennung")
UNIT_KEYS = frozenset({"person-number", "record-number"})

# Checked first, and whatever the values look like (unless they look like something else that identifies).
IDENTIFIERS = (
    Topic(
        "name", "identifier", "a person's name",
        "surname forename firstname lastname fullname first_name last_name given_name family_name "
        "maiden_name middle_name nickname initials vorname nachname familienname geburtsname rufname "
        "prenom nom_famille nom_de_famille apellido apellidos nombre_completo primer_apellido "
        "segundo_apellido ~nachname ~vorname",
    ),
    Topic(
        "email", "identifier", "an e-mail address",
        "email e_mail mail courriel correo ~email ~mailadresse",
    ),
    Topic(
        "phone", "identifier", "a telephone or fax number",
        "phone telephone telefon tel mobile cell_phone handy fax telefax telefono movil portable ~telefon "
        "~phonen ~mobilnummer ~handynummer",
    ),
    Topic(
        "address", "identifier", "an address",
        "address addr street strasse adresse anschrift hausnummer house_number rue calle direccion "
        "domicilio ~strasse ~anschrift ~adresse",
    ),
    Topic(
        "coordinates", "identifier", "a position on the map",
        "lat latitude lon lng longitude latitud longitud breitengrad langengrad gps geocode coordinates "
        "coordinate koordinaten",
    ),
    Topic(
        "network", "identifier", "a network or device address",
        "url website homepage ip ip_address ipv mac_address imei device_id device_serial serial_number "
        "seriennummer cookie session_id user_agent",
    ),
    Topic(
        "account", "identifier", "an account or card",
        "iban bic account_number account_no account_id kontonummer konto card_number credit_card "
        "kreditkarte compte_bancaire numero_compte cuenta tarjeta username user_name login handle twitter "
        "instagram password passwort benutzername",
    ),
    Topic(
        "official-number", "identifier", "an official number of a person",
        "ssn nin social_security nss nir dni nif cpf curp bsn pesel ahv avs tax_id taxid steuer_id "
        "~steuernummer ~steuerid ~sozialversicherung nhs_number passport reisepass passeport pasaporte "
        "ausweis ~ausweisnummer driver_license drivers_license driver_licence license_number "
        "licence_number fuhrerschein certificate_number license_plate licence_plate number_plate plate "
        "kennzeichen ~kfzkennzeichen vin matricula immatriculation national_id cedula securite_sociale "
        "seguridad_social",
    ),
    Topic(
        "insurance-number", "identifier", "an insurance or membership number",
        "~versichertennummer ~versichertennr ~versicherungsnummer ~krankenkassennummer insurance_number "
        "insurance_id policy_number policy_id health_plan member_id membership_number beneficiary "
        "beneficiary_id numero_assure numero_afiliado",
    ),
    Topic(
        "record-number", "identifier", "the number of a person's record",
        "mrn medical_record record_number chart_number usubjid subjid pseudonym pseudonyme pid patid empi "
        "nhc historia_clinica dossier numero_dossier patientenakte",
    ),
    Topic(
        "case-number", "identifier", "the number of a case or stay",
        "fallnummer fallnr aktenzeichen aktennummer case_id case_number encounter_id visit_id stay_id "
        "admission_id record_id",
    ),
    Topic(
        "survey-weight", "identifier", "a survey weight (the policy's `weight` may name it)",
        "fnlwgt pweight perwt instance_weight sample_weight sampling_weight survey_weight person_weight final_weight "
        "replicate_weight design_weight weighting hochrechnungsfaktor",
    ),
    Topic(
        "biometric", "identifier", "a biometric feature or image",
        "photo foto image picture fingerprint face voice_print biometric biometrie portrait",
    ),
)  # fmt: skip

FREE_TEXT = Topic(
    "free-text", "identifier", "free text",
    "comment comments note notes remark remarks freetext free_text description kommentar bemerkung "
    "bemerkungen "
    "anmerkung anmerkungen freitext notiz commentaire remarque observaciones comentario nota notas narrative",
)  # fmt: skip

# Then these, in this order: the first that matches decides.
TOPICS = (
    Topic(
        "birth-date", "quasi-identifier", "a date of birth",
        "dob born birth_date birthdate date_of_birth birthday bday ~geburtsdat ~geburtstag gebdat gebdatum "
        "geb_datum date_naissance date_de_naissance naissance fecha_nacimiento fecha_de_nacimiento "
        "nacimiento",
    ),
    Topic(
        "birth-year", "quasi-identifier", "a year of birth",
        "yob birth_year year_of_birth ~geburtsjahr gebjahr annee_naissance annee_de_naissance "
        "ano_nacimiento ano_de_nacimiento",
    ),
    Topic(
        "age", "quasi-identifier", "an age",
        "age iage agep alter lebensalter edad ~altersgruppe",
    ),
    Topic(
        "orientation", "sensitive", "sex life or sexual orientation",
        "sexual_orientation orientation sexuality sexualitat orientacion_sexual orientation_sexuelle",
    ),
    Topic(
        "health", "sensitive", "health",
        "disease diseases illness sickness diagnosis diagnoses diagnose diagnosen dx icd condition "
        "conditions comorbidity symptom symptoms hiv aids cancer tumor tumour health krankheit erkrankung "
        "befund maladie sante diagnostic pathology pathologie patologia enfermedad diagnostico salud "
        "disability behinderung handicap "
        "pregnant pregnancy schwanger mental psychiatric depression infection infektion injury iinjury verletzung "
        "outcome complication allergy allergie covid diabetes ~diagnos ~krankheit ~erkrankung ~symptom",
    ),
    Topic(
        "treatment", "sensitive", "treatment",
        "treatment therapy therapie behandlung drug drugs medication medications medicine prescription "
        "medikament medikamente arznei arzneimittel wirkstoff medicament traitement medicamento "
        "tratamiento procedure surgery operation ops dose dosis vaccine vaccination ~medikament "
        "~behandlung",
    ),
    Topic(
        "result", "sensitive", "a result or score",
        "result results test tests lab labs score scores ergebnis resultat resultado prueba grade grades "
        "rating zensur blood_pressure cholesterol glucose creatinine hba hemoglobin biomarker ~laborwert "
        "~blutdruck",
    ),
    Topic(
        "genetic", "sensitive", "genetic data",
        "dna genetic genotype genome gene mutation snp allele genetik",
    ),
    Topic(
        "belief", "sensitive", "religion or belief",
        "religion religious konfession glaube faith church kirche croyance creencia denomination",
    ),
    Topic(
        "politics", "sensitive", "political opinion or union membership",
        "politics political party partei vote voted voting parti partido voto union_member trade_union "
        "gewerkschaft syndicat sindicato politik",
    ),
    Topic(
        "crime", "sensitive", "offences",
        "crime criminal conviction convicted offence offense arrest vorstrafe straftat delit delito "
        "infraction prison",
    ),
    Topic(
        "money", "sensitive", "income or wealth",
        "income salary salaries wage wages earnings pay einkommen gehalt lohn vermogen revenu revenus "
        "salaire ingreso ingresos salario sueldo debt loan balance wealth assets credit_score charges "
        "capital_gain capital_loss umsatz schulden",
    ),
    Topic(
        "postcode", "quasi-identifier", "a postcode",
        "zip zipcode zip_code postcode post_code postal_code postal plz ~postleitzahl code_postal cp "
        "codigo_postal",
    ),
    Topic(
        "sex", "quasi-identifier", "sex or gender",
        "sex isex gender geschlecht sexe genre sexo genero ~geschlecht",
    ),
    Topic(
        "ethnicity", "quasi-identifier", "race or ethnicity",
        "race irace ihispanic ethnicity ethnic ethnic_group hispanic ethnie origine raza etnia herkunft ancestry tribe "
        "skin_color skin_colour",
    ),
    Topic(
        "marital-status", "quasi-identifier", "marital status",
        "marital marital_status civil_status familienstand etat_civil situation_familiale estado_civil "
        "relationship "
        "~familienstand",
    ),
    Topic(
        "education", "quasi-identifier", "education",
        "education educational degree school schooling qualification bildung bildungsabschluss "
        "schulabschluss abschluss etudes diplome educacion estudios formation escolaridad ~bildung "
        "~schulabschluss",
    ),
    Topic(
        "occupation", "quasi-identifier", "occupation",
        "occupation job job_title profession beruf tatigkeit metier ocupacion profesion employment "
        "employer workclass work_class industry branche arbeitgeber empleo emploi department abteilung "
        "rank trabajo puesto ~beruf isco soc nace naics",
    ),
    Topic(
        "country", "quasi-identifier", "country or nationality",
        "country nation nationality citizenship birthplace place_of_birth land pays nationalite pais "
        "nacionalidad ~staatsangehorigkeit ~staatsangehoerigkeit nationalitat geburtsort geburtsland "
        "lieu_naissance ~country",
    ),
    Topic(
        "place", "quasi-identifier", "a place smaller than a state",
        "city town village municipality county district borough neighborhood neighbourhood ward precinct "
        "parish census_tract tract stadt ort wohnort gemeinde kreis landkreis bezirk ville commune "
        "arrondissement quartier ciudad municipio localidad barrio comuna hospital clinic klinik "
        "krankenhaus site centre center facility location ~wohnort ~krankenhaus",
    ),
    Topic(
        "state", "quasi-identifier", "a state or region",
        "state istatenum region province bundesland kanton canton departement provincia estado prefecture "
        "~bundesland",
    ),
    Topic(
        "language", "quasi-identifier", "language",
        "language languages sprache muttersprache langue idioma lengua mother_tongue",
    ),
    Topic(
        "household", "quasi-identifier", "household",
        "household children kids dependents dependants siblings kinder haushalt kinderzahl enfants hijos "
        "hogar menage family_size housing vehicles cars ~haushaltsgr",
    ),
    Topic(
        "body", "quasi-identifier", "a body measure",
        "height weight bmi stature korpergrosse grosse groesse gewicht korpergewicht taille poids altura "
        "talla peso shoe_size eye_color eye_colour hair_color hair_colour ~korpergr",
    ),
    Topic(
        "year", "quasi-identifier", "a year",
        "year jahr annee ano yr",
    ),
    Topic(
        "date", "quasi-identifier", "a date",
        "date datum fecha day timestamp admission discharge admitted discharged aufnahme entlassung death "
        "visit ~datum ~aufnahme ~entlassung",
    ),
)  # fmt: skip


def name_topic(column: str, topics: tuple[Topic, ...] = TOPICS) -> Topic | None:
    """The first topic that a column's name speaks of."""
    parts = name_parts(column)
    return next((topic for topic in topics if parts and topic.matches(parts)), None)


def identifier_topic(column: str) -> Topic | None:
    """The identifier that a column's name speaks of, "name" and "patient number" included."""
    parts = name_parts(column)
    words = [p for p in parts if not p.isdigit()]
    rest = set(words) - PERSON
    if set(words) & NAME_WORDS and not rest - NAME_WORDS:
        return IDENTIFIERS[0]
    found = name_topic(column, IDENTIFIERS)
    if found is not None:
        return found
    if _number_of_a_person(words, rest):
        return Topic("person-number", "identifier", "the number of a person", "")
    return None


def _number_of_a_person(words: list[str], rest: set[str]) -> bool:
    if set(words) & ID_WORDS and not rest - ID_WORDS and "of" not in words:
        return True
    ending = re.fullmatch(r"(.+?)(?:en|n|s)?(?:nummer|nr|id)", "".join(words))
    return bool(ending and ending[1] in PERSON)


def is_numbering(column: str) -> bool:
    """Does the name end or begin like a number that is given to things ("order_id", "Rechnungsnr")?"""
    words = [p for p in name_parts(column) if not p.isdigit()]
    if not words or "of" in words:
        return False
    return words[-1] in ID_WORDS or words[0] in {"id", "uuid"} or bool(re.search(r"(nummer|nr)$", words[-1]))
