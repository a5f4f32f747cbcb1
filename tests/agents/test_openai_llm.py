import asyncio
import gzip
import json
import threading

import pytest
from pydantic import SecretStr

from fault_endpoint import Asked, Wire, answering, head, redirecting, serving
from kg_agents.llm import (
    Completion,
    Function,
    FunctionCall,
    LlmError,
    LlmRequest,
    LlmUnavailable,
    Message,
    PromptTooLong,
    ToolsUnsupported,
    Usage,
)
from kg_agents.llm.openai_llm import OpenAiLlm, Prices
from scripted_model import Asked as ServiceAsked
from scripted_model import Failure, Scripted, calling, completion, serving_model

HELLO = (Message("system", "Be brief."), Message("user", "Hello"), Message("assistant", "Hi"), Message("user", "Go on"))
SOON = {"Retry-After": "0", "retry-after-ms": "1"}


def hello(temperature: float = 0, max_tokens: int = 1, top_p: float | None = None) -> LlmRequest:
    return LlmRequest(HELLO, "test", temperature, max_tokens, top_p)


async def asked(*script: Scripted, max_retries: int = 2, context_tokens: int | None = None) -> Completion:
    with serving_model(*script) as service:
        llm = OpenAiLlm(
            "m",
            base_url=service.url,
            max_retries=max_retries,
            context_tokens=context_tokens,
            prices=Prices(prompt=10.0, completion=100.0),
        )
        try:
            return await llm.complete(hello(0.4, 50))
        finally:
            await llm.aclose()
            await llm.aclose()


async def refusal(kind: type[LlmError], *script: Scripted, context_tokens: int | None = None) -> str:
    with pytest.raises(kind) as raised:
        await asked(*script, max_retries=0, context_tokens=context_tokens)
    return str(raised.value)


async def test_a_reply_comes_with_what_it_used_and_cost() -> None:
    reply = Completion("Good.", Usage(100, 10, 0.002, 1), "stop")
    assert await asked("Good.") == reply


async def test_the_whole_conversation_is_sent_with_the_key_and_the_sampling() -> None:
    with serving_model("x") as service:
        llm = OpenAiLlm("m", base_url=service.url + "/", api_key=SecretStr("sk-secret"))
        await llm.complete(hello(0.7, 9, top_p=0.9))
        await llm.aclose()
    (request,) = service.asked
    assert [(each.role, each.content) for each in request.messages] == [(each.role, each.content) for each in HELLO]
    assert (request.model, request.temperature, request.max_tokens, request.top_p) == ("m", 0.7, 9, 0.9)
    assert (service.keys, llm.name, "sk-secret" in repr(vars(llm))) == (["Bearer sk-secret"], "m", False)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_service_that_is_busy_is_asked_again(status: int) -> None:
    assert (await asked(Failure(status, headers=SOON), Failure(status, headers=SOON), "At last.")).text == "At last."


@pytest.mark.parametrize(
    ("failure", "kind", "said"),
    [
        (Failure(401), LlmUnavailable, "status 401"),
        (Failure(401), LlmUnavailable, "Check the API key."),
        (Failure(404), LlmUnavailable, "Check the model's name and the base URL."),
        (Failure(429), LlmUnavailable, "Too many requests"),
        (Failure(500), LlmUnavailable, "status 500"),
        (Failure(400, {"error": {"message": "no such sampling"}}), LlmError, "no such sampling"),
        (Failure(400, {"error": {"message": "maximum context length is 8"}}), PromptTooLong, "takes no prompt of"),
        (Failure(200, b"<html>"), LlmError, "other than a reply"),
    ],
)
async def test_a_refusal_says_who_refused_and_what_to_do(failure: Failure, kind: type[LlmError], said: str) -> None:
    text = await refusal(kind, failure)
    assert (text.startswith("The model m at http://127.0.0.1:"), said in text) == (True, True)


async def test_a_model_that_says_nothing_gives_an_empty_text() -> None:
    assert (await asked(Failure(200, completion(None)))).text == ""
    no_choice: dict[str, object] = {"choices": []}
    assert await asked(Failure(200, {**completion("x"), **no_choice})) == Completion(
        "", Usage(100, 0, 0.001, 1), "empty"
    )
    without = {name: each for name, each in completion("four letters").items() if name != "usage"}
    assert (await asked(Failure(200, without))).usage == Usage(5, 3, 0.00035, 1)


