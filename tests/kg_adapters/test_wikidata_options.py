"""Wikidata is reached as its settings say, and as politely as Wikimedia asks."""

import re

import pytest
from pydantic import ValidationError

from kg_adapters.wikidata.opening import advice
from kg_adapters.wikidata.options import WikidataOptions

CONTACT = "someone@example.org"


def test_the_user_agent_names_the_project_its_version_the_contact_and_the_library() -> None:
    known, stranger = (WikidataOptions(contact=contact).user_agent for contact in (CONTACT, None))
    assert re.fullmatch(r"kg-sextant/\S+ \(someone@example\.org\) httpx2/\S+", known)
    assert re.fullmatch(r"kg-sextant/\S+ httpx2/\S+", stranger)


def test_without_a_contact_it_stays_under_the_limit_for_strangers_and_says_so() -> None:
    assert WikidataOptions().per_minute == 10
    assert WikidataOptions(contact=CONTACT).per_minute == 200
    assert WikidataOptions(requests_per_minute=7).per_minute == 7
    (told,) = advice(WikidataOptions())
    assert "wikidata.contact" in told
    assert advice(WikidataOptions(contact=CONTACT)) == []
    here = "https://example.org/x"
    assert advice(WikidataOptions(query_url=here, scholarly_url=None, api_url=here)) == []
    assert advice(WikidataOptions(query_url=here, scholarly_url=None)) == [told]


def test_names_for_all_languages_and_english_ones_come_last() -> None:
    assert WikidataOptions(languages=("ja", "de-CH")).all_languages == ("ja", "de-ch", "mul", "en")
    assert WikidataOptions(languages=("en", "mul")).all_languages == ("en", "mul")


def test_at_most_three_requests_at_once_go_to_the_web_api() -> None:
    options = WikidataOptions(max_concurrency=5)
    assert options.query_endpoint.max_concurrency == 5
    assert options.api_endpoint.max_concurrency == 3
    assert WikidataOptions(max_concurrency=2).api_endpoint.max_concurrency == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("contact", "me"),
        ("contact", "a@b.org\r\nX: 1"),
        ("contact", "who (me) a@b.org"),
        ("contact", "ä@example.org"),
        ("query_url", "ftp://example.org/"),
        ("api_url", "https://user:secret@example.org/"),
        ("requests_per_minute", 0),
        ("languages", ()),
        ("dialect", "unheard-of"),
    ],
)
def test_a_wrong_value_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        WikidataOptions.model_validate({field: value})
