"""What the conformance suite calls, reads and gets to see each kind of content."""

import base64
import json
from typing import Final

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

from kg_server.mcp_server import SextantServer

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE: Final = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"
).decode()
STEP_S: Final = 0.05
"""The suite wants signs of life some time apart."""


def said(*blocks: ContentBlock) -> CallToolResult:
    """Return an answer of these blocks."""
    return CallToolResult(content=list(blocks))


def text(words: str) -> TextContent:
    """Return a block of text."""
    return TextContent(type="text", text=words)


def image() -> ImageContent:
    """Return a block with the smallest image."""
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def resource(uri: str, mime_type: str, content: str) -> EmbeddedResource:
    """Return a block with a resource."""
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=content))


async def simple_text() -> CallToolResult:
    """Say something simple."""
    return said(text("This is a simple text response for testing."))


async def image_content() -> CallToolResult:
    """Show an image."""
    return said(image())


async def audio_content() -> CallToolResult:
    """Play a sound."""
    return said(AudioContent(type="audio", data=SILENCE, mime_type="audio/wav"))


async def embedded_resource() -> CallToolResult:
    """Hand over a resource."""
    return said(resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))


async def multiple_content_types() -> CallToolResult:
    """Answer with three kinds of content."""
    data = json.dumps({"test": "data", "value": 123})
    mixed = resource("test://mixed-content-resource", "application/json", data)
    return said(text("Multiple content types test:"), image(), mixed)


async def error_handling() -> CallToolResult:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


async def tool_with_progress(context: Context[None]) -> CallToolResult:
    """Report progress."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100)
        await anyio.sleep(STEP_S)
    return said(text("Done."))


async def tool_with_logging(context: Context[None]) -> CallToolResult:
    """Write to the client's log."""
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.info(words)  # pyright: ignore[reportDeprecated] - what is to be tested
        await anyio.sleep(STEP_S)
    return said(text("Logged."))


async def logging_tool(context: Context[None]) -> CallToolResult:
    """Write to the client's log as far as it wants."""
    await context.info("A line")  # pyright: ignore[reportDeprecated] - what is to be tested
    return said(text("Logged."))


async def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


async def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PIXEL)


async def watched() -> str:
    """What may be subscribed to."""
    return "Watched resource content"


async def template(id: str) -> str:
    """A resource by its number."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


async def simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


async def prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


async def prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    """A prompt that holds a resource."""
    held = resource(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(held), UserMessage("Please process the embedded resource above.")]


async def prompt_with_image() -> list[UserMessage]:
    """A prompt that holds an image."""
    return [UserMessage(image()), UserMessage("Please analyze the image above.")]


def provide(server: SextantServer) -> None:
    """Add all of them."""
    tools = (simple_text, image_content, audio_content, embedded_resource, multiple_content_types, error_handling)
    for tool in (*tools, tool_with_progress, tool_with_logging, logging_tool):
        server.provide(tool, f"test_{tool.__name__}", ToolAnnotations())
    server.resource("test://static-text", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", mime_type="image/png")(static_binary)
    server.resource("test://watched-resource", mime_type="text/plain")(watched)
    server.resource("test://template/{id}/data", mime_type="application/json")(template)
    for prompt in (simple_prompt, prompt_with_arguments, prompt_with_embedded_resource, prompt_with_image):
        server.prompt(f"test_{prompt.__name__}")(prompt)