async def test_a_prompt_that_cannot_fit_is_not_sent() -> None:
    assert "about 55 tokens; m takes 40" in await refusal(PromptTooLong, "x", context_tokens=40)


async def test_a_service_that_is_not_there_is_named() -> None:
    with serving_model("x") as service:
        url = service.url
    llm = OpenAiLlm("m", base_url=url, max_retries=0)
    with pytest.raises(LlmUnavailable, match=rf"The model m at {url} cannot be reached: .*\. Check the base URL\."):
        await llm.complete(hello(0, 1))
    await llm.aclose()


async def test_a_service_that_stalls_is_left_at_the_deadline() -> None:
    over = threading.Event()

    def stall(_: object) -> str:
        over.wait(10)
        return "late"

    with serving_model(stall) as service:
        llm = OpenAiLlm("m", base_url=service.url, timeout_s=0.05, max_retries=0)
        with pytest.raises(LlmUnavailable, match=r"did not answer within 0\.05 seconds"):
            await llm.complete(hello(0, 1))
        over.set()
        await llm.aclose()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", ["http://127.0.0.1:{}/v1", "http://localhost:{}/v1", "//ada:pw@localhost:{}"])
async def test_a_redirect_takes_no_prompt_to_another_origin(place: str, status: int) -> None:
    async with serving(answering(json.dumps(completion("x")))) as stranger:
        target = place.format(stranger.host.rpartition(":")[2])
        async with (
            serving(redirecting(target, status)) as server,
            OpenAiLlm("m", base_url=server.url, max_retries=2) as llm,
        ):
            with pytest.raises(LlmError, match=r"it redirects to http://\w+[.\d:]+, .* set its URL\.$"):
                await llm.complete(hello())
        assert (len(server.requests), stranger.connections) == (1, 0)


async def test_a_redirect_within_the_origin_is_followed_with_the_whole_prompt() -> None:
    with serving_model(Failure(308, headers={"Location": "/v2/chat/completions"}), "Good.") as service:
        async with OpenAiLlm("m", base_url=service.url) as llm:
            assert (await llm.complete(hello())).text == "Good."
    assert service.asked[0] == service.asked[1]


async def test_a_redirect_to_what_is_no_address_is_an_error() -> None:
    said = await refusal(LlmError, Failure(307, headers={"Location": "http://[::1"}))
    assert said.endswith("it redirects to an address that cannot be read.")


def unsupported(name: str) -> Failure:
    reason = f"Unsupported parameter: '{name}' is not supported with this model."
    return Failure(400, {"error": {"message": reason, "type": "invalid_request_error", "param": name, "code": "x"}})


async def test_a_model_that_thinks_first_is_asked_in_its_own_way_from_then_on() -> None:
    refusals = [unsupported(name) for name in ("max_tokens", "temperature", "top_p")]
    with serving_model(*refusals, "First.", "Second.") as service:
        llm = OpenAiLlm("m", base_url=service.url, max_retries=0)
        replies = [(await llm.complete(hello(0.4, 50, top_p=0.9))).text for _ in "12"]
        await llm.aclose()
    assert replies == ["First.", "Second."]
    sampling = [(each.temperature, each.top_p, each.max_tokens, each.max_completion_tokens) for each in service.asked]
    assert sampling == [
        (0.4, 0.9, 50, None),
        (0.4, 0.9, None, 4_050),
        (None, 0.9, None, 4_050),
        (None, None, None, 4_050),
        (None, None, None, 4_050),
    ]


def cut_off(text: str | None) -> Failure:
    """Return an answer that ends where no more tokens were allowed."""
    return Failure(200, {**completion("x"), "choices": [{"message": {"content": text}, "finish_reason": "length"}]})


