import pytest

from kg_server.memory.tool import client_at


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_its_address_or_its_network_where_it_may_choose_the_rest(host: str, client: str) -> None:
    assert client_at(host) == client
