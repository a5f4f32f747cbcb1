"""The small graphs of the papers' worked cases."""

from pathlib import Path

PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""

TOKYO = f"""{PREFIXES}
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P31 wd:Q50337 ; wdt:P36 wd:Q179645 ; wdt:P1376 wd:Q17 .
wd:Q50337 rdfs:label "prefecture of Japan"@en .
wd:Q179645 rdfs:label "Shinjuku"@en .
wd:Q17 rdfs:label "Japan"@en .
wdt:P31 rdfs:label "instance of"@en .
wdt:P36 rdfs:label "capital"@en .
wdt:P1376 rdfs:label "capital of"@en .
"""

PREFECTURE = f"""{PREFIXES}
wd:Q1490 rdfs:label "Tokyo"@en ; wdt:P31 wd:Q50337 ; wdt:P36 wd:Q179645 .
wd:Q50337 rdfs:label "prefecture of Japan"@en .
wd:Q179645 rdfs:label "Shinjuku"@en .
wd:Q17 rdfs:label "Japan"@en ; wdt:P36 wd:Q1490 .
wdt:P31 rdfs:label "instance of"@en .
wdt:P36 rdfs:label "capital"@en .
"""

NOVELS = f"""{PREFIXES}
wd:Q476871 rdfs:label "The Call of the Wild"@en ; wdt:P50 wd:Q45765 ;
    wdt:P840 wd:Q2009, wd:Q16, wd:Q30, wd:Q797 .
wd:Q465360 rdfs:label "White Fang"@en ; wdt:P50 wd:Q45765 ; wdt:P840 wd:Q2009, wd:Q16 .
wd:Q45765 rdfs:label "Jack London"@en .
wd:Q2009 rdfs:label "Yukon"@en .
wd:Q16 rdfs:label "Canada"@en .
wd:Q30 rdfs:label "United States of America"@en .
wd:Q797 rdfs:label "Alaska"@en .
wdt:P50 rdfs:label "author"@en .
wdt:P840 rdfs:label "narrative location"@en .
"""

GOETHE = f"""{PREFIXES}
wd:Q5879 rdfs:label "Johann Wolfgang von Goethe"@en ; wdt:P451 wd:Q1 ; wdt:P19 wd:Q1794 .
wd:Q1 rdfs:label "Lili Schönemann"@en ; wdt:P19 wd:Q3042 .
wd:Q1794 rdfs:label "Frankfurt"@en .
wd:Q3042 rdfs:label "Offenbach am Main"@en .
wdt:P451 rdfs:label "unmarried partner"@en .
wdt:P19 rdfs:label "place of birth"@en .
"""


def write_story(folder: Path, turtle: str) -> Path:
    """Write a graph as Turtle and return its file."""
    path = folder / "story.ttl"
    path.write_text(turtle, encoding="utf-8")
    return path
