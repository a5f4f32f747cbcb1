"""Answers that are shown while a model writes them."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from pydantic import SecretStr

from fault_endpoint import Asked as Request
from fault_endpoint import Script, Wire, head, serving
from kg_agents.drafts import drafted
from kg_agents.llm import Completion, FunctionCall, LlmRequest, LlmUnavailable, Message, Usage
from kg_agents.openai_llm import OpenAiLlm
from kg_agents.scripted_llm import ScriptedLlm
from kg_agents.watching import WatchedLlm, Watcher
from scripted_model import Failure, completion, event, in_parts, serving_model

KEY = "sk-a-secret-key"
EVENTS = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
DONE = (event(json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]})), event("[DONE]"))


@dataclass
class Heard:
    """What was told of a reply while it was written."""

    texts: list[str] = field(default_factory=list[str])
    told: anyio.Event = field(default_factory=anyio.Event)

    @property
    def request(self) -> LlmRequest:
        return LlmRequest((Message("user", "Hello"),), "answer", 0, 50, on_part=self)

    def __call__(self, so_far: Completion) -> None:
        self.texts.append(so_far.text)
        self.told.set()
        self.told = anyio.Event()


def delta(text: str) -> bytes:
    return event(json.dumps({"choices": [{"delta": {"content": text}}]}))


async def send(wire: Wire, part: bytes) -> None:
    await wire.send(b"%x\r\n%s\r\n" % (len(part), part))


@asynccontextmanager
async def model(*scripts: Script, timeout_s: float = 60) -> AsyncGenerator[OpenAiLlm]:
    async with serving(*scripts) as service:
        url = service.url.removesuffix("/sparql")
        async with OpenAiLlm("m", base_url=url, api_key=SecretStr(KEY), timeout_s=timeout_s, max_retries=0) as llm:
            yield llm


def sending(parts: Sequence[bytes], heard: Heard | None = None) -> Script:
    """Send an answer in parts, each once the one before was told."""

    async def script(_: Request, wire: Wire) -> None:
        await wire.send(head(200, EVENTS))
        for part in parts:
            waits = heard.told if heard else None
            await send(wire, part)
            if waits is not None and b'"content"' in part:
                with anyio.fail_after(10):
                    await waits.wait()
        await wire.send(b"0\r\n\r\n")

    return script


async def test_what_a_model_says_is_told_before_it_has_said_all() -> None:
    heard = Heard()
    usage = event(json.dumps({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 3}}))
    async with model(
        sending([delta("Lyon"), b": keep-alive\n\n", delta(" and Ly"), delta("s\u2028"), *DONE, usage], heard)
    ) as llm:
        reply = await llm.complete(heard.request)
    assert heard.texts == ["Lyon", "Lyon and Ly", "Lyon and Lys\u2028"]
    assert reply == Completion("Lyon and Lys\u2028", Usage(100, 3, 0.0, 1), "stop")


async def test_events_and_characters_may_be_cut_anywhere() -> None:
    heard = Heard()
    whole = b"".join((delta("Šü"), delta("wüan"), *DONE)).replace(b"\\u0160", "Š".encode())
    async with model(sending([whole[at : at + 1] for at in range(len(whole))])) as llm:
        reply = await llm.complete(heard.request)
    assert (heard.texts, reply.text) == (["Šü", "Šüwüan"], "Šüwüan")


async def test_no_part_of_the_key_is_told_though_the_next_part_completes_it() -> None:
    heard = Heard()
    async with model(sending([*map(delta, ("It is ", "sk-a-se", "cret", "-key", ".")), *DONE], heard)) as llm:
        reply = await llm.complete(heard.request)
    assert heard.texts == ["It is ", "It is …", "It is …", "It is …", "It is …."]
    assert reply.text == "It is …."


async def test_calls_come_in_parts_too() -> None:
    seen: list[str] = []
    written = '{"answers": [{"text": "Lyon", "results": [1]}, {"text": "Lys"}]}'
    message = {"content": None, "tool_calls": [{"id": "a", "function": {"name": "answer", "arguments": written}}]}
    whole = {**completion(None), "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    with serving_model(Failure(200, whole)) as service:
        async with OpenAiLlm("m", base_url=service.url) as llm:
            asked = LlmRequest((Message("user", "Hello"),), "tools", 0, 50)
            reply = await WatchedLlm(llm, Watcher(on_draft=seen.append)).complete(asked)
    assert reply == Completion("", Usage(100, 10, 0.0, 1), "tool_calls", (FunctionCall("a", "answer", written),))
    assert seen[-1] == "Lyon\nLys"
    assert (service.asked[0].stream, service.asked[0].stream_options) == (True, {"include_usage": True})


@pytest.mark.parametrize(
    "refusal",
    [
        Failure(400, {"error": {"message": "no", "param": "stream"}}),
        Failure(422, {"error": {"message": "Streaming is not supported for this model."}}),
        Failure(501, b"Not implemented"),
        Failure(200, b"data: {not json\n\n", {"Content-Type": "text/event-stream"}),
        Failure(200, delta("cut sh"), {"Content-Type": "text/event-stream"}),
        Failure(
            200, delta("cut sh"), {"Content-Type": "text/event-stream", "Content-Length": "9999", "Connection": "close"}
        ),
        Failure(200, json.dumps(completion("whole")).encode()),
    ],
)
async def test_a_service_that_cannot_stream_is_asked_for_a_whole_reply_from_then_on(refusal: Failure) -> None:
    heard = Heard()
    whole_at_once = isinstance(refusal.content, bytes) and refusal.content.startswith(b"{")
    with serving_model(refusal, "whole") as service:
        async with OpenAiLlm("m", base_url=service.url, max_retries=0, timeout_s=5) as llm:
            replies = [(await llm.complete(heard.request)).text for _ in range(2)]
        streams = [each.stream for each in service.asked]
    assert (replies, streams) == (["whole"] * 2, [True, False] if whole_at_once else [True, False, False])


async def test_a_service_without_options_for_streams_streams_all_the_same() -> None:
    heard = Heard()
    with serving_model(Failure(400, {"error": {"message": "unknown field stream_options"}}), "Lyon") as service:
        async with OpenAiLlm("m", base_url=service.url, max_retries=0) as llm:
            assert (await llm.complete(heard.request)).text == "Lyon"
        sent = [(each.stream, each.stream_options is None) for each in service.asked]
    assert (sent, heard.texts) == ([(True, False), (True, True)], ["Lyon"])


async def test_a_stream_without_end_is_left_at_the_deadline() -> None:
    async def endless(_: Request, wire: Wire) -> None:
        await wire.send(head(200, EVENTS))
        while True:
            await send(wire, delta("and "))
            await anyio.sleep(0.02)

    async with model(endless, timeout_s=0.3) as llm:
        with pytest.raises(LlmUnavailable, match=r"did not answer within 0\.3 seconds"):
            await llm.complete(Heard().request)


async def test_an_error_amid_a_stream_is_the_error_of_the_service() -> None:
    failed = event(json.dumps({"error": {"message": f"Out of memory, {KEY}."}}))
    async with model(sending([delta("Ly"), failed])) as llm:
        with pytest.raises(Exception, match=r"something other than a reply: Out of memory, …"):
            await llm.complete(Heard().request)


async def test_nothing_is_streamed_that_is_no_final_answer_or_that_nobody_watches() -> None:
    async def asked(purpose: str, watcher: Watcher) -> LlmRequest:
        llm = ScriptedLlm(["x"])
        await WatchedLlm(llm, watcher).complete(LlmRequest((Message("user", "?"),), purpose, 0, 1))
        return llm.asked[0]

    watched = Watcher(on_draft=lambda _: None)
    inner = ("mentions", "linking", "action", "reflection", "generation", "plan", "thought", "judge")
    assert [(await asked(each, watched)).on_part for each in inner] == [None] * len(inner)
    assert (await asked("turn", watched)).on_part is not None
    assert (await asked("turn", Watcher())).on_part is None


def said(text: str) -> Completion:
    return Completion(text)


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        (said(""), ""),
        (said("Thought: the answer is near"), ""),
        (said("Thought: a\nKeep: 1\nAction: Answer\nAnswer:\nLyon [1]\nThe Riv"), "Lyon\nThe Riv"),
        (said("Answer: Lyon [1, 2"), "Lyon"),
        (said("Answer:\nLyon [1]\nOwn knowledge:\nParis"), "Lyon"),
        (said("Action: Answer\nNot in the graph: her birth"), "Not in the graph: her birth"),
        (said("<think>Answer: 7</think>Thought: x\nAction: Finish[Lyon, Ly"), "Lyon, Ly"),
        (said("<think>Answer: 7"), ""),
        (said("Action: Finish[Lyon]"), "Lyon"),
        (
            said('{"thought": "x", "action": "Answer", "answers": [{"text": "Lyon", "facts": [1]}, {"text": "Ly'),
            "Lyon\nLy",
        ),
        (said('{"plan": "", "answers": ["Lyon", "Ly'), "Lyon\nLy"),
        (said('```json\n{"answers": [7, true, null, ["x"], {"no": 1}], "x'), "7\ntrue"),
        (said('{"answers": [], "not_in_graph": "no birth'), "no birth"),
        (said('{"answers": ["a\\ud83'), "a"),
        (said('{"answers": ["a\\ud83d"'), ""),
        (said("{]"), ""),
        (said("```"), ""),
        (Completion("", calls=(FunctionCall("1", "observe", '{"answers": ["x"]}'),)), ""),
        (Completion("", calls=(FunctionCall("1", "answer", ""),)), ""),
        (
            Completion("", calls=(FunctionCall("1", "answer", '{"outcome": "not_in_graph", "reason": "no bir'),)),
            "no bir",
        ),
    ],
)
def test_the_answers_of_a_reply_are_read_before_it_is_whole(reply: Completion, answers: str) -> None:
    assert drafted(reply) == answers


def test_the_test_service_sends_what_it_would_send_as_a_whole() -> None:
    assert in_parts(completion("Lyon and Lys")).count(b"data: ") == 3 + 3
