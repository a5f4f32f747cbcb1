from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kg_adapters.terms import Iri, Literal, Term
from kg_server.memory.store import Fact, Network, Place

EXAMPLE = "http://example.org/"


def fact(head: str, relation: str, tail: str | Literal, *, verified: bool = True) -> Fact:
    end: Term = tail if isinstance(tail, Literal) else Iri(EXAMPLE + tail)
    return Fact(Iri(EXAMPLE + head), Iri(EXAMPLE + relation), end, verified)


PARTNER = fact("Goethe", "unmarried_partner", "Lili")
BIRTHPLACE = fact("Lili", "place_of_birth", "Offenbach")
DEATH = fact("Goethe", "date_of_death", Literal("1832-03-22", Iri("http://www.w3.org/2001/XMLSchema#date")))

FACTS = st.lists(
    st.builds(
        fact,
        st.sampled_from("abcd"),
        st.sampled_from(["r", "s"]),
        st.one_of(st.sampled_from("abcd"), st.sampled_from("abcd").map(Literal)),
        verified=st.booleans(),
    ),
    max_size=40,
)


def plainly(facts: Iterable[Fact]) -> Network:
    """The rule of the paper, word for word: slow, and without a thought for anything else."""
    paths: list[list[Fact]] = []
    for each in facts:
        if any(each.statement == held.statement for path in paths for held in path):
            continue
        suitable = (path for path in paths if path[-1].tail == each.head)
        path = next(suitable, None)
        if path is None:
            paths.append([each])
        else:
            path.append(each)
    return Network(tuple(map(tuple, paths)))


def test_a_fact_goes_to_the_path_that_ends_in_its_head() -> None:
    assert Network().extended([PARTNER]).extended([BIRTHPLACE]) == Network(((PARTNER, BIRTHPLACE),))


def test_a_fact_that_no_path_leads_to_starts_one() -> None:
    assert Network().extended([BIRTHPLACE, PARTNER]) == Network(((BIRTHPLACE,), (PARTNER,)))


def test_the_first_of_several_suitable_paths_gets_the_fact() -> None:
    other = fact("Schiller", "friend", "Lili")
    assert Network().extended([other, PARTNER, BIRTHPLACE]) == Network(((other, BIRTHPLACE), (PARTNER,)))


def test_a_value_ends_a_path_for_good() -> None:
    named_alike = fact("1832-03-22", "day_of", "Lili")
    assert Network().extended([DEATH, named_alike]) == Network(((DEATH,), (named_alike,)))


def test_a_statement_that_is_held_anywhere_changes_nothing_even_with_another_mark() -> None:
    network = Network().extended([PARTNER, BIRTHPLACE, DEATH])
    again = fact("Lili", "place_of_birth", "Offenbach", verified=False)
    assert network.extended([again, again, DEATH]) == network


def test_a_fact_about_itself_extends_its_own_path() -> None:
    loop, after = fact("a", "r", "a"), fact("a", "s", "b")
    assert Network().extended([loop, after]) == Network(((loop, after),))


def test_a_network_gives_every_fact_its_place_and_the_ends_that_may_go_on() -> None:
    network = Network().extended([PARTNER, DEATH, BIRTHPLACE])
    places = [Place(0, 0, PARTNER), Place(0, 1, BIRTHPLACE), Place(1, 0, DEATH)]
    assert (list(network.places()), list(network.ends())) == (places, [places[1]])


def test_the_size_of_a_fact_is_that_of_its_texts() -> None:
    assert fact("a", "r", "b").bytes == 3 * len(EXAMPLE) + 3
    assert fact("a", "r", Literal("\u00e9", Iri(EXAMPLE), "de")).bytes == 3 * len(EXAMPLE) + 2 + 2 + 2


def test_ten_thousand_paths_are_one_fact_each_and_the_first_is_extended() -> None:
    starts = [fact(f"start{number}", "r", "end") for number in range(10_000)]
    network = Network().extended(starts).extended([fact("end", "r", "after")])
    assert (len(network.paths), network.paths[0]) == (10_000, (starts[0], fact("end", "r", "after")))


@given(FACTS)
def test_the_network_is_what_the_rule_of_the_paper_gives(facts: Sequence[Fact]) -> None:
    assert Network().extended(facts) == plainly(facts)


@given(FACTS, st.lists(st.integers(0, 40), max_size=6))
def test_any_batches_build_the_network_that_single_facts_build(facts: Sequence[Fact], cuts: Sequence[int]) -> None:
    bounds = [0, *sorted(cuts), len(facts)]
    batched = one_by_one = Network()
    for start, end in pairwise(bounds):
        batched = batched.extended(facts[start:end])
    for each in facts:
        one_by_one = one_by_one.extended([each])
    assert batched == one_by_one
