"""Questions to the page that `explore` serves: the steps of a run come while it goes on, then its answer."""

import json
import os
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent, TextResourceContents

from cli_runs import CALLED, COMMAND, QUESTION
from kg_agents.trace import AnswerLine, RunLine, read_trace
from patience import PATIENCE_S
from scripted_model import Asked, Failure, Scripted, calling, serving_model
from small_graphs import TOKYO, write_story

KEY = "sk-secret-of-mine"


@dataclass(frozen=True)
class Explored:
    """A page that is served: its endpoint, and what the server says."""

    endpoint: str
    said: IO[str]


@contextmanager
def exploring(folder: Path, *words: str) -> Generator[Explored]:
    """Explore graphs; the end of the block kills the server."""
    folders = {f"KG_SEXTANT_{name}_FOLDER": str(folder) for name in ("CACHE", "DATA")}
    environ = {**os.environ, **folders, "OPENAI_API_KEY": KEY, "KG_SEXTANT_HOSTING__AUDIT": "json"}
    command = [*COMMAND, "explore", "--no-browser", *words]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            served = next(line.split()[-1] for line in process.stderr if line.startswith("Serving "))
            yield Explored(served, process.stderr)
        finally:
            process.kill()


@dataclass
class Heard:
    """The lines of one run, as they are sent while it goes on."""

    lines: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        assert (progress, total) == (len(self.lines) + 1, None)
        self.lines.append(json.loads(message or ""))

    def of(self, kind: str) -> list[dict[str, object]]:
        """Return the lines of a kind."""
        return [line for line in self.lines if line["kind"] == kind]


async def ask(endpoint: str, question: str, heard: Heard, **more: object) -> CallToolResult:
    """Ask in a new session."""
    async with Client(endpoint) as client:
        return await client.call_tool("ask", {"question": question, **more}, progress_callback=heard)


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def test_each_line_of_the_record_comes_before_the_answer_and_the_record_is_kept(tmp_path: Path) -> None:
    seen = threading.Event()

    def once_seen(_: Asked) -> Failure:
        assert seen.wait(PATIENCE_S)
        return CALLED[1]

    class Watching(Heard):
        async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
            await super().__call__(progress, total, message)
            if self.of("tool"):
                seen.set()

    heard = Watching()
    with serving_model(CALLED[0], once_seen) as model:
        words = (str(write_story(tmp_path, TOKYO)), "--model", "m", "--base-url", model.url)
        with exploring(tmp_path, *words) as page:
            result = await ask(page.endpoint, QUESTION, heard)
            data = result.structured_content
            assert data is not None
            async with Client(page.endpoint) as client:
                [tool] = (each for each in (await client.list_tools()).tools if each.name == "ask")
                listed = (await client.list_resources()).resources
                [content] = (await client.read_resource(str(data["trace"]))).contents
    assert tool.meta == {"ui": {"visibility": ["app"]}}, "a model that asks a model would pay twice"
    assert text_of(result).splitlines() == [
        "Shinjuku",
        "",
        "Evidence:",
        "  Tokyo (Q1490) | capital (P36) | Shinjuku (Q179645)",
    ]
    shown = {name: data[name] for name in ("status", "knowledge", "outcome", "answers", "evidence", "labels")}
    assert shown == {
        "status": "ok",
        "knowledge": "stated",
        "outcome": "answered",
        "answers": [["Shinjuku", "graph"]],
        "evidence": [["Q1490", "P36", "Q179645"]],
        "labels": {"Q1490": "Tokyo", "Q179645": "Shinjuku"},
    }
    assert [line["kind"] for line in heard.lines if line["kind"] != "doing"][:4] == ["run", "offer", "llm", "tool"]
    assert heard.lines[-1]["kind"] == "answer"
    assert {"kind": "doing", "text": "Waiting for the model"} in heard.lines
    assert all(line["messages"] == [] for line in heard.of("llm"))
    assert (QUESTION, data["trace"]) in [(each.title, str(each.uri)) for each in listed]
    [kept] = (tmp_path / "traces").iterdir()
    assert isinstance(content, TextResourceContents)
    assert content.text == kept.read_text(encoding="utf-8")
    assert isinstance(read_trace(kept)[-1], AnswerLine)
    assert set(model.keys) == {f"Bearer {KEY}"}


async def test_a_request_that_is_closed_ends_the_run_and_its_calls_to_the_model(tmp_path: Path) -> None:
    asked, over = threading.Event(), threading.Event()

    def stalled(_: Asked) -> Failure:
        asked.set()
        assert over.wait(PATIENCE_S)
        return CALLED[0]

    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ask", "arguments": {"question": QUESTION}, "_meta": {"progressToken": 1}},
    }
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    with serving_model(stalled, *CALLED) as model:
        words = (str(write_story(tmp_path, TOKYO)), "--model", "m", "--base-url", model.url)
        with exploring(tmp_path, *words) as page:
            async with (
                httpx2.AsyncClient(timeout=PATIENCE_S) as http,
                http.stream("POST", page.endpoint, json=message, headers=headers) as response,
            ):
                lines = response.aiter_lines()
                while not asked.is_set():
                    await anext(lines)
            ended = await anyio.to_thread.run_sync(next, (line for line in page.said if '"tool": "ask"' in line))
            over.set()
            result = await ask(page.endpoint, QUESTION, Heard())
            other = {**headers, "origin": "http://127.0.0.1:9"}
            refused = await anyio.to_thread.run_sync(lambda: httpx2.post(page.endpoint, json=message, headers=other))
    assert json.loads(ended)["status"] == "cancelled"
    assert refused.status_code == 403, "a page of this machine that is not its own may not spend"
    assert (text_of(result).splitlines()[0], len(model.asked)) == ("Shinjuku", 3)
    ends = sorted(isinstance(read_trace(each)[-1], AnswerLine) for each in (tmp_path / "traces").iterdir())
    assert ends == [False, True]


