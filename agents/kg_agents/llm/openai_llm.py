"""A language model behind any OpenAI-compatible service: requests, replies and failures."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Final, Self, TypeAlias

import httpx2
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from kg_agents.llm import (
    Completion,
    FunctionCall,
    LlmError,
    LlmRequest,
    LlmUnavailable,
    Message,
    PromptTooLong,
    ToolsUnsupported,
    Usage,
    estimated_tokens,
)
from kg_agents.llm.texts import read_json, tokens_in, without_thinking
from kg_boundary.addresses import base_url_problem, masked
from kg_boundary.bodies import ASKED_FOR, AnswerBounds
from kg_boundary.secrets import Redactor

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

SYSTEM: Final = "system"
"""The role that some models do not know."""

OPTIONAL: Final = frozenset({"temperature", "top_p", "max_tokens", "stop", "seed", "response_format"})
"""What a service may refuse, and is then asked without."""

_NO_FORMAT: Final = re.compile(r"response_format|json_schema|structured (?:output|response)|grammar", re.IGNORECASE)
_NO_SYSTEM: Final = re.compile(r"\bsystem\b.{0,20}\b(?:role|message|prompt|instruction)", re.IGNORECASE)

_NO_TOOLS: Final = re.compile(
    r"(?:\bnot|n't|\bno\b).{0,40}\bsupport.{0,40}\b(?:tool|function)"
    r"|\b(?:tools?|functions?|tool_choice|calling)\b.{0,40}(?:\bnot|n't)\b.{0,20}\b(?:support|enabled)"
    r"|tool choice requires|tools param requires",
    re.IGNORECASE,
)


def chat_body(model: str, request: LlmRequest, max_tokens: int, refused: frozenset[str]) -> dict[str, object]:
    """Return the body of a request.

    Args:
        model: The model's name.
        request: What it is asked.
        max_tokens: How long the reply may be, with the thoughts before it.
        refused: What the service does not take.
    """
    schema = {"name": "reply", "schema": request.schema}
    optional = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) or None,
        "seed": request.seed,
        "response_format": {"type": "json_schema", "json_schema": schema} if request.schema else None,
    }
    tools = [{"type": "function", "function": asdict(each)} for each in request.tools]
    return {
        "model": model,
        "messages": [_message(each) for each in _spoken(request.messages, merged=SYSTEM in refused)],
        "max_completion_tokens" if "max_tokens" in refused else "max_tokens": max_tokens,
        **{name: value for name, value in optional.items() if value is not None and name not in refused},
        **({"tools": tools} if tools else {}),
    }


def refused_in(request: LlmRequest, named: str, reason: str) -> frozenset[str]:
    """Return what of a request a service does not take: the parameter that it names, or what its reason speaks of.

    Args:
        request: The request.
        named: The parameter that the refusal is about; empty where it does not say.
        reason: Why it refused.
    """
    refused = OPTIONAL & {named}
    if not refused and request.schema is not None and _NO_FORMAT.search(reason):
        refused = frozenset({"response_format"})
    if not refused and request.messages[0].role == SYSTEM and _NO_SYSTEM.search(reason):
        refused = frozenset({SYSTEM})
    return refused


def _spoken(messages: Sequence[Message], *, merged: bool) -> Sequence[Message]:
    """Return messages, with what the system says in the first other one where the service knows no such role."""
    first, *others = messages
    if not merged or first.role != SYSTEM or not others:
        return messages
    return (replace(others[0], content=f"{first.content}\n\n{others[0].content}"), *others[1:])


def _message(message: Message) -> Mapping[str, object]:
    spoken: dict[str, object] = {"role": message.role, "content": message.content}
    if message.call_id:
        spoken["tool_call_id"] = message.call_id
    if message.calls:
        spoken["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return spoken


MAX_CALLS: Final = 200
"""How many calls of one reply are read."""

_Counted: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=100_000_000)]


class _Lenient(BaseModel):
    """A part of an answer, in which a field of another type than expected counts as absent."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _or_absent(cls, value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
        try:
            return read(value)
        except ValidationError:
            return cls.model_fields[info.field_name or ""].get_default(call_default_factory=True)


def _written(arguments: object) -> object:
    """Return arguments as a text; some services send them as an object."""
    return arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments)


class _Part(_Lenient):
    text: str = ""


class _Function(_Lenient):
    name: str = ""
    arguments: Annotated[str, BeforeValidator(_written)] = "{}"


class _Call(_Lenient):
    id: str = ""
    function: _Function = _Function()


