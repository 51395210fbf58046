"""A corpus of columns: every kind of direct identifier in several formats, and decoys that only resemble them.

Check digits are computed here from their published rules, not with the library that the product uses; names of people
are a list of our own, not the product's.
"""

from __future__ import annotations

import hashlib
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

ROWS = 60
Maker = Callable[[Random], str]


def _word_list(text: str) -> list[str]:
    return text.split()


@dataclass(frozen=True)
class CorpusColumn:
    """Values with the kind that they are of; None: a decoy."""

    kind: str | None
    source: str
    values: list[str]


def _digits(r: Random, n: int, first: str = string.digits) -> str:
    return r.choice(first) + "".join(r.choice(string.digits) for _ in range(n - 1))


def _luhn(body: str) -> str:
    total = 0
    for i, c in enumerate(reversed(body)):
        x = int(c) * (2 if i % 2 == 0 else 1)
        total += x - 9 if x > 9 else x
    return str(-total % 10)


def _weighted(body: str, weights: tuple[int, ...], modulus: int = 11) -> int:
    return sum(w * int(c) for w, c in zip(weights, body, strict=True)) % modulus


def _until(make: Callable[[], str | None]) -> str:
    while (made := make()) is None:
        pass
    return made


def _born(r: Random) -> date:
    return date(1930, 1, 1) + timedelta(days=r.randrange(27_000))


# --- numbers with check digits, from their definitions ------------------------------------------------------


def _iban(r: Random) -> str:
    country, length = r.choice([("DE", 18), ("AT", 16), ("FR", 23), ("NL", 0), ("CH", 17)])
    if country == "NL":
        body = "ABNA" + _digits(r, 10)
    elif country == "FR":
        bank, branch, account = _digits(r, 5), _digits(r, 5), _digits(r, 11)
        key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(account)) % 97
        body = f"{bank}{branch}{account}{key:02}"
    else:
        body = _digits(r, length)
    numeric = "".join(str(int(c, 36)) for c in body + country + "00")
    text = f"{country}{98 - int(numeric) % 97:02}{body}"
    return " ".join(text[i : i + 4] for i in range(0, len(text), 4)) if r.random() < 0.5 else text


def _german_iban(r: Random) -> str:
    body = _digits(r, 18)
    return f"DE{98 - int(body + '131400') % 97:02}{body}"


def _card(prefix: str, length: int) -> Maker:
    def make(r: Random) -> str:
        body = prefix + _digits(r, length - 1 - len(prefix))
        return body + _luhn(body)

    return make


def _card_in_groups(r: Random) -> str:
    text = _card("5" + r.choice("12345"), 16)(r)
    return "-".join(text[i : i + 4] for i in range(0, 16, 4))


def _imei(r: Random) -> str:
    body = "35" + _digits(r, 12)
    return body + _luhn(body)


