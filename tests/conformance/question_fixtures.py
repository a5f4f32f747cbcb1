"""What asks the client something before it answers: as a request of its own, or, since 2026-07-28, in its result."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, JsonValue

from conformance.content_fixtures import said, text
from kg_server.mcp_server import SextantServer

Answer: TypeAlias = CallToolResult | InputRequiredResult
Asked: TypeAlias = Context[None]
FIRST: Final = "step1"
SECOND: Final = "step2"


class Person(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def _titled(kind: str) -> dict[str, JsonValue]:
    return {kind: [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]}


Options: TypeAlias = Literal["option1", "option2", "option3"]


class Enumerations(BaseModel):
    untitledSingle: Options  # noqa: N815 - the suite's names
    titledSingle: Annotated[str, Field(json_schema_extra=_titled("oneOf"))]  # noqa: N815
    legacyEnum: Annotated[  # noqa: N815
        str, Field(json_schema_extra={"enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]})
    ]
    untitledMulti: list[Options]  # noqa: N815
    titledMulti: Annotated[list[str], Field(json_schema_extra={"items": _titled("anyOf")})]  # noqa: N815


async def elicitation(message: str, context: Asked) -> CallToolResult:
    """Ask who the user is."""
    return said(text(f"User response: {await context.elicit(message, Person)}"))


async def elicitation_sep1034_defaults(context: Asked) -> CallToolResult:
    """Ask with a default for every kind of value."""
    return said(text(f"Elicitation completed: {await context.elicit('Who are you?', Defaults)}"))


async def elicitation_sep1330_enums(context: Asked) -> CallToolResult:
    """Ask with every kind of choice."""
    return said(text(f"Elicitation completed: {await context.elicit('Choose.', Enumerations)}"))


async def sampling(prompt: str, context: Asked) -> CallToolResult:
    """Let the client's model speak."""
    asked = [SamplingMessage(role="user", content=text(prompt))]
    # Related to the call, it comes over the call's stream; the client may not listen elsewhere yet.
    result = await context.session.create_message(  # pyright: ignore[reportDeprecated]
        asked, max_tokens=100, related_request_id=context.request_id
    )
    return said(text(f"LLM response: {result.content}"))


def question(words: str, name: str, kind: str = "string") -> ElicitRequest:
    """Return the question for one value."""
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=words, requested_schema=schema))


def completion(words: str, max_tokens: int = 100) -> CreateMessageRequest:
    """Return what the client's model is to answer."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=words))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[asked], max_tokens=max_tokens))


def ask(questions: Mapping[str, InputRequest], state: str | None = None) -> InputRequiredResult:
    """Return the result that asks the client."""
    return InputRequiredResult(input_requests=dict(questions), request_state=state)


def answered(context: Asked, *keys: str) -> bool:
    """Tell whether the client answered all of these."""
    return set(keys) <= set(context.input_responses or {})


async def input_required_result_elicitation(context: Asked) -> Answer:
    """Ask for a name, and greet."""
    found = (context.input_responses or {}).get("user_name")
    if not isinstance(found, ElicitResult) or not found.content:
        return ask({"user_name": question("What is your name?", "name")})
    return said(text(f"Hello, {found.content.get('name')}!"))


async def input_required_result_sampling(context: Asked) -> Answer:
    """Ask the client's model."""
    if not answered(context, "capital_question"):
        return ask({"capital_question": completion("What is the capital of France?")})
    return said(text(str(context.input_responses)))


async def input_required_result_list_roots(context: Asked) -> Answer:
    """Ask for the client's roots."""
    if not answered(context, "client_roots"):
        return ask({"client_roots": ListRootsRequest()})
    return said(text(str(context.input_responses)))


async def input_required_result_request_state(context: Asked) -> Answer:
    """Ask, and recognise the state that comes back."""
    if not answered(context, "confirm") or context.request_state != "asked":
        return ask({"confirm": question("Please confirm", "ok", "boolean")}, "asked")
    return said(text("state-ok"))


async def input_required_result_tampered_state(context: Asked) -> Answer:
    """Ask, with a state that nobody may change."""
    return await input_required_result_request_state(context)


async def input_required_result_multiple_inputs(context: Asked) -> Answer:
    """Ask three things at once."""
    if not answered(context, "user_name", "greeting", "client_roots"):
        questions: dict[str, InputRequest] = {
            "user_name": question("What is your name?", "name"),
            "greeting": completion("Generate a greeting", 50),
            "client_roots": ListRootsRequest(),
        }
        return ask(questions, "asked")
    return said(text("All answered."))


async def input_required_result_multi_round(context: Asked) -> Answer:
    """Ask twice."""
    if context.request_state == SECOND and answered(context, SECOND):
        return said(text("Both answered."))
    if context.request_state == FIRST and answered(context, FIRST):
        return ask({SECOND: question("Step 2: What is your favorite color?", "color")}, SECOND)
    return ask({FIRST: question("Step 1: What is your name?", "name")}, FIRST)


async def input_required_result_capabilities(context: Asked) -> Answer:
    """Ask only what the client can answer."""
    can = context.client_capabilities
    questions: dict[str, InputRequest] = {}
    if can is not None and can.sampling is not None:
        questions["greeting"] = completion("Generate a greeting")
    if can is not None and can.elicitation is not None:
        questions["user_name"] = question("What is your name?", "name")
    return ask(questions) if questions else said(text("There is nobody to ask."))


async def streaming_elicitation(context: Asked) -> Answer:
    """Ask in the result, never by a request of its own."""
    return await input_required_result_elicitation(context)


async def missing_capability(context: Asked) -> CallToolResult:
    """Need sampling."""
    can = context.client_capabilities
    if can is None or can.sampling is None:
        needed: dict[str, object] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs a client that samples.", needed)
    return said(text("It does."))


async def input_required_result_prompt(context: Asked) -> str | InputRequiredResult:
    """A prompt that asks for its context."""
    if not answered(context, "user_context"):
        return ask({"user_context": question("What context should the prompt use?", "context")})
    return f"Use this context: {context.input_responses}"


def provide(server: SextantServer) -> None:
    """Add all of them."""
    tools = (
        *(elicitation, elicitation_sep1034_defaults, elicitation_sep1330_enums, sampling),
        *(input_required_result_elicitation, input_required_result_sampling, input_required_result_list_roots),
        *(input_required_result_request_state, input_required_result_tampered_state),
        *(input_required_result_multiple_inputs, input_required_result_multi_round),
        *(input_required_result_capabilities, streaming_elicitation, missing_capability),
    )
    for tool in tools:
        server.provide(tool, f"test_{tool.__name__}", ToolAnnotations())
    server.prompt(f"test_{input_required_result_prompt.__name__}")(input_required_result_prompt)