class _Message(_Lenient):
    content: str | list[_Part] = ""
    tool_calls: list[_Call] = []
    function_call: _Function | None = None

    @property
    def text(self) -> str:
        """What it says, as a whole or, as some services send it, in parts."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class _Choice(_Lenient):
    finish_reason: str = ""
    message: _Message = _Message()


class _Usage(_Lenient):
    prompt_tokens: _Counted | None = None
    completion_tokens: _Counted | None = None


class _Failure(_Lenient):
    message: str = ""


class _Answer(_Lenient):
    """The body of an answer: the first choice is the reply; where there is none, an error may say why."""

    choices: list[_Choice] = []
    usage: _Usage = _Usage()
    error: _Failure | str | None = None


def _read(content: bytes) -> _Answer:
    """Read the body of an answer.

    Raises:
        ValueError: It is not a JSON object, or says what went wrong instead of a reply.
    """
    try:
        answer = _Answer.model_validate(read_json(content))
    except ValidationError as error:
        raise ValueError("it is not a JSON object") from error
    if answer.error and not answer.choices:
        raise ValueError(answer.error if isinstance(answer.error, str) else answer.error.message or "it is an error")
    return answer


def _calls_of(message: _Message) -> tuple[FunctionCall, ...]:
    """Return the functions that a message calls; some services give calls no id, and some know one call only."""
    legacy = [] if message.function_call is None else [_Call(function=message.function_call)]
    return tuple(
        FunctionCall(call.id or f"call_{number}", call.function.name, call.function.arguments)
        for number, call in enumerate((message.tool_calls or legacy)[:MAX_CALLS], start=1)
    )


OPENAI_URL: Final = "https://api.openai.com/v1"
_NO_KEY: Final = "none"
_MAX_QUOTED: Final = 300
_THINKING_TOKENS: Final = 4_000
"""How much a model that thinks before it replies may think, where its context has room for it."""
_LEAST_THINKING: Final = 500
"""How much room there must be for it."""
_TOO_LONG: Final = (
    *("context_length", "context length", "context size", "context window", "maximum context", "too many tokens"),
    *("prompt is too long", "input is too long", "reduce the length", "token count exceeds"),
)
_ADVICE: Final = {
    401: "Check the API key.",
    403: "Check what the API key allows.",
    404: "Check the model's name and the base URL.",
    429: "Too many requests, or no credit left: wait, or check the account.",
}


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, of prompts and of replies."""

    prompt: float = 0.0
    completion: float = 0.0

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of one call."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