def _nhs(r: Random) -> str:
    def make() -> str | None:
        body = _digits(r, 9, "4679")
        check = -_weighted(body, (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
        return None if check == 10 else f"{body[:3]} {body[3:6]} {body[6:]}{check}"

    return _until(make)


def _bc_health(r: Random) -> str:
    def make() -> str | None:
        body = _digits(r, 8, "123456789")
        check = 11 - _weighted(body, (2, 4, 8, 5, 10, 9, 7, 3))
        return f"9{body}{check}" if check < 10 else None

    return _until(make)


def _austrian_insurance(r: Random) -> str:
    def make() -> str | None:
        serial, born = _digits(r, 3, "123456789"), f"{_born(r):%d%m%y}"
        check = _weighted(serial + born, (3, 7, 9, 5, 8, 4, 2, 1, 6))
        return f"{serial}{check} {born}" if check < 10 else None

    return _until(make)


def _amka(r: Random) -> str:
    body = f"{_born(r):%d%m%y}" + _digits(r, 4)
    return body + _luhn(body)


def _german_tax(r: Random) -> str:
    def make() -> str | None:
        digits = list(r.sample(string.digits, 9))
        digits.insert(r.randrange(9), r.choice(digits))
        body = "".join(digits)
        if body[0] == "0":
            return None
        product = 10
        for c in body:
            total = (int(c) + product) % 10 or 10
            product = total * 2 % 11
        return body + str((11 - product) % 10)

    return _until(make)


def _portuguese_tax(r: Random) -> str:
    body = _digits(r, 8, "12")
    check = 11 - _weighted(body, (9, 8, 7, 6, 5, 4, 3, 2))
    return body + str(0 if check > 9 else check)


def _australian_tax(r: Random) -> str:
    def make() -> str | None:
        body = _digits(r, 8, "123456789")
        for last in string.digits:
            if _weighted(body + last, (1, 4, 3, 7, 5, 8, 6, 9, 10)) == 0:
                return f"{body[:3]} {body[3:6]} {body[6:]}{last}"
        return None

    return _until(make)


def _irish_tax(r: Random) -> str:
    body = _digits(r, 7)
    return body + "WABCDEFGHIJKLMNOPQRSTUV"[_weighted(body, (8, 7, 6, 5, 4, 3, 2), 23)]


def _french_number(r: Random) -> str:
    born = _born(r)
    department = r.choice([n for n in range(1, 96) if n != 20])
    body = f"{r.choice('12')}{born:%y%m}{department:02}{r.randrange(1, 990):03}{r.randrange(1, 1000):03}"
    return f"{body}{97 - int(body) % 97:02}"


def _spanish_dni(r: Random) -> str:
    body = _digits(r, 8)
    return body + "TRWAGMYFPDXBNJZSQVHLCKE"[int(body) % 23]


def _dutch_bsn(r: Random) -> str:
    def make() -> str | None:
        body = _digits(r, 8, "12")
        check = _weighted(body, (9, 8, 7, 6, 5, 4, 3, 2))
        return None if check == 10 else body + str(check)

    return _until(make)


def _pesel(r: Random) -> str:
    born = _born(r)
    month = born.month + (20 if born.year >= 2000 else 0)
    body = f"{born.year % 100:02}{month:02}{born.day:02}{_digits(r, 4)}"
    return body + str(-_weighted(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), 10) % 10)


def _brazilian_cpf(r: Random) -> str:
    body = _digits(r, 9)
    for _ in range(2):
        weights = tuple(range(len(body) + 1, 1, -1))
        check = -_weighted(body, weights) % 11
        body += str(0 if check == 10 else check)
    return f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"


def _belgian(r: Random) -> str:
    born = date(1930, 1, 1) + timedelta(days=r.randrange(25_000))
    body = f"{born:%y%m%d}{r.randrange(1, 998):03}"
    return f"{body[:2]}.{body[2:4]}.{body[4:6]}-{body[6:]}.{97 - int(body) % 97:02}"


def _swiss(r: Random) -> str:
    body = "756" + _digits(r, 9)
    check = -sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(body)) % 10
    return f"{body[:3]}.{body[3:7]}.{body[7:11]}.{body[11:]}{check}"


def _finnish(r: Random) -> str:
    body, serial = f"{_born(r):%d%m%y}", f"{r.randrange(2, 900):03}"
    return f"{body}-{serial}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(body + serial) % 31]}"


def _swedish(r: Random) -> str:
    body = f"{_born(r):%y%m%d}" + _digits(r, 3)
    return f"{body[:6]}-{body[6:]}{_luhn(body)}"


def _turkish(r: Random) -> str:
    body = _digits(r, 9, "123456789")
    odd, even = sum(map(int, body[::2])), sum(map(int, body[1::2]))
    body += str((odd * 7 - even) % 10)
    return body + str(sum(map(int, body)) % 10)


def _chinese(r: Random) -> str:
    place = r.choice(["110101", "310104", "120101"])
    body = f"{place}{_born(r):%Y%m%d}{_digits(r, 3)}"
    weights = tuple(pow(2, 17 - i, 11) for i in range(17))
    return body + "10X98765432"[_weighted(body, weights)]


