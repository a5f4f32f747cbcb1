"""Models behind an OpenAI-compatible service: OpenAI, vLLM, Ollama, llama.cpp and others."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import httpx2
from pydantic import SecretStr

from kg_agents.chat_replies import ChatReply, read_chat_reply
from kg_agents.chat_requests import (
    STREAM,
    chat_body,
    estimated_tokens,
    refused_in,
    refused_stream,
    refuses_tools,
    streams,
)
from kg_agents.chat_streams import EVENTS, BrokenStream, read_stream
from kg_agents.llm import Completion, LlmError, LlmRequest, LlmUnavailable, PromptTooLong, ToolsUnsupported, Usage
from kg_agents.texts import tokens_in, whole_characters, without_thinking
from kg_boundary.addresses import base_url_problem, masked
from kg_boundary.bodies import ASKED_FOR, AnswerBounds
from kg_boundary.secrets import Redactor

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

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
        reply = await self._ask(request)
        text = whole_characters(reply.text)
        prompt_tokens = estimated_tokens(request) if reply.prompt_tokens is None else reply.prompt_tokens
        completion_tokens = reply.completion_tokens
        if completion_tokens is None or reply.finish_reason == "empty":
            completion_tokens = tokens_in(text) + sum(tokens_in(call.arguments) for call in reply.calls)
        cost = self._prices.cost(prompt_tokens, completion_tokens)
        return Completion(text, Usage(prompt_tokens, completion_tokens, cost, 1), reply.finish_reason, reply.calls)

    def _check_length(self, request: LlmRequest) -> None:
        if self._context_tokens is None:
            return
        needed = estimated_tokens(request) + request.max_tokens + (_LEAST_THINKING if self._thinks else 0)
        if needed > self._context_tokens:
            raise PromptTooLong(
                f"Prompt and reply need about {needed:,} tokens; {self._model} takes {self._context_tokens:,}."
            )

    async def _ask(self, request: LlmRequest) -> ChatReply:
        import openai  # noqa: PLC0415 - takes a third of a second, which only those should wait for who use a model

        refused = self._refused
        body = chat_body(self._model, request, self._allowed(request), refused)
        try:
            return read_chat_reply(self._redactor.data(await self._posted(body, request)))
        except BrokenStream:
            self._refused = refused | {STREAM}
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

    async def _posted(self, body: Mapping[str, object], request: LlmRequest) -> bytes:
        """Send a request, and return the answer as one that comes as a whole.

        Raises:
            BrokenStream: It comes in parts that cannot be read.
        """
        streamed = streams(request, self._refused)
        path = "/chat/completions"
        answer = await self._connected().post(path, cast_to=httpx2.Response, body=body, stream=streamed)
        assert isinstance(answer, httpx2.Response)  # noqa: S101 - it is what was asked for
        if not streamed:
            return answer.content
        try:
            if not answer.headers.get("content-type", "").startswith(EVENTS):
                self._refused |= {STREAM}
                return await answer.aread()
            return await read_stream(answer.aiter_bytes(), partial(self._tell, request))
        except httpx2.TimeoutException as error:
            raise LlmUnavailable(self._too_late) from error
        except httpx2.HTTPError as error:
            raise BrokenStream("the connection broke") from error
        finally:
            await answer.aclose()

    def _tell(self, request: LlmRequest, so_far: bytes) -> None:
        """Tell what a reply says so far, without what is secret, or could become it with the next part."""
        if request.on_part is None:
            return
        reply = read_chat_reply(so_far)
        hidden = self._redactor.text
        calls = tuple(replace(call, arguments=hidden(call.arguments)) for call in reply.calls)
        request.on_part(Completion(hidden(whole_characters(reply.text)), Usage(), "", calls))

    def _refused_by(self, error: "APIStatusError", request: LlmRequest) -> frozenset[str]:
        """Return what of a request a service does not take, and is asked without from then on."""
        named, reason = frozenset[str](), self._quoted(error)
        if error.status_code in {400, 422}:
            named = refused_in(request, str(error.param), reason)
        return named or refused_stream(request, error.status_code, reason)

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
        if request.tools and status not in {401, 403, 429} and refuses_tools(reason):
            return ToolsUnsupported(f"{self._where} cannot call functions: {reason}.")
        if status in {400, 413, 422} and any(each in reason.lower() for each in _TOO_LONG):
            return PromptTooLong(f"{self._where} takes no prompt of this length: {reason}")
        advice = f" {_ADVICE[status]}" if status in _ADVICE else ""
        message = f"{self._where} refused with status {status}: {reason}.{advice}"
        return LlmUnavailable(message) if status in _ADVICE or status >= 500 else LlmError(message)


def _value_of(key: SecretStr | None) -> str:
    return "" if key is None else key.get_secret_value()
