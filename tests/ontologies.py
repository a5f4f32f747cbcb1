"""Likenesses of well-known ontologies, generated in the shape of theirs, as Turtle."""

from typing import Final

PREFIXES: Final = """
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix brick: <https://brickschema.org/schema/Brick#> .
@prefix crm: <http://www.cidoc-crm.org/cidoc-crm/> .
@prefix dbo: <http://dbpedia.org/ontology/> .
@prefix schema: <https://schema.org/> .
@prefix time: <http://www.w3.org/2006/time#> .
"""
_EQUIPMENT: Final = {
    "HVAC_Equipment": ("AHU", "Chiller", "VAV", "Fan_Coil_Unit"),
    "Lighting_Equipment": ("Luminaire", "Interface"),
    "Meter": ("Electrical_Meter", "Gas_Meter", "Water_Meter"),
}


def _named(iri: str) -> str:
    return iri.partition(":")[2].replace("_", " ")


def _brick() -> str:
    tree = {"Equipment": tuple(_EQUIPMENT), **_EQUIPMENT, "AHU": ("Rooftop_Unit",), "Location": ("Building", "Floor")}
    lines = [
        f'brick:{child} a owl:Class ; rdfs:label "{_named(f"b:{child}")}"@en ; rdfs:subClassOf brick:{parent} .'
        for parent, children in tree.items()
        for child in children
    ]
    roots = [f'brick:{root} a owl:Class ; rdfs:label "{root}"@en .' for root in ("Equipment", "Location")]
    return "\n".join(
        (
            *roots,
            *lines,
            "brick:feeds a owl:ObjectProperty ; rdfs:domain brick:Equipment ; rdfs:range brick:Equipment .",
            "brick:hasLocation a owl:ObjectProperty ; rdfs:range brick:Location ; rdfs:domain "
            "[ a owl:Class ; owl:unionOf ( brick:Equipment brick:Building ) ] .",
            "brick:VAV rdfs:subClassOf [ a owl:Restriction ; owl:onProperty brick:hasLocation ; "
            "owl:someValuesFrom brick:Floor ] .",
        )
    )


_SCHEMA_ORG: Final = """
schema:Thing a rdfs:Class ; rdfs:label "Thing" .
schema:CreativeWork a rdfs:Class ; rdfs:label "CreativeWork" ; rdfs:subClassOf schema:Thing .
schema:Book a rdfs:Class ; rdfs:label "Book" ; rdfs:subClassOf schema:CreativeWork .
schema:Person a rdfs:Class ; rdfs:label "Person" ; rdfs:subClassOf schema:Thing ; rdfs:comment "A person." .
schema:Patient a rdfs:Class ; rdfs:label "Patient" ; rdfs:subClassOf schema:Person .
schema:name a rdf:Property ; rdfs:label "name" ; schema:domainIncludes schema:Thing ; schema:rangeIncludes schema:Text .
schema:author a rdf:Property ; rdfs:label "author" ; schema:domainIncludes schema:CreativeWork ;
    schema:rangeIncludes schema:Person .
schema:knows a rdf:Property ; rdfs:label "knows" ; schema:domainIncludes schema:Person ;
    schema:rangeIncludes schema:Person .
schema:Text a rdfs:Class ; rdfs:label "Text" .
"""
_CIDOC: Final = """
crm:E1_CRM_Entity a rdfs:Class ; rdfs:label "CRM Entity"@en .
crm:E70_Thing a rdfs:Class ; rdfs:label "Thing"@en ; rdfs:subClassOf crm:E1_CRM_Entity .
crm:E24_Physical_Human-Made_Thing a rdfs:Class ; rdfs:label "Physical Human-Made Thing"@en ;
    rdfs:subClassOf crm:E70_Thing .
crm:E22_Human-Made_Object a rdfs:Class ; rdfs:label "Human-Made Object"@en ;
    rdfs:subClassOf crm:E24_Physical_Human-Made_Thing ; rdfs:comment "Objects that people made."@en .
crm:E12_Production a rdfs:Class ; rdfs:label "Production"@en ; rdfs:subClassOf crm:E1_CRM_Entity .
crm:P108i_was_produced_by a rdf:Property ; rdfs:label "was produced by"@en ; rdfs:range crm:E12_Production ;
    rdfs:domain crm:E24_Physical_Human-Made_Thing .
"""
_OWL_TIME: Final = """
time:TemporalEntity a owl:Class ; rdfs:label "Temporal entity"@en .
time:TemporalDuration a owl:Class ; rdfs:label "Temporal duration"@en .
time:Duration a owl:Class ; rdfs:label "Time duration"@en ; rdfs:subClassOf time:TemporalDuration ,
    [ a owl:Restriction ; owl:onProperty time:numericDuration ; owl:cardinality 1 ] ,
    [ a owl:Restriction ; owl:onProperty time:unitType ; owl:onClass time:TemporalUnit ;
      owl:maxQualifiedCardinality 2 ] .
time:TemporalUnit a owl:Class ; rdfs:label "Temporal unit"@en ; rdfs:subClassOf time:TemporalDuration ,
    [ a owl:Class ; owl:complementOf time:TemporalEntity ] .
time:DayOfWeek a owl:Class ; rdfs:label "Day of week"@en ;
    owl:equivalentClass [ a owl:Class ; owl:oneOf ( time:Monday time:Tuesday ) ] .
time:Monday a time:DayOfWeek ; rdfs:label "Monday"@en . time:Tuesday a time:DayOfWeek ; rdfs:label "Tuesday"@en .
time:numericDuration a owl:DatatypeProperty ; rdfs:label "numeric value of duration"@en ; rdfs:domain time:Duration ;
    rdfs:range xsd:decimal .
time:unitType a owl:ObjectProperty ; rdfs:label "temporal unit type"@en ; rdfs:domain time:Duration ;
    rdfs:range time:TemporalUnit .
xsd:duration a rdfs:Datatype ; rdfs:label "duration" .
"""
_DBPEDIA: Final = """
dbo:Agent a owl:Class ; rdfs:label "agent"@en ; rdfs:subClassOf owl:Thing .
dbo:Person a owl:Class ; rdfs:label "person"@en ; rdfs:subClassOf dbo:Agent ; rdfs:comment "Somebody."@en .
dbo:Athlete a owl:Class ; rdfs:label "athlete"@en ; rdfs:subClassOf dbo:Person .
dbo:Place a owl:Class ; rdfs:label "place"@en ; rdfs:subClassOf owl:Thing .
dbo:birthDate a owl:DatatypeProperty ; rdfs:label "birth date"@en ; rdfs:domain dbo:Person ; rdfs:range xsd:date .
dbo:birthPlace a owl:ObjectProperty ; rdfs:label "birth place"@en ; rdfs:domain dbo:Person ; rdfs:range dbo:Place .
dbo:bankAccount a owl:DatatypeProperty ; rdfs:label "bank account"@en ; rdfs:domain dbo:Agent ; rdfs:range xsd:string .
"""
ONTOLOGIES: Final = {
    "Brick": PREFIXES + _brick(),
    "schema.org": PREFIXES + _SCHEMA_ORG,
    "CIDOC CRM": PREFIXES + _CIDOC,
    "OWL-Time": PREFIXES + _OWL_TIME,
    "DBpedia": PREFIXES + _DBPEDIA,
}
"""Turtle by the name of the ontology that it is like."""