def _south_african(r: Random) -> str:
    body = f"{_born(r):%y%m%d}{_digits(r, 4)}{r.choice('01')}8"
    return body + _luhn(body)


def _canadian(r: Random) -> str:
    body = _digits(r, 8, "1245679")
    return f"{body[:3]}-{body[3:6]}-{body[6:]}{_luhn(body)}"


def _aadhaar(r: Random) -> str:
    """Verhoeff's check digit: the dihedral group of the pentagon, and its permutation."""

    def times(a: int, b: int) -> int:
        if a < 5:
            return (a + b) % 5 if b < 5 else 5 + (a + b - 5) % 5
        return 5 + (a - 5 - b) % 5 if b < 5 else (a - b) % 5

    step = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
    body, check = _digits(r, 11, "23456789"), 0
    for i, c in enumerate(reversed(body), start=1):
        digit = int(c)
        for _ in range(i % 8):
            digit = step[digit]
        check = times(check, digit)
    inverse = next(d for d in range(10) if times(check, d) == 0)
    text = body + str(inverse)
    return f"{text[:4]} {text[4:8]} {text[8:]}"


def _vehicle(r: Random) -> str:
    letters = "ABCDEFGHJKLMNPRSTUVWXYZ"
    worth = dict(zip(letters, "12345678123457923456789", strict=True))
    body = [r.choice(letters + string.digits) for _ in range(17)]
    body[0] = r.choice("JWSZ")
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(w * int(worth.get(c, c)) for w, c in zip(weights, body, strict=True))
    body[8] = "0123456789X"[total % 11]
    return "".join(body)


def _wallet(r: Random) -> str:
    raw = bytes([0]) + r.randbytes(20)
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[rest] + text
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + text


# --- people -------------------------------------------------------------------------------------------------

GIVEN = _word_list(
    """
Olivia Emma Charlotte Amelia Sophia Mia Isabella Ava Evelyn Luna Liam Noah Oliver James Elijah Mateo
Theodore Henry Lucas William Margaret Deborah Ronald Kenneth Heike Ursula Jürgen Günter Stefan Katharina
Björn Élodie Françoise Guillaume Thérèse Camille José María Lucía Álvaro Núria Chiara Giuseppe Alessandra
João Inês Tiago Agnieszka Krzysztof Małgorzata Zuzanna Anders Ingrid Solveig Mehmet Ayşe Fatma Mustafa Ahmed
Fatima Yusuf Priya Rahul Ananya Sanjay Wei Mei Hiroshi Yuki Thi Siobhán Declan Angus Gwendolyn Tomáš Eszter
Ioana Dragan Olga Svetlana Jakub Femke Sander
"""
)
FAMILY = _word_list(
    """
Smith Johnson Williams Brown Jones Miller Davis Wilson Anderson Taylor Thomas Moore Jackson Martin Thompson
Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Hoffmann Zimmermann Dubois Lefebvre Moreau
Garnier Rousseau García Fernández González Rodríguez Martínez Sánchez Rossi Ferrari Esposito Bianchi Silva
Santos Oliveira Pereira Nowak Kowalski Wiśniewski Hansen Johansson Lindqvist Virtanen Yılmaz Kaya Demir Khan
Hussain Patel Sharma Singh Gupta Reddy Chen Wang Zhang Tanaka Suzuki Nguyen O'Brien MacDonald Fitzgerald
Novák Horváth Popescu Jovanović Petrov Ivanov Vandenberg Janssen Visser Abernathy Okonkwo Mwangi
"""
)


def _full_name(r: Random) -> str:
    return f"{r.choice(GIVEN)} {r.choice(FAMILY)}"


def _name_reversed(r: Random) -> str:
    return f"{r.choice(FAMILY)}, {r.choice(GIVEN)}"


def _name_with_title(r: Random) -> str:
    return f"{r.choice(['Dr.', 'Mr', 'Mrs', 'Prof.', 'Ms'])} {_full_name(r)}"