async def test_two_runs_at_once_are_told_apart(tmp_path: Path) -> None:
    together = threading.Barrier(2)

    def reply(asked: Asked) -> Failure:
        name = "Tokyo" if "Tokyo?" in asked.messages[1].content else "Japan"
        if asked.messages[-1].role == "tool":
            return calling(("answer", {"answers": [{"text": f"About {name}", "results": [1]}]}))
        together.wait(PATIENCE_S)
        return calling(("GetNeighbor", {"entity": name}))

    questions, heard = ("What of Tokyo?", "What of Japan?"), (Heard(), Heard())
    answers: dict[str, str] = {}

    async def put(endpoint: str, question: str, lines: Heard) -> None:
        answers[question] = text_of(await ask(endpoint, question, lines)).splitlines()[0]

    with serving_model(reply) as model:
        words = (str(write_story(tmp_path, TOKYO)), "--model", "m", "--base-url", model.url)
        with exploring(tmp_path, *words) as page:
            async with anyio.create_task_group() as tasks:
                for question, lines in zip(questions, heard, strict=True):
                    tasks.start_soon(put, page.endpoint, question, lines)
    for question, lines in zip(questions, heard, strict=True):
        name = question.removeprefix("What of ").rstrip("?")
        [begun] = lines.of("run")
        looked = [line["arguments"] for line in lines.of("tool") if line["tool"] == "GetNeighbor"]
        assert (begun["question"], looked) == (question, [{"entity": name}])
        assert f"About {name}" in str(lines.lines[-1]) + answers[question]


@pytest.mark.parametrize(
    ("script", "question", "reason"),
    [
        (Failure(401, {"error": {"message": f"Bad key {KEY}"}}), QUESTION, "Bad key …. Check the API key."),
        (Failure(404, {"error": {"message": "no m"}}), QUESTION, "no m. Check the model's name and the base URL."),
        ("x", " ", "question is missing."),
        ("x", "Where?", "Free space there, or set data_folder to another folder."),
    ],
    ids=["a refused key", "an unknown model", "a blank question", "no folder for records"],
)
async def test_what_keeps_a_question_from_being_answered_is_reported(
    tmp_path: Path, script: Scripted, question: str, reason: str
) -> None:
    heard = Heard()
    if question == "Where?":
        (tmp_path / "traces").touch()
    with serving_model(script) as model:
        words = (str(write_story(tmp_path, TOKYO)), "--model", "m", "--base-url", model.url)
        with exploring(tmp_path, *words) as page:
            result = await ask(page.endpoint, question, heard)
    assert (result.is_error, reason in text_of(result)) == (True, True), text_of(result)
    assert KEY not in text_of(result) + json.dumps(heard.lines)


@pytest.mark.parametrize(
    ("named", "evidence"),
    [
        ({"graph": "films"}, [["ex:q1", "ex:p1", "ex:q2"]]),
        ({}, [["ex:q1", "ex:p1", "ex:q2", "people"]]),
    ],
    ids=["one", "all"],
)
async def test_of_several_graphs_one_is_asked_or_all(
    tmp_path: Path, named: dict[str, object], evidence: list[list[str]]
) -> None:
    words: list[str] = []
    for name in ("people", "films"):
        graph = f"""@prefix ex: <http://{name}.example/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
            ex:q1 rdfs:label "One" ; ex:p1 ex:q2 . ex:p1 rdfs:label "over" . ex:q2 rdfs:label "Two" ."""
        (tmp_path / f"{name}.ttl").write_text(graph, encoding="utf-8")
        words.append(f"{name}={tmp_path / name}.ttl")
    script = (
        calling(("GetNeighbor", {"entity": "ex:q1"})),
        calling(("answer", {"answers": [{"text": "Two", "results": [1]}]})),
    )
    with serving_model(*script) as model, exploring(tmp_path, *words, "--model", "m", "--base-url", model.url) as page:
        result = await ask(page.endpoint, "What is over One?", Heard(), **named)
    assert result.structured_content is not None
    assert result.structured_content["evidence"] == evidence
    [kept] = (tmp_path / "traces").iterdir()
    begun = read_trace(kept)[0]
    assert isinstance(begun, RunLine)
    assert begun.graphs == ([] if named else ["people", "films"])


async def test_without_a_model_the_page_has_no_tool_that_asks_one(tmp_path: Path) -> None:
    with exploring(tmp_path, str(write_story(tmp_path, TOKYO))) as page:
        async with Client(page.endpoint) as client:
            names = {each.name for each in (await client.list_tools()).tools}
    assert ("Retrieve" in names, "ask" in names) == (True, False)