@pytest.mark.parametrize("thoughts", ["", None, "<think>\nFirst I look at"])
async def test_a_model_whose_thoughts_take_all_that_it_may_say_is_given_more_from_then_on(thoughts: str | None) -> None:
    with serving_model(cut_off(thoughts), "Good.", "Better.") as service:
        llm = OpenAiLlm("m", base_url=service.url)
        replies = [await llm.complete(hello(0, 50)) for _ in range(2)]
        await llm.aclose()
    assert [(reply.text, reply.usage.tokens, reply.usage.calls) for reply in replies] == [
        ("Good.", 220, 2),
        ("Better.", 110, 1),
    ]
    assert [request.max_tokens for request in service.asked] == [50, 4_050, 4_050]


async def test_thoughts_get_as_much_room_as_the_context_has() -> None:
    with serving_model(cut_off(""), "Good.") as service:
        llm = OpenAiLlm("m", base_url=service.url, context_tokens=1_000)
        reply = await llm.complete(hello(0, 50))
        await llm.aclose()
    assert (reply.text, [request.max_tokens for request in service.asked]) == ("Good.", [50, 995])


async def test_a_reply_that_is_all_thoughts_is_accounted_for_where_there_is_no_second_one() -> None:
    reply = await asked(cut_off(""), Failure(400), max_retries=0)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "length", Usage(100, 10, 0.002, 1))


async def test_a_reply_that_is_cut_off_is_taken_and_one_that_is_all_thoughts_twice_as_well() -> None:
    assert (await asked(cut_off("<think>hm</think>Goo"))).finish_reason == "length"
    assert (await asked(cut_off("<think>hm"))).usage.calls == 2


async def test_a_parameter_that_is_refused_though_it_was_left_out_is_refused_for_good() -> None:
    assert "Unsupported parameter: 'top_p'" in await refusal(LlmError, unsupported("top_p"), unsupported("top_p"))
    assert "Unsupported parameter: 'model'" in await refusal(LlmError, unsupported("model"))


CHOICE: dict[str, object] = {"message": {"role": "assistant", "content": "Good."}, "finish_reason": "stop"}
PARTS: list[object] = [{"type": "text", "text": "Go"}, {"type": "image"}, {"type": "text", "text": "od."}]


@pytest.mark.parametrize(
    ("changed", "text", "finish_reason"),
    [
        ({"choices": [{**CHOICE, "finish_reason": None}]}, "Good.", ""),
        ({"choices": [{**CHOICE, "finish_reason": 3}]}, "Good.", ""),
        ({"choices": [{**CHOICE, "message": {"content": PARTS}}]}, "Good.", "stop"),
        ({"choices": [{**CHOICE, "message": {"content": 5}}]}, "", "stop"),
        ({"choices": [{**CHOICE, "message": {"content": "\ud83dx"}}]}, "?x", "stop"),
        ({"choices": [{**CHOICE, "message": None}]}, "", "stop"),
        ({"choices": [None]}, "", "empty"),
        ({"choices": None}, "", "empty"),
        ({"choices": "Good."}, "", "empty"),
        ({"choices": {"0": CHOICE}}, "", "empty"),
    ],
)
async def test_an_answer_is_read_whatever_a_service_makes_of_its_form(
    changed: dict[str, object], text: str, finish_reason: str
) -> None:
    reply = await asked(Failure(200, {**completion("x"), **changed}))
    assert (reply.text, reply.finish_reason) == (text, finish_reason)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "100", "completion_tokens": None},
        {"prompt_tokens": -(10**9), "completion_tokens": 10**12},
        {"prompt_tokens": 1.5, "completion_tokens": True},
        [100],
        "100",
    ],
)
async def test_tokens_that_no_service_can_have_counted_are_estimated(usage: object) -> None:
    reply = await asked(Failure(200, {**completion("four letters"), "usage": usage}))
    assert reply.usage == Usage(5, 3, 0.00035, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[1]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"", "Expecting value"),
        (b"\xff\xfe{", "decode"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"error": {"message": "upstream is away"}}', "upstream is away"),
        (b'{"choices": [], "error": "away"}', "away"),
        (b'"' + b"x" * 10_000_001, "more than 10,000,000 bytes"),
    ],
)
async def test_what_is_no_reply_at_all_is_an_error(content: bytes, said: str) -> None:
    text = await refusal(LlmError, Failure(200, content))
    assert ("answered with something other than a reply" in text, said in text) == (True, True)