def _name_with_initial(r: Random) -> str:
    return f"{r.choice(FAMILY)} {r.choice(GIVEN)[0]}."


def _name_in_capitals(r: Random) -> str:
    return f"{r.choice(GIVEN)} {r.choice(string.ascii_uppercase)}. {r.choice(FAMILY)}".upper()


def _double_name(r: Random) -> str:
    return f"{r.choice(GIVEN)}-{r.choice(GIVEN)} {r.choice(FAMILY)}-{r.choice(FAMILY)}"


def _email(r: Random) -> str:
    host = r.choice(["example.org", "uni-x.de"])
    return f"{r.choice(GIVEN).lower()}.{r.choice(FAMILY).lower()}{r.randrange(99)}@{host}"


WORDS = _word_list(
    """
the patient was seen today and reports that pain in left knee began after a fall two weeks ago with no fever
or swelling advised rest ibuprofen follow up visit next month discussed results family history of diabetes
mother phoned again about appointment refused medication sleeps badly works nights asks for letter to
employer
"""
)


def _note(r: Random) -> str:
    return " ".join(r.choice(WORDS) for _ in range(r.randrange(9, 30))).capitalize() + "."


def _note_with_names(r: Random) -> str:
    return f"Spoke with {_full_name(r)} " + " ".join(r.choice(WORDS) for _ in range(r.randrange(8, 16)))


def _street(r: Random) -> str:
    kind = r.choice(["Street", "St", "Avenue", "Road", "Lane", "Drive"])
    return f"{r.randrange(1, 4000)} {r.choice(['Oak', 'High', 'Park View', 'Maple', 'Old Mill'])} {kind}"


def _street_german(r: Random) -> str:
    name = r.choice(["Haupt", "Garten", "Linden", "Schul", "Berg"]) + r.choice(
        ["straße", "weg", "str.", "gasse"]
    )
    return f"{name} {r.randrange(1, 200)}{r.choice(['', 'a', ' b'])}" + r.choice(["", ", 01067 Dresden"])


def _street_french(r: Random) -> str:
    return f"{r.randrange(1, 200)} {r.choice(['rue', 'avenue', 'boulevard'])} {r.choice(['de la Paix', 'Victor Hugo'])}"


def _position(r: Random) -> str:
    return f"{r.uniform(-90, 90):.5f}, {r.uniform(-180, 180):.5f}"


def _hex(n: int) -> Maker:
    return lambda r: "".join(r.choice("0123456789abcdef") for _ in range(n))


def _ip6(r: Random) -> str:
    return ":".join(f"{r.randrange(1, 65536):x}" for _ in range(8))


def _mac(separator: str) -> Maker:
    return lambda r: separator.join(_hex(2)(r) for _ in range(6))


