import pytest

from kg_boundary.addresses import base_url_problem, credentials_in, credentials_in_command, masked, masked_command


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://h/x", "http://h/x"),
        ("http://u:p@h/x", "http://…@h/x"),
        ("see http://token@h.", "see http://…@h."),
        ("http://u:p/a?s#s@h/x", "http://…@h/x"),
        ("http://u:p@ss@h/x", "http://…@h/x"),
        ("http://u:it's@h/x", "http://…@h/x"),
        ("http://h/v1?key=k", "http://h/v1?…"),
        ("'https://h/v1?key=k'", "'https://h/v1?…'"),
        ("(https://h/v1?key=k&b=c#d), then", "(https://h/v1?…#d), then"),
        ("http://h/x#access_token=1", "http://h/x#…"),
        ("http://h:8080/a/@home#label", "http://h:8080/a/@home#label"),
        ("<neo4j+s://u:p@h?k> and ftp://u:p@h", "<neo4j+s://…@h?…> and ftp://…@h"),
        ("http://u:p@h/x?k=v http://h", "http://…@h/x?… http://h"),
        ("someone@example.org asks why?", "someone@example.org asks why?"),
        ("http://…@h/x?…", "http://…@h/x?…"),
        # An @ in a query or a fragment ends no user: what stands behind it would be shown.
        ("http://h?mail=a@b&key=k", "http://h?…"),
        ("http://h?at=a:b@c&key=k", "http://h?…"),
        ("http://h:80?mail=a@b&key=k", "http://h:80?…"),
        ("http://h#mail=a@b&key=k", "http://h#…"),
        ("http://h#at=a:b@c&key=k", "http://h#…"),
        ("http://h:80#mail=a@b&key=k", "http://h:80#…"),
        ("http://h/a:b@c", "http://h/a:b@c"),
    ],
)
def test_what_may_be_secret_in_an_address_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize("end", [*".,:;)]}", "", ").", "]};", " and", "\n", '"', "'", "<", ">"])
def test_what_stands_behind_an_address_stays(end: str) -> None:
    asked = [f"see http://h?k=v{end}", f"see 'http://h?k=v'{end}"]
    assert [masked(each) for each in asked] == [f"see http://h?…{end}", f"see 'http://h?…'{end}"]


@pytest.mark.parametrize(
    "name",
    ["API-KEY", "token", "client_secret", "passphrase", "pwd", "auth", "credential", "X-Signature", "sig", "cookie"],
)
def test_what_is_secret_by_its_name_is_known(name: str) -> None:
    assert list(credentials_in(f"https://h/x?design=a&{name}=k&b=c")) == [("", "k")]
    assert list(credentials_in_command(f"server --design a --{name} k1 {name}=k2")) == ["k1", "k2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://ann:p%40ss@h/x", [("ann", "p@ss")]),
        ("https://token@h/x", [("", "token")]),
        ("https://h/x?api_key=a+b&other=c", [("", "a b")]),
        ("https://h/x?token", [("", "token")]),
        ("https://h/x#access_token=1", [("", "1")]),
        ("https://h/x#label", []),
        ("https://h:80/x", []),
        ("no address", []),
        ("http://[", []),
        ("/a/path?token=c", []),
        ("//h?token=c", []),
        ("mailto:a?token=c", []),
    ],
)
def test_the_secrets_of_an_address_are_found(text: str, found: list[tuple[str, str]]) -> None:
    assert list(credentials_in(text)) == found


@pytest.mark.parametrize("url", ["https://h/v1?k=x", "https://h/v1#k"])
def test_a_base_url_ends_before_its_query(url: str) -> None:
    problem = base_url_problem(url)
    assert problem is not None
    assert "k=x" not in problem
    assert base_url_problem("https://h/v1") is None


@pytest.mark.parametrize(
    ("line", "shown", "found"),
    [
        ("", "", []),
        ("sleep", "sleep", []),
        ("npx server --api-key k1 --verbose", "npx …", ["k1"]),
        ("npx server --api-key=k1 --token k2", "npx …", ["k1", "k2"]),
        ("env API_TOKEN=k1 HOME=/root server", "env …", ["k1"]),
        ("server --header 'Authorization: Bearer k1' -H 'X-Key: k2'", "server …", ["k1", "k2"]),
        ("server --auth-header 'Bearer k1'", "server …", ["k1"]),
        ("server --url https://ann:k1@host/x?token=k2", "server …", ["k1", "k2"]),
        ("server --url=https://ann:k1@host/x 'not closed --key k2", "server …", ["k1", "k2"]),
        ("https://k1@host/x", "https://…@host/x", ["k1"]),
    ],
)
def test_a_command_line_shows_its_program_and_its_secrets_are_known_by_their_names(
    line: str, shown: str, found: list[str]
) -> None:
    assert (masked_command(line), list(credentials_in_command(line))) == (shown, found)