async def test_an_answer_that_comes_packed_though_nobody_asked_for_it_is_unpacked_within_bounds() -> None:
    def packed(content: bytes, packing: str = "gzip", status: int = 200) -> Failure:
        return Failure(status, gzip.compress(content), {"Content-Encoding": packing})

    assert (await asked(packed(json.dumps(completion("Good.")).encode()))).text == "Good."
    for status in (200, 400):
        assert "it has more than 10,000,000 bytes" in await refusal(LlmError, packed(b"0" * 50_000_000, status=status))
        assert "it comes packed as br, which" in await refusal(LlmError, packed(b"", "br", status))
    broken = Failure(200, b"no gzip", {"Content-Encoding": "gzip"})
    assert "it cannot be unpacked" in await refusal(LlmError, broken)


async def test_an_error_without_end_is_an_error() -> None:
    assert "it has more than 10,000,000 bytes" in await refusal(LlmError, Failure(400, b"0" * 10_000_001))


async def test_an_answer_that_comes_drop_by_drop_is_too_late() -> None:
    async def dripping(_: Asked, wire: Wire) -> None:
        await wire.send(head(200, {"Content-Type": "application/json", "Content-Length": "1000000"}))
        while True:
            await wire.send(b" ")
            await asyncio.sleep(0.02)

    async with serving(dripping) as service:
        llm = OpenAiLlm("m", base_url=service.url, timeout_s=0.3, max_retries=0)
        with pytest.raises(LlmUnavailable, match=r"did not answer within 0\.3 seconds"):
            await llm.complete(hello(0, 1))
        await llm.aclose()


async def test_no_key_is_repeated_wherever_it_comes_from() -> None:
    failures: list[Failure] = [
        Failure(401, {"error": {"message": "Wrong key sk-secret.", "param": ["temperature"]}}),
        Failure(400, {"error": {"message": "Wrong key sk-secret.", "param": ["temperature"]}}),
        Failure(200, {"error": {"message": "Wrong key sk-secret."}}),
    ]
    with serving_model(*failures) as service:
        url = service.url.replace("//", "//user:sk-other@")
        llm = OpenAiLlm("m", base_url=url, api_key=SecretStr("sk-secret"), max_retries=0)
        for _ in failures:
            with pytest.raises(LlmError, match="Wrong key …") as raised:
                await llm.complete(hello(0, 1))
            assert "sk-" not in str(raised.value)
        await llm.aclose()


async def test_a_reply_that_repeats_the_key_is_given_without_it() -> None:
    with serving_model("Your key is sk-a-secret-key, isn't it?") as service:
        llm = OpenAiLlm("m", base_url=service.url, api_key=SecretStr("sk-a-secret-key"))
        reply = await llm.complete(hello(0, 1))
        await llm.aclose()
    assert reply.text == "Your key is …, isn't it?"


def test_a_base_url_with_a_query_is_refused_without_showing_it() -> None:
    with pytest.raises(ValueError, match=r"must end before \? or #") as raised:
        OpenAiLlm("m", base_url="https://example.org/v1?key=sesame")
    assert "sesame" not in str(raised.value)


LOOK = Function("look", "Looks around.", {"type": "object", "properties": {"at": {"type": "string"}}})
LOOKED = FunctionCall("c1", "look", '{"at": "Q1"}')


async def asked_with_tools(*script: Scripted) -> tuple[Completion, list[ServiceAsked]]:
    told = (*HELLO, Message("assistant", "", (LOOKED,)), Message("tool", "Nothing.", call_id="c1"))
    request = LlmRequest(told, "test", 0, 50, tools=(LOOK,), seed=7, stop=("\n\n",), schema={"type": "object"})
    with serving_model(*script) as service:
        async with OpenAiLlm("m", base_url=service.url, max_retries=0) as llm:
            return await llm.complete(request), service.asked