IDENTIFIERS: list[tuple[str, str, Maker]] = [
    ("email", "plain", _email),
    ("email", "capitals", lambda r: _email(r).upper()),
    ("phone", "international", lambda r: f"+{r.choice(['49 351', '44 20', '33 1', '1 212'])} {_digits(r, 7)}"),
    ("phone", "closed up", lambda r: f"+4915{_digits(r, 9)}"),
    ("phone", "US", lambda r: f"({r.randrange(200, 999)}) {r.randrange(200, 999)}-{_digits(r, 4)}"),
    ("phone", "US points", lambda r: f"{r.randrange(200, 999)}.{r.randrange(200, 999)}.{_digits(r, 4)}"),
    ("phone", "German", lambda r: f"0{r.choice(['351', '30', '89', '221'])}/{_digits(r, 7)}"),
    ("phone", "French", lambda r: f"0{r.randrange(1, 7)} " + " ".join(_digits(r, 2) for _ in range(4))),
    ("ip-address", "version 4", lambda r: ".".join(str(r.randrange(1, 255)) for _ in range(4))),
    ("ip-address", "version 6", _ip6),
    ("ip-address", "of one network", lambda r: f"192.168.{r.randrange(4)}.{r.randrange(255)}"),
    ("mac-address", "colons", _mac(":")),
    ("mac-address", "hyphens", lambda r: _mac("-")(r).upper()),
    ("web-address", "profile", lambda r: f"https://social.example/{r.choice(GIVEN).lower()}{r.randrange(999)}"),
    ("web-address", "www", lambda r: f"www.{r.choice(FAMILY).lower()}{r.randrange(999)}.example"),
    ("uuid", "version 4", lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4))),
    ("uuid", "capitals", lambda r: str(uuid.UUID(int=r.getrandbits(128), version=4)).upper()),
    ("bank-account", "IBAN of several countries", _iban),
    ("bank-account", "German IBAN", _german_iban),
    ("payment-card", "Visa", _card("4", 16)),
    ("payment-card", "in groups", _card_in_groups),
    ("payment-card", "American Express", _card("37", 15)),
    ("device", "IMEI", _imei),
    ("vehicle", "VIN", _vehicle),
    ("wallet", "bitcoin", _wallet),
    ("social-security", "US", lambda r: f"{r.randrange(1, 600):03}-{r.randrange(1, 99):02}-{r.randrange(1, 9999):04}"),
    ("health-number", "NHS", _nhs),
    ("health-number", "NHS closed up", lambda r: _nhs(r).replace(" ", "")),
    ("health-number", "British Columbia", _bc_health),
    ("health-number", "Austria", _austrian_insurance),
    ("health-number", "Greece", _amka),
    ("tax-number", "Germany", _german_tax),
    ("tax-number", "Portugal", _portuguese_tax),
    ("tax-number", "Australia", _australian_tax),
    ("tax-number", "Ireland", _irish_tax),
    ("national-number", "France", _french_number),
    ("national-number", "Spain", _spanish_dni),
    ("national-number", "Netherlands", _dutch_bsn),
    ("national-number", "Poland", _pesel),
    ("national-number", "Brazil", _brazilian_cpf),
    ("national-number", "Belgium", _belgian),
    ("national-number", "Switzerland", _swiss),
    ("national-number", "Finland", _finnish),
    ("national-number", "Sweden", _swedish),
    ("national-number", "Turkey", _turkish),
    ("national-number", "China", _chinese),
    ("national-number", "South Africa", _south_african),
    ("national-number", "Canada", _canadian),
    ("national-number", "India", _aadhaar),
    ("record-number", "MRN", lambda r: f"MRN{_digits(r, 7)}"),
    ("record-number", "patients", lambda r: f"PAT-{_digits(r, 6)}"),
    ("person-name", "given and family", _full_name),
    ("person-name", "family, given", _name_reversed),
    ("person-name", "with titles", _name_with_title),
    ("person-name", "with initials", _name_with_initial),
    ("person-name", "capitals", _name_in_capitals),
    ("person-name", "double", _double_name),
    ("person-name", "given names", lambda r: r.choice(GIVEN)),
    ("person-name", "family names", lambda r: r.choice(FAMILY)),
    ("free-text", "notes", _note),
    ("free-text", "notes with names", _note_with_names),
    ("street-address", "English", _street),
    ("street-address", "German", _street_german),
    ("street-address", "French", _street_french),
    ("coordinates", "pairs", _position),
    ("coordinates", "points", lambda r: f"POINT ({r.uniform(-180, 180):.4f} {r.uniform(-90, 90):.4f})"),
    ("user-handle", "at", lambda r: f"@{r.choice(['anna', 'bob', 'chess_fan', 'Dr_No'])}_{r.randrange(999)}"),
]  # fmt: skip


# --- decoys -------------------------------------------------------------------------------------------------


def _ean(r: Random) -> str:
    body = "400" + _digits(r, 9)
    return body + str(-sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(body)) % 10)


def _isbn10(r: Random) -> str:
    body = _digits(r, 9)
    return body + "0123456789X"[-_weighted(body, tuple(range(10, 1, -1))) % 11]


def _issn(r: Random) -> str:
    body = _digits(r, 7)
    return f"{body[:4]}-{body[4:]}" + "0123456789X"[-_weighted(body, tuple(range(8, 1, -1))) % 11]


