"""Examples for the notes of a graph: from solved questions, and from questions that a model writes and answers."""

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kg_adapters.errors import BackendError, InvalidRequest, KGError
from kg_adapters.folding import fold
from kg_boundary.shown import in_quotes, one_line
from kg_server.commands.output import text_of, warn
from kg_server.commands.tools import Arguments, find_tool, parse_arguments, split_arguments
from kg_server.notes import MAX_BYTES, MAX_LINES, Example, Notes, notes_file, read_notes
from kg_server.settings import Settings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, Tool

    from kg_agents.llm import Llm
    from kg_agents.tools.client import Toolbox
    from kg_server.memory.experience import Solved

_CALLED: Final = re.compile(r"(?P<tool>[\w-]+)\((?P<arguments>.*)\)", re.DOTALL)
_QUERY: Final = re.compile(r"(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)
_HEADING: Final = re.compile(r"^##?\s+(.*?)[\s#]*$", re.MULTILINE)
_NUMBERED: Final = re.compile(r"^\s*(?:[-*]|\d+[.)])\s+")
_APART: Final = "; "
"""What stands between the answers of an example."""
_LONGEST: Final = 300
_SHOWN: Final = 100
_DEFINITION_TOKENS: Final = 2_000
_REPLY_TOKENS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Moved:
    """How many solved questions were moved into the notes, their file, and why others stay, each as a sentence."""

    file: Path
    number: int
    staying: Sequence[str]


async def move_solved(settings: Settings) -> Moved:
    """Move the solved questions of a graph whose calls still give their answers into its notes.

    Raises:
        InvalidRequest: There is no place for notes, they would be too long, or cannot be written.
        KGError: The graph cannot be opened, or the file of solved questions cannot be used.
    """
    from kg_server.app import EXPERIENCE_FILE
    from kg_server.commands.graphs import connected
    from kg_server.memory.experience import ExperienceStore

    file = notes_file(settings.graph, settings.notes)
    if file is None:
        raise InvalidRequest("There is no file beside this graph for its notes. Name one with the setting notes.")
    there = file.exists()
    known = {fold(each.question) for each in read_notes(file).examples} if there else set[str]()
    text = file.read_text(encoding="utf-8-sig") if there else ""
    store = ExperienceStore(settings.data_folder / EXPERIENCE_FILE)
    examples, gone, staying = list[Example](), list[str](), list[str]()
    async with connected(settings) as (graphs, client):
        graph = (await graphs.opened()).adapter
        tools = (await client.list_tools()).tools
        for solved in await store.solved(graph.name):
            example, problem = await _example_of(client, tools, solved)
            if fold(example.question) in known:
                gone.append(solved.question)
            elif problem:
                staying.append(f"{in_quotes(example.question, _LONGEST)} stays where it is: {problem}")
            else:
                examples.append(example)
                gone.append(solved.question)
        _append(file, text, examples)
        await store.remove(graph.name, gone)
    return Moved(file, len(examples), staying)


async def wrong_example(client: "Client", tools: "Sequence[Tool]", example: Example) -> str:
    """Return what is wrong with an example; empty where its calls give its answers."""
    texts: list[str] = []
    for call in example.calls:
        quoted = in_quotes(call, _SHOWN)
        try:
            result = await called(client, tools, call)
        except KGError as error:
            return f"the call {quoted} cannot be made: {error}"
        told = text_of(result)
        if result.is_error:
            return f"the call {quoted} is refused: {one_line(told)}"
        if result.structured_content is not None and result.structured_content.get("status") == "empty":
            return f"the call {quoted} finds nothing."
        texts.append(one_line(told).casefold())
    parts = (part.casefold() for part in example.answer.split(_APART))
    if not all(any(part in text for text in texts) for part in parts):
        return f"no call of this example answers {in_quotes(example.answer, _SHOWN)}."
    return ""


async def called(client: "Client", tools: "Sequence[Tool]", call: str) -> "CallToolResult":
    """Return the result of a call that is written as words of `kg-sextant call`.

    Raises:
        InvalidRequest: It is malformed, or would read a file or change anything.
    """
    try:
        name, *words = shlex.split(call)
    except ValueError as error:
        raise InvalidRequest(f"It cannot be read: {error}.") from error
    if any(word == "-" or word.startswith("@") for word in words):
        raise InvalidRequest("Calls of notes read no files. Write the argument itself.")
    tool = find_tool(tools, name)
    if tool.annotations is None or not tool.annotations.read_only_hint:
        raise InvalidRequest(f"{tool.name} changes what is kept. Use tools that only read.")
    return await client.call_tool(tool.name, parse_arguments(split_arguments(words), tool.input_schema))


async def asked_examples(settings: Settings, number: int) -> Sequence[str]:
    """Return the lines of examples that a model wrote and answered with evidence, for a person to edit.

    Args:
        settings: They name the graph and the model.
        number: How many questions it writes; it is asked nothing where that is 0.

    Raises:
        InvalidRequest: No model is set.
        KGError: The graph cannot be opened, or the model does not answer.
    """
    if not number:
        return ()
    from kg_agents.llm import AgentError
    from kg_agents.tools.client import connect_tools
    from kg_server.app import build_server
    from kg_server.commands.answering import SET_MODEL
    from kg_server.commands.graphs import connected, models_of

    if settings.llm.model is None:
        raise InvalidRequest(f"Questions are written by a model, and none is set. {SET_MODEL}")
    settings = settings.model_copy(update={"notes": None, "learn": False})
    lines: list[str] = []
    try:
        async with (
            connected(settings) as (graphs, client),
            connect_tools(build_server(graphs, settings)) as toolbox,
            models_of(settings, settings.redactor) as (llm, judge, _),
        ):
            assert llm is not None  # noqa: S101 - it is set
            tools = (await client.list_tools()).tools
            definition = await toolbox.call("Schema", {"max_tokens": _DEFINITION_TOKENS})
            for question in await _questions(llm, definition.text, number):
                problem = "it was not answered with evidence."
                if (solved := await _answered(settings, question, toolbox, llm, judge)) is not None:
                    example, problem = await _example_of(client, tools, solved)
                    lines.extend(() if problem else _lines(example))
                if problem:
                    warn(settings.redactor.message(f"{in_quotes(question, _LONGEST)} is left out: {problem}"))
    except AgentError as error:
        raise BackendError(one_line(str(error))) from error
    return lines


async def _answered(
    settings: Settings, question: str, toolbox: "Toolbox", llm: "Llm", judge: "Llm | None"
) -> "Solved | None":
    """Return a question as solved, None where it lacks evidence; the run is recorded as those of `ask` are."""
    from kg_agents.experience import learned_from
    from kg_agents.running import run_question
    from kg_agents.trace import Trace
    from kg_server.commands.answering import TRACES, new_trace, question_of, usual_method
    from kg_server.memory.experience import Solved

    asked = replace(question_of(settings, question, usual_method(settings, ()), (), ()), learn=False)
    with Trace(new_trace(settings.data_folder / TRACES, question)) as trace:
        answer = await run_question(asked, toolbox, llm, trace, judge=judge)
    found = learned_from(answer)
    if found is None:
        return None
    return Solved(question=found.question, calls=found.calls, answers=found.answers, evidence=())


async def _example_of(client: "Client", tools: "Sequence[Tool]", solved: "Solved") -> tuple[Example, str]:
    """Return a solved question as an example with those of its calls that find something, and what is wrong with it."""
    known = {each.name: tuple(Arguments.model_validate(each.input_schema).properties) for each in tools}
    answer = _APART.join(map(one_line, solved.answers))
    example, problem = Example(one_line(solved.question), (), answer, 0), "it has no calls."
    for call in (one_line(_as_words(each, known)) for each in solved.calls):
        alone = replace(example, calls=(call,), answer="")
        if problem := await wrong_example(client, tools, alone):
            continue
        example = replace(example, calls=(*example.calls, call))
    if not example.calls:
        return example, problem
    read = Notes.parse("\n".join(("## Examples", *_lines(example)))).examples
    if [(each.question, each.calls, each.answer) for each in read] != [(example.question, example.calls, answer)]:
        return example, "notes cannot hold its text."
    return example, await wrong_example(client, tools, example)


def _as_words(action: str, tools: Mapping[str, Sequence[str]]) -> str:
    """Return a call as the words behind `kg-sextant call`.

    Args:
        action: The call as a run notes it: an expression, a query, or as in `GetNeighbor(entity=Tokyo)`.
        tools: The names of the arguments of each tool.
    """
    found = _CALLED.fullmatch(action)
    if found is not None and (arguments := tools.get(found["tool"])):
        names = "|".join(map(re.escape, arguments))
        written = filter(None, re.split(rf"(?:\A|, )(?=(?:{names})=)", found["arguments"]))
        return shlex.join((found["tool"], *map(_plain_argument, written)))
    tool, argument = ("Sparql", "query") if _QUERY.match(action) else ("Compose", "expression")
    return shlex.join((tool, f"{argument}={action}"))


def _plain_argument(written: str) -> str:
    """Return an argument with a list as JSON."""
    name, _, value = written.partition("=")
    if not value.startswith("["):
        return written
    try:
        return f"{name}={json.dumps(ast.literal_eval(value), ensure_ascii=False)}"
    except (ValueError, SyntaxError, TypeError):
        return written


def _lines(example: Example) -> Iterator[str]:
    yield example.question
    yield from (f"kg-sextant call {each}" if "`" in each else f"`{each}`" for each in example.calls)
    yield f"Answer: {example.answer}"
    yield ""


def _append(file: Path, text: str, examples: Sequence[Example]) -> None:
    """Add examples at the end of notes.

    Raises:
        InvalidRequest: The notes would be too long, or cannot be written.
    """
    if not examples:
        return
    headings = _HEADING.findall(text)
    heading = () if headings and fold(headings[-1]) == "examples" else ("## Examples", "")
    added = "\n".join((*heading, *(line for each in examples for line in _lines(each))))
    start = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    whole = f"{text}{start}{added}"
    if len(whole.encode()) > MAX_BYTES or len(whole.splitlines()) > MAX_LINES:
        raise InvalidRequest(
            f"The notes {file} would have more than {MAX_BYTES:,} bytes or {MAX_LINES:,} lines. Remove some first."
        )
    try:
        with file.open("a", encoding="utf-8") as notes:
            notes.write(f"{start}{added}")
    except OSError as error:
        raise InvalidRequest(f"The notes {file} cannot be written: {error.strerror or error}.") from error


async def _questions(llm: "Llm", definition: str, number: int) -> Sequence[str]:
    """Return questions that a model writes about a graph."""
    from kg_agents.llm import LlmRequest, Message
    from kg_prompts import render
    from kg_prompts.tools import QuestionsToTry

    prompt = render(QuestionsToTry(definition=definition, number=number))
    reply = await llm.complete(LlmRequest((Message("user", prompt),), "questions", 0.0, _REPLY_TOKENS))
    lines = (one_line(_NUMBERED.sub("", line)).strip() for line in reply.text.splitlines())
    return list(dict.fromkeys(line[:_LONGEST] for line in lines if line.endswith("?")))[:number]