async def test_functions_their_calls_and_results_are_sent_and_calls_come_back() -> None:
    reply, (request,) = await asked_with_tools(
        calling(("look", '{"at": "Q2"}'), ("look", {"at": "Q3"}), ("look", None))
    )
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.calls == (
        FunctionCall("id1", "look", '{"at": "Q2"}'),
        FunctionCall("id2", "look", '{"at": "Q3"}'),
        FunctionCall("id3", "look", "{}"),
    )
    described = {"name": "look", "description": "Looks around.", "parameters": dict(LOOK.parameters)}
    assert request.tools == [{"type": "function", "function": described}]
    before = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "Q1"}'}}
    assert [(each.role, each.tool_calls, each.tool_call_id) for each in request.messages[-2:]] == [
        ("assistant", [before], ""),
        ("tool", [], "c1"),
    ]
    assert (request.seed, request.stop) == (7, ["\n\n"])
    assert request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": {"type": "object"}},
    }


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]},
        {"tool_calls": [{"id": 5, "function": {"name": "look"}}]},
        {"function_call": {"name": "look", "arguments": "{}"}},
    ],
)
async def test_a_call_is_read_whatever_a_service_makes_of_its_form(message: dict[str, object]) -> None:
    choices = [{"message": message, "finish_reason": "tool_calls"}]
    reply, _ = await asked_with_tools(Failure(200, {**completion("x"), "choices": choices}))
    assert reply.calls == (FunctionCall("call_1", "look", "{}"),)


async def test_calls_that_are_none_have_no_name_and_not_more_are_read_than_anybody_means() -> None:
    nonsense: list[object] = [{}, {"function": []}, *[{"function": {"name": "look"}}] * 1_000]
    choices = [{"message": {"tool_calls": nonsense}, "finish_reason": "tool_calls"}]
    reply, _ = await asked_with_tools(Failure(200, {**completion("x"), "choices": choices}))
    assert ([call.name for call in reply.calls[:3]], len(reply.calls)) == (["", "", "look"], 200)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit …"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
        (422, "Function calling is not enabled for models/m"),
    ],
)
async def test_a_model_that_cannot_call_functions_says_so(status: int, reason: str) -> None:
    with pytest.raises(ToolsUnsupported, match=r"The model m at .* cannot call functions: "):
        await asked_with_tools(Failure(status, {"error": {"message": reason}}))
    assert "refused with status" in await refusal(LlmError, Failure(status, {"error": {"message": reason}}))


@pytest.mark.parametrize("reason", ["Invalid schema for function 'look'", "Too many tools: at most 128", "overloaded"])
async def test_a_refusal_of_something_else_is_not_taken_for_one_of_functions(reason: str) -> None:
    with pytest.raises(LlmError, match=reason) as raised:
        await asked_with_tools(Failure(400, {"error": {"message": reason}}))
    assert not isinstance(raised.value, ToolsUnsupported)


async def test_what_a_service_does_not_take_beside_the_prompt_is_left_out_from_then_on() -> None:
    refusals = [unsupported(name) for name in ("seed", "stop", "response_format")]
    reply, asked = await asked_with_tools(*refusals, "Good.")
    assert (reply.text, asked[-1].seed, asked[-1].stop, asked[-1].response_format) == ("Good.", None, None, None)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "Unknown field: response_format"),
        (400, "json_schema is not supported by this model"),
        (422, "Structured outputs are not available"),
    ],
)
async def test_a_service_that_has_no_form_for_replies_is_asked_without_one_from_then_on(
    status: int, reason: str
) -> None:
    request = LlmRequest(HELLO, "test", 0, 9, schema={"type": "object"})
    with serving_model(Failure(status, {"error": {"message": reason}}), "One.", "Two.") as service:
        async with OpenAiLlm("m", base_url=service.url) as llm:
            replies = [(await llm.complete(request)).text for _ in range(2)]
        formats = [each.response_format for each in service.asked]
    assert (replies, [each is None for each in formats]) == (["One.", "Two."], [False, True, True])


async def test_a_model_that_knows_no_system_is_told_the_same_by_the_user() -> None:
    failure = Failure(400, {"error": {"message": "System role not supported"}})
    with serving_model(failure, "One.") as service:
        async with OpenAiLlm("m", base_url=service.url) as llm:
            assert (await llm.complete(hello())).text == "One."
        first, second = service.asked
    assert [each.role for each in first.messages] == ["system", "user", "assistant", "user"]
    assert [each.role for each in second.messages] == ["user", "assistant", "user"]
    assert second.messages[0].content == "Be brief.\n\nHello"