def _cas(r: Random) -> str:
    body = _digits(r, r.randrange(5, 9), "123456789")
    check = sum(i * int(c) for i, c in enumerate(reversed(body), start=1)) % 10
    return f"{body[:-2]}-{body[-2:]}-{check}"


def _moment(r: Random) -> date:
    return date(2015, 1, 1) + timedelta(days=r.randrange(4000))


def _stamp(form: str) -> Maker:
    return lambda r: f"{_moment(r):{form}}"


def _of(text: str, separator: str | None = None) -> Maker:
    items = [item.strip() for item in text.split(separator)]
    return lambda r: r.choice(items)


CITIES = """London, Paris, New York, Berlin, Madrid, San Diego, Santa Clara, Fort Wayne, Saint Paul, Houston, Austin,
Dallas, Lincoln, Madison, Jackson, Charlotte, Florence, Victoria, Dresden, Leipzig, München, Köln, Lyon,
Marseille, Toulouse, Barcelona, Sevilla, Milano, Torino, Kraków, Warszawa, Gdańsk, Oslo, Bergen, Aarhus,
Göteborg, Helsinki, Tampere, Ankara, İzmir, Mumbai, Chennai, Beijing, Shanghai, Osaka, Kyoto, Nairobi,
Lagos, Bogotá, Lima, Quito, Phoenix, Denver"""
COUNTIES = """Adams, Allen, Baker, Benton, Butler, Calhoun, Carroll, Cass, Cherokee, Clark, Clay, Clinton, Columbia,
Crawford, Cumberland, Douglas, Fayette, Franklin, Fulton, Garfield, Grant, Greene, Hamilton, Hancock,
Hardin, Harrison, Henry, Houston, Jackson, Jasper, Jefferson, Johnson, Kane, Knox, Lake, Lawrence, Lee,
Lincoln, Logan, Macon, Madison, Marion, Marshall, Mercer, Mesa, Monroe, Montgomery, Morgan, Orange,
Osceola, Otsego, Perry, Pike, Polk, Pulaski, Putnam, Randolph, Saratoga, Scott, Sheridan, Shelby, Tioga,
Union, Warren, Washington, Wayne, Yamhill, Yavapai, Yuma, Ziebach"""
OCCUPATIONS = """Craft repair, Exec managerial, Prof specialty, Adm clerical, Sales manager, Truck driver, Software
engineer, Primary school teacher, Registered nurse, Police officer, Civil engineer, Graphic designer, Bus
driver, Shop assistant, Tax adviser, Head cook, Night watchman, Dental hygienist, Physical therapist,
Research chemist, Farm worker, Data analyst, Bank clerk, Hotel porter, Machine operator, Kitchen help,
Insurance broker, Estate agent, Art director"""
DISEASES = """Diabetes mellitus, Essential hypertension, Acute bronchitis, Crohn disease, Parkinson disease, Multiple
sclerosis, Breast cancer, Heart failure, Atrial fibrillation, Lyme disease, Hodgkin lymphoma, Iron
deficiency anemia, Hepatitis C, Major depression, Panic disorder, Rheumatoid arthritis, Down syndrome,
Cushing syndrome, Graves disease, Alzheimer disease, Chronic kidney disease, Pulmonary embolism, Celiac
disease, Migraine with aura, Gout, Scabies"""
DRUGS = """Ibuprofen, Paracetamol, Metformin, Ramipril, Amlodipine, Atorvastatin, Simvastatin, Omeprazole,
Pantoprazole, Bisoprolol, Levothyroxine, Salbutamol, Prednisolone, Citalopram, Sertraline, Warfarin,
Apixaban, Insulin glargine, Amoxicillin, Doxycycline, Lisinopril, Losartan, Furosemide, Spironolactone,
Gabapentin, Tramadol, Morphine, Diazepam"""
COMPANIES = """Acme Logistics, Blue River Foods, Northwind Traders, Contoso Ltd, Globex Corporation, Initech, Umbrella
Pharma, Stark Industries, Wayne Enterprises, Wonka Chocolates, Soylent Green, Hooli, Vandelay Imports,
Cyberdyne Systems, Tyrell Labs, Massive Dynamic, Oscorp, Aperture Science, Black Mesa, Virtucon,
Gringotts Bank, Monsters Inc"""
COUNTRIES = """United States, Mexico, Germany, France, Spain, Poland, Turkey, India, China, Japan, Vietnam, Jordan,
Chad, Israel, Georgia, Cuba, Peru, Chile, Brazil, Canada, Kenya, Nigeria, Ghana, Mali, Iran, Iraq, Oman,
Qatar, Nepal, Laos"""
LABELS = """Not in universe under 1 year old, Nonmover, MSA to MSA, Householder, Child 18 or older, Spouse of
householder, Grandchild under 18 never married, Group quarters secondary individual, Other relative of
householder"""

