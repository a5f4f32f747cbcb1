import json

import pytest
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from kg_server.messages import NotAMessage, read_message
from protocol_nonsense import NONSENSE, Nonsense


@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda each: each.name)
def test_what_is_no_message_is_refused_under_its_own_id(nonsense: Nonsense) -> None:
    with pytest.raises(NotAMessage) as raised:
        read_message(nonsense.text)
    answer = raised.value.answer
    assert (answer.id, answer.error.code) == (nonsense.id, nonsense.code)
    assert len(answer.error.message) <= 200
    assert "http" not in answer.error.message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "id": "eins", "method": "ping", "params": {"a": 1.5}}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "id": -9223372036854775807, "method": "ping", "params": null}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "method": "notifications/initialized"}', JSONRPCNotification),
        ('{"jsonrpc": "2.0", "id": 1, "result": {}}', JSONRPCResponse),
        ('{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "?"}}', JSONRPCError),
    ],
)
def test_messages_are_read_as_they_are(text: str, kind: type) -> None:
    message = read_message(text.encode())
    assert isinstance(message, kind)
    assert json.loads(message.model_dump_json(exclude_unset=True)) == json.loads(text)
