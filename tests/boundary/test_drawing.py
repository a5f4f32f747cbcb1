import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drawn import Drawn
from kg_boundary.drawing import CannotDraw, Picture, Triple, notebook_html, png_of, svg_of

HOSTILE = (
    *("</text><script>alert(1)</script>", '" onload="alert(2)', "<!--", "]]>", "&#x202e;", "{x} kgs-x", "\n\t", ""),
    *(
        "\u202egnp.evil\u202c",
        "a\x00b",
        "\ud800",
        "\ufffe",
        "\n\x00",
        "\n\ud800",
        "javascript:alert(3)",
        "日本語 عربي 👩‍🔬",
    ),
)
TEXTS = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=30), st.integers(1, 50_000).map(lambda count: "long " * count)
)
IDS = st.one_of(
    TEXTS.filter(lambda text: not text.startswith('"')), st.sampled_from(["a:1", "a:2", "https://w.example/b?c=<d>"])
)
ENDS = st.one_of(IDS, st.builds('"{}"@en'.format, TEXTS), st.builds('"https://w.example/{}"'.format, TEXTS))
PICTURES = st.builds(
    Picture,
    facts=st.lists(st.tuples(IDS, IDS, ENDS), max_size=12).map(tuple),
    title=TEXTS,
    caption=TEXTS,
    labels=st.dictionaries(IDS, TEXTS),
    relations=st.dictionaries(IDS, TEXTS),
    classes=st.dictionaries(IDS, TEXTS),
    roots=st.lists(IDS, max_size=2, unique=True).map(tuple),
    answers=st.frozensets(ENDS, max_size=2),
    more=st.dictionaries(st.tuples(IDS, IDS, st.booleans()), st.integers(0, 9_999), max_size=2),
    both_sides=st.booleans(),
)


@given(PICTURES)
def test_whatever_labels_hold_is_text_and_only_addresses_of_the_web_are_links(picture: Picture) -> None:
    drawn = Drawn.of(svg_of(picture))
    assert drawn.elements() <= {"svg", "title", "desc", "style", "rect", "g", "path", "circle", "text", "a"}
    attributes = drawn.attributes()
    assert not [name for name in attributes if name.lower().startswith("on") or name.endswith("}href")]
    assert all(link.startswith("https://") for link in attributes.get("href", ()))
    shown = "".join((*drawn.texts(), drawn.described()))
    assert not [mark for mark in shown if unicodedata.category(mark) in {"Cf", "Cs"} or mark in "\u2028\u2029"]
    assert all(len(text) <= 310 for text in drawn.texts())


class Table(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags = set[str]()
        self.attributes = set[str]()
        self.cells = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.cells += tag == "td"


@given(PICTURES)
def test_notebooks_show_the_same_as_a_table_in_which_nothing_runs(picture: Picture) -> None:
    html = notebook_html(picture)
    table = Table()
    table.feed(html)
    assert not table.tags & {"script", "img", "iframe", "object"}
    assert not [name for name in table.attributes if name.startswith("on")]
    assert table.cells == 3 * len(set(picture.facts))
    assert ("svg" in table.tags) == bool(picture.facts)


NUMBERS = st.integers(0, 14)
GRAPHS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=40)


@example([(0, 0, 0), (1, 0, 3), (1, 0, 2), (2, 0, 1), (2, 0, 3)], [], False, [])
@given(GRAPHS, st.lists(NUMBERS, max_size=3, unique=True), st.booleans(), st.lists(st.integers(0, 39)))
def test_no_label_lies_upon_another_in_any_graph(
    graph: list[tuple[int, int, int]], roots: list[int], both_sides: bool, marked: list[int]
) -> None:
    facts = tuple((f"n:{head}", f"r:{relation}", f"n:{tail}") for head, relation, tail in graph)
    labels = {f"{kind}:{number}": "wide label " * (number % 4 + 1) for kind in "nr" for number in range(15)}
    picture = Picture(
        facts,
        labels=labels,
        classes={"n:1": "town", "n:2": "river"},
        roots=tuple(f"n:{root}" for root in roots),
        evidence=frozenset(facts[place] for place in marked if place < len(facts)),
        more={(facts[0][0], facts[0][1], False): 1832},
        both_sides=both_sides,
    )
    svg = svg_of(picture)
    assert Drawn.of(svg).overlaps() == []
    assert svg_of(picture) == svg


def test_the_colours_are_those_of_the_page() -> None:
    style = (Path(__file__).parents[2] / "server" / "view" / "src" / "style.css").read_text(encoding="utf-8")
    themes = re.findall(r":root[^{]*\{([^}]*)\}", style)[:2]
    light, dark = (set(re.findall(r"--(?:c\d|accent|text|line): (#\w+)", each)) for each in themes)
    picture = Picture((("a", "r", "b"),))
    assert len(light) == len(dark) == 13
    assert light <= set(re.findall(r"#\w{6}", svg_of(picture, "light")))
    assert dark <= set(re.findall(r"#\w{6}", svg_of(picture, "dark")))


def test_many_neighbours_over_one_relation_are_one_line_to_a_block() -> None:
    facts: tuple[Triple, ...] = tuple(("a:hub", "a:has", f"a:n{number}") for number in range(40))
    drawn = Drawn.of(svg_of(Picture(facts, roots=("a:hub",), more={("a:hub", "a:has", False): 1832})))
    assert drawn.texts("kgs-relation") == ["a:has"]
    assert drawn.texts("kgs-more") == ["1,832 more"]
    wide, high = drawn.size
    assert high < wide < 4 * high
    assert drawn.overlaps() == []


def test_a_chain_is_read_from_the_root_to_the_answer_whatever_way_its_facts_point() -> None:
    facts = (("b", "r", "a"), ("b", "r", "c"), ("d", "r", "c"))
    for picture in (Picture(facts, answers=frozenset({"d"})), Picture(facts, roots=("a", "d"))):
        svg = svg_of(picture)
        places = {name: float(svg.split(f">{name}</text>")[0].rpartition(' x="')[2].split('"')[0]) for name in "abcd"}
        assert sorted(places, key=places.__getitem__) == ["a", "b", "c", "d"]


def test_a_machine_without_fonts_refuses_a_png_that_would_have_no_text() -> None:
    with pytest.raises(CannotDraw, match="no font"):
        png_of(svg_of(Picture((("a", "r", "b"),)), "light"), fonts=False)


def test_a_png_beyond_what_memory_should_hold_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(CannotDraw, match=r"million pixels, and may have 100\. Lower --scale"):
        png_of(svg_of(Picture((("a", "r", "b"),)), "light"), scale=100)