class OpenAiLlm:
    """Replies through `/chat/completions`; failed requests are repeated with pauses, as the service asks.

    Args:
        model: The model's name.
        base_url: Where the service is, with its `/v1`.
        api_key: The key; None for a service that needs none.
        timeout_s: The most seconds that one request may take.
        max_retries: How often a request is repeated after 429, 5xx or a broken connection.
        context_tokens: How much the model takes, prompt and reply together; None where only the service knows.
        prices: What tokens cost, for `Usage.cost`.
        redactor: What nobody must be shown, beside the key and what the URL holds.

    Raises:
        ValueError: The URL cannot have paths appended.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
        api_key: SecretStr | None = None,
        timeout_s: float = 60.0,
        max_retries: int = 3,
        context_tokens: int | None = None,
        prices: Prices | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        if problem := base_url_problem(base_url):
            raise ValueError(f"The base URL cannot be used: {problem}.")
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._context_tokens = context_tokens
        self._prices = prices or Prices()
        self._redactor = (redactor or Redactor()).also_in(base_url, key=_value_of(api_key))
        self._client: AsyncOpenAI | None = None
        self._refused: frozenset[str] = frozenset()
        self._thinks = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        completion = await self._completed(request)
        said = completion.calls or without_thinking(completion.text)
        if completion.finish_reason != "length" or self._thinks or said:
            return completion
        # All that it was allowed to say were thoughts: from now on there is room for them.
        self._thinks = True
        try:
            again = await self._completed(request)
        except LlmError:
            return completion
        return replace(again, usage=completion.usage + again.usage)

    async def __aenter__(self) -> Self:
        """Close the connections at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _completed(self, request: LlmRequest) -> Completion:
        self._check_length(request)
        answer = await self._ask(request)
        choice = answer.choices[0] if answer.choices else _Choice(finish_reason="empty")
        text, calls, used = choice.message.text, _calls_of(choice.message), answer.usage
        prompt_tokens = estimated_tokens(request) if used.prompt_tokens is None else used.prompt_tokens
        completion_tokens = used.completion_tokens
        if completion_tokens is None or not answer.choices:
            completion_tokens = tokens_in(text) + sum(tokens_in(call.arguments) for call in calls)
        cost = self._prices.cost(prompt_tokens, completion_tokens)
        return Completion(text, Usage(prompt_tokens, completion_tokens, cost, 1), choice.finish_reason, calls)

    def _check_length(self, request: LlmRequest) -> None:
        if self._context_tokens is None:
            return
        needed = estimated_tokens(request) + request.max_tokens + (_LEAST_THINKING if self._thinks else 0)
        if needed > self._context_tokens:
            raise PromptTooLong(
                f"Prompt and reply need about {needed:,} tokens; {self._model} takes {self._context_tokens:,}."
            )

    async def _ask(self, request: LlmRequest) -> _Answer:
        import openai  # noqa: PLC0415 - takes a third of a second, which only those should wait for who use a model

        refused = self._refused
        body = chat_body(self._model, request, self._allowed(request), refused)
        try:
            answer = await self._connected().post("/chat/completions", cast_to=httpx2.Response, body=body)
            return _read(self._redactor.data(answer.content))
        except openai.APIStatusError as error:
            named = self._refused_by(error, request) - refused
            if not named:
                raise self._refusal(error, request) from error
            # Models that think take no sampling, and count their tokens under another name.
            self._refused = refused | named
            self._thinks = self._thinks or "max_tokens" in named
        except openai.APITimeoutError as error:
            raise LlmUnavailable(self._too_late) from error
        except openai.APIConnectionError as error:
            raise LlmUnavailable(
                f"{self._where} cannot be reached: {self._quoted(error.__cause__ or error)}. Check the base URL."
            ) from error
        except (openai.APIError, ValueError) as error:
            raise LlmError(
                f"{self._where} answered with something other than a reply: {self._quoted(error)}."
            ) from error
        return await self._ask(request)

    def _refused_by(self, error: "APIStatusError", request: LlmRequest) -> frozenset[str]:
        """Return what of a request a service does not take, and is asked without from then on."""
        if error.status_code not in {400, 422}:
            return frozenset()
        return refused_in(request, str(error.param), self._quoted(error))

    def _allowed(self, request: LlmRequest) -> int:
        """Return how long a reply may be, with the thoughts before it."""
        if not self._thinks:
            return request.max_tokens
        allowed = request.max_tokens + _THINKING_TOKENS
        left = self._context_tokens
        return allowed if left is None else min(allowed, left - estimated_tokens(request))

    def _connected(self) -> "AsyncOpenAI":
        if self._client is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpx2Client  # noqa: PLC0415 - see above

            self._client = AsyncOpenAI(
                api_key=_value_of(self._api_key) or _NO_KEY,
                base_url=self._base_url,
                timeout=self._timeout_s,
                max_retries=self._max_retries,
                default_headers=ASKED_FOR,
                http_client=DefaultAsyncHttpx2Client(
                    timeout=self._timeout_s, event_hooks={"response": [AnswerBounds(self._timeout_s)]}
                ),
            )
        return self._client

    @property
    def _where(self) -> str:
        return f"The model {self._model} at {masked(self._base_url)}"

    @property
    def _too_late(self) -> str:
        return f"{self._where} did not answer within {self._timeout_s:g} seconds."

    def _quoted(self, error: BaseException) -> str:
        """Return what an error says, briefly and without the key, which some services repeat."""
        line = " ".join(self._redactor.message(str(error)).split()).rstrip(".")
        return line if len(line) <= _MAX_QUOTED else f"{line[:_MAX_QUOTED]}…"

    def _refusal(self, error: "APIStatusError", request: LlmRequest) -> LlmError:
        status, reason = error.status_code, self._quoted(error)
        if request.tools and status not in {401, 403, 429} and _NO_TOOLS.search(reason):
            return ToolsUnsupported(f"{self._where} cannot call functions: {reason}.")
        if status in {400, 413, 422} and any(each in reason.lower() for each in _TOO_LONG):
            return PromptTooLong(f"{self._where} takes no prompt of this length: {reason}")
        advice = f" {_ADVICE[status]}" if status in _ADVICE else ""
        message = f"{self._where} refused with status {status}: {reason}.{advice}"
        return LlmUnavailable(message) if status in _ADVICE or status >= 500 else LlmError(message)


def _value_of(key: SecretStr | None) -> str:
    return "" if key is None else key.get_secret_value()