DECOYS: list[tuple[str, Maker]] = [
    ("order numbers", lambda r: _digits(r, 9, "123456789")),
    ("order numbers of ten digits", lambda r: _digits(r, 10, "123456789")),
    ("order numbers of eleven digits", lambda r: _digits(r, 11, "123456789")),
    ("order numbers of thirteen digits", lambda r: _digits(r, 13, "123456789")),
    ("order numbers of fifteen digits", lambda r: _digits(r, 15, "123456789")),
    ("order numbers of sixteen digits", lambda r: _digits(r, 16, "123456789")),
    ("orders with a prefix", lambda r: f"ORD-{_digits(r, 7)}"),
    ("orders with the year", lambda r: f"{r.randrange(2015, 2026)}-{_digits(r, 6)}"),
    ("orders in groups", lambda r: f"{_digits(r, 3)}-{_digits(r, 7)}-{_digits(r, 7)}"),
    ("orders padded with zeros", lambda r: f"000{_digits(r, 7)}"),
    ("invoices", lambda r: f"RE{_moment(r):%Y%m}{_digits(r, 4)}"),
    ("product codes", lambda r: f"{r.choice('ABCXYZ')}{_digits(r, 4)}-{r.choice('KLM')}{_digits(r, 2)}"),
    ("stock keeping units", lambda r: f"SKU{_digits(r, 8)}"),
    ("EAN", _ean),
    ("ISBN-10", _isbn10),
    ("ISSN", _issn),
    ("CAS numbers", _cas),
    (
        "serial numbers",
        lambda r: "".join(r.choice(string.ascii_uppercase + string.digits) for _ in range(12)),
    ),
    ("versions", lambda r: f"{r.randrange(1, 9)}.{r.randrange(30)}.{r.randrange(10)}.{r.randrange(5)}"),
    ("MD5", _hex(32)),
    ("SHA-1", _hex(40)),
    ("SHA-256", _hex(64)),
    ("short hashes", _hex(12)),
    ("base64", lambda r: "".join(r.choice(string.ascii_letters + string.digits + "+/") for _ in range(22))),
    ("seconds since 1970", lambda r: str(r.randrange(1_400_000_000, 1_800_000_000))),
    ("milliseconds since 1970", lambda r: str(r.randrange(1_400_000_000_000, 1_800_000_000_000))),
    ("dates", _stamp("%Y-%m-%d")),
    ("German dates", _stamp("%d.%m.%Y")),
    ("US dates", _stamp("%m/%d/%Y")),
    ("dates as numbers", _stamp("%Y%m%d")),
    ("dates of six digits", _stamp("%d%m%y")),
    (
        "times",
        lambda r: f"{_moment(r):%Y-%m-%d} {r.randrange(24):02}:{r.randrange(60):02}:{r.randrange(60):02}",
    ),
    ("times of ISO", lambda r: f"{_moment(r):%Y-%m-%d}T{r.randrange(24):02}:{r.randrange(60):02}:00+01:00"),
    (
        "compact times",
        lambda r: f"{_moment(r):%Y%m%d}{r.randrange(24):02}{r.randrange(60):02}{r.randrange(60):02}",
    ),
    ("minutes", lambda r: f"{_moment(r):%y%m%d}{r.randrange(24):02}{r.randrange(60):02}"),
    ("clock", lambda r: f"{r.randrange(24):02}:{r.randrange(60):02}"),
    ("amounts", lambda r: f"{r.uniform(1, 9999):.2f}"),
    ("measurements", lambda r: f"{r.gauss(37, 1):.4f}"),
    ("small numbers", lambda r: str(r.randrange(120))),
    ("large numbers", lambda r: str(r.randrange(10**7, 10**8))),
    ("ZIP codes", lambda r: _digits(r, 5)),
    ("ZIP+4", lambda r: f"{_digits(r, 5)}-{_digits(r, 4)}"),
    ("UK postcodes", lambda r: f"SW{r.randrange(1, 20)} {r.randrange(9)}{r.choice('ABD')}{r.choice('EFG')}"),
    ("ICD-10", lambda r: f"{r.choice('ABCDEFGHIJ')}{_digits(r, 2)}.{_digits(r, 1)}"),
    ("LOINC", lambda r: f"{_digits(r, 5, '123456789')}-{_digits(r, 1)}"),
    ("ATC", lambda r: f"N0{r.randrange(9)}BA{_digits(r, 2)}"),
    ("SNOMED", lambda r: _digits(r, 9, "123456789")),
    ("blood pressure", lambda r: f"{r.randrange(90, 180)}/{r.randrange(50, 110)}"),
    ("flights", lambda r: f"LH{_digits(r, 4)}"),
    ("number plates of samples", lambda r: f"S-{_digits(r, 6)}-{_digits(r, 2)}"),
    ("cities", _of(CITIES, ",")),
    ("counties", _of(COUNTIES, ",")),
    ("occupations", _of(OCCUPATIONS, ",")),
    ("diseases", _of(DISEASES, ",")),
    ("drugs", _of(DRUGS, ",")),
    ("companies", _of(COMPANIES, ",")),
    ("countries", _of(COUNTRIES, ",")),
    ("long labels", _of(LABELS, ",")),
    ("months", _of("January February March April May June July August September October November December")),
    ("weekdays", _of("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")),
    ("races", _of("White, Black, Asian-Pac-Islander, Amer-Indian-Eskimo, Other", ",")),
    ("yes and no", _of("yes no")),
    ("ranges", lambda r: f"[{r.randrange(0, 90, 5)}, {r.randrange(90, 120, 5)})"),
    ("masked", lambda r: f"{_digits(r, 3)}**"),
    ("percentages", lambda r: f"{r.uniform(0, 100):.1f}%"),
    ("grid references", lambda r: f"{_digits(r, 3)},{_digits(r, 3)}"),
    ("file names", lambda r: f"scan_{_digits(r, 5)}.dcm"),
    ("formulas", lambda r: f"C{r.randrange(9, 30)}H{r.randrange(9, 60)}O{r.randrange(1, 9)}"),
    ("ratios", lambda r: f"1:{r.randrange(2, 500)}"),
    ("genes", lambda r: f"{r.choice(['BRCA', 'TP', 'KRAS', 'EGFR'])}{r.randrange(1, 60)}"),
]


def corpus_columns(seed: int, copies: int = 2) -> Iterator[CorpusColumn]:
    """Every column of the corpus, drawn with a seed; identifiers also with up to 4 % of spoiled cells."""
    random = Random(seed)  # noqa: S311
    for copy in range(copies):
        for kind, source, make in IDENTIFIERS:
            values = list(dict.fromkeys(make(random) for _ in range(ROWS)))
            if copy % 2:
                for place in range(0, len(values) * 4 // 100):
                    values[place] = random.choice(["unknown", "see file", "-", "n/a"]) + " " * place
            yield CorpusColumn(kind, source, values)
        for source, make in DECOYS:
            yield CorpusColumn(None, source, list(dict.fromkeys(make(random) for _ in range(ROWS))))
