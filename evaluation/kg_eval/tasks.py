"""The benchmarks as tasks of inspect_ai: `inspect eval kg_eval/qald10 --model … -T data=qald_10-en.json`."""

import json
import shlex
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, get_args

from inspect_ai import Task, task
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
from pydantic import TypeAdapter, ValidationError

from kg_agents.llm import Completion, FunctionCall, LlmRequest, Message, Models, PromptTooLong, Usage
from kg_agents.tools.client import ExactTools, Toolbox, connect_tools
from kg_eval.methods.catalog import method_of, needs_exact_scores
from kg_eval.plan import RunPlan
from kg_eval.questions import BenchmarkName
from kg_eval.running import numbered_records, task_of

_ARGUMENTS: Final = TypeAdapter(dict[str, object])
_ENDS: Final = {"max_tokens": "length"}


@dataclass(frozen=True, slots=True)
class InspectLlm:
    """Asks a model through inspect_ai, which waits, tries again, caches and logs as it was told to."""

    model: Model

    @property
    def name(self) -> str:
        """See `Llm`."""
        return str(self.model)

    async def complete(self, request: LlmRequest) -> Completion:
        """See `Llm`."""
        config = GenerateConfig(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            top_p=request.top_p,
            stop_seqs=list(request.stop) or None,
            seed=request.seed,
        )
        tools = [
            ToolInfo(
                name=each.name, description=each.description, parameters=ToolParams.model_validate(each.parameters)
            )
            for each in request.tools
        ]
        output = await self.model.generate([_message(each) for each in request.messages], tools=tools, config=config)
        if output.stop_reason == "model_length":
            raise PromptTooLong(f"{self.name} takes no prompt of this length.")
        return _completion(output)


def _message(message: Message) -> ChatMessage:
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.content)
        case "user":
            return ChatMessageUser(content=message.content)
        case "tool":
            return ChatMessageTool(content=message.content, tool_call_id=message.call_id)
        case "assistant":
            calls = [ToolCall(id=each.id, function=each.name, arguments=_arguments(each)) for each in message.calls]
            return ChatMessageAssistant(content=message.content, tool_calls=calls or None)


def _arguments(call: FunctionCall) -> dict[str, object]:
    """Return the arguments of a call; none where the model wrote something else, as it was told then."""
    try:
        return _ARGUMENTS.validate_json(call.arguments)
    except ValidationError:
        return {}


def _completion(output: ModelOutput) -> Completion:
    used = output.usage
    usage = Usage(calls=1)
    if used is not None:
        read = used.input_tokens + (used.input_tokens_cache_read or 0) + (used.input_tokens_cache_write or 0)
        usage = Usage(read, used.output_tokens, used.total_cost or 0.0, 1)
    calls = tuple(
        FunctionCall(each.id, each.function, json.dumps(each.arguments)) for each in output.message.tool_calls or ()
    )
    return Completion(output.completion, usage, _ENDS.get(output.stop_reason, output.stop_reason), calls)


def _task_of(benchmark: BenchmarkName) -> Callable[..., Task]:
    @task(name=benchmark)
    def made(
        data: str,
        graph: str | list[str] = "sample",
        method: str = "oda",
        linking: str = "gold",
        settings: str = "",
        seed: int = 0,
        server: str = "",
    ) -> Task:
        written = [each.strip() for each in settings.split(",") if each.strip()]
        fields = {"data": data, "graph": graph, "method": method, "linking": linking, "settings": written, "seed": seed}
        plan = RunPlan.model_validate({"benchmark": benchmark, "model": "inspect", **fields})
        target = server or f"kg-sextant serve {shlex.join(plan.graphs)}"
        exact = needs_exact_scores(method_of(plan.method, plan.settings))
        connect = partial(_connected, target, exact=exact)
        return task_of(plan, numbered_records(plan), connect, lambda: Models(InspectLlm(get_model())))

    return made


@asynccontextmanager
async def _connected(target: str, *, exact: bool) -> AsyncGenerator[Toolbox]:
    """Connect to a server, for ODA in the manner of its paper to one that scores exactly as the paper does."""
    async with connect_tools(target) as served:
        yield ExactTools(served) if exact else served


TASKS: Final[dict[BenchmarkName, Callable[..., Task]]] = {each: _task_of(each) for each in get_args(BenchmarkName)}
"""The tasks by the benchmark that they ask: `kg_eval/qald10` and so on."""
