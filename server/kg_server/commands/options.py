"""The table of options that set a setting, with its description as their help, and of those that commands share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from typer.models import ArgumentInfo, OptionInfo

from kg_server.settings import FIELDS

OPTIONS: Final[Mapping[str, str]] = {
    "model": "llm.model",
    "base_url": "llm.base_url",
    "judge": "llm.judge",
    "reflector": "llm.reflector",
    "label": "relations.labels",
    "alias": "relations.aliases",
    "description": "relations.descriptions",
    "type": "relations.types",
    "label_key": "relations.label_keys",
    "prefix": "prefixes",
    "metrics": "hosting.metrics",
    "tools": "hosting.tools",
    "read_only": "hosting.read_only",
}
"""The setting that an option sets, where its name differs from that of the option."""


def flag_of(setting: str) -> str:
    """Return the flag that sets a setting."""
    option = next((option for option, name in OPTIONS.items() if name == setting), setting)
    return f"--{option.replace('_', '-')}"


def _option(setting: str, metavar: str | None = None, *, repeatable: bool = False) -> OptionInfo:
    text = f"{FIELDS[setting].description}{' May be repeated.' if repeatable else ''}"
    option: OptionInfo = typer.Option(flag_of(setting), metavar=metavar, help=text)
    return option


def _argument(setting: str) -> ArgumentInfo:
    argument: ArgumentInfo = typer.Argument(metavar=setting.upper(), help=FIELDS[setting].description)
    return argument


GraphArguments: TypeAlias = Annotated[list[str] | None, _argument("graph")]
GraphArgument: TypeAlias = Annotated[str | None, _argument("graph")]
Graph: TypeAlias = Annotated[str | None, _option("graph", "GRAPH")]
Graphs: TypeAlias = Annotated[list[str] | None, _option("graph", "GRAPH", repeatable=True)]
Notes: TypeAlias = Annotated[Path | None, _option("notes", "FILE")]
Languages: TypeAlias = Annotated[str | None, _option("languages", "TAG,TAG")]
MaxTokens: TypeAlias = Annotated[int | None, _option("max_tokens", "N")]
Timeout: TypeAlias = Annotated[float | None, _option("timeout_s", "SECONDS")]
CacheFolder: TypeAlias = Annotated[Path | None, _option("cache_folder", "FOLDER")]
Metrics: TypeAlias = Annotated[str | None, _option("hosting.metrics", "HOST:PORT")]
LogLevel: TypeAlias = Annotated[str | None, _option("log_level", "LEVEL")]
ServedTools: TypeAlias = Annotated[str | None, _option("hosting.tools", "TOOL,TOOL")]
ReadOnly: TypeAlias = Annotated[
    bool, typer.Option(flag_of("hosting.read_only"), help="Leave out the memory tools, over stdio too.")
]
Model: TypeAlias = Annotated[str | None, _option("llm.model", "MODEL")]
BaseUrl: TypeAlias = Annotated[str | None, _option("llm.base_url", "URL")]
Judge: TypeAlias = Annotated[str | None, _option("llm.judge", "MODEL")]
Reflector: TypeAlias = Annotated[str | None, _option("llm.reflector", "MODEL")]
Label: TypeAlias = Annotated[list[str] | None, _option("relations.labels", "RELATION", repeatable=True)]
Alias: TypeAlias = Annotated[list[str] | None, _option("relations.aliases", "RELATION", repeatable=True)]
Description: TypeAlias = Annotated[list[str] | None, _option("relations.descriptions", "RELATION", repeatable=True)]
Type: TypeAlias = Annotated[list[str] | None, _option("relations.types", "RELATION", repeatable=True)]
LabelKey: TypeAlias = Annotated[list[str] | None, _option("relations.label_keys", "TYPE=FEATURE", repeatable=True)]
Prefix: TypeAlias = Annotated[list[str] | None, _option("prefixes", "PREFIX=IRI", repeatable=True)]

Parameters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method, such as hops=2. May be repeated."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
AtOnce: TypeAlias = Annotated[int, typer.Option(min=1, metavar="N", help="How many questions run in parallel.")]
Learn: TypeAlias = Annotated[
    bool, typer.Option("--learn", help="Keep solved questions, and show the model similar ones as examples.")
]
RunFolder: TypeAlias = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")]
Official: TypeAlias = Annotated[
    bool, typer.Option("--official", help="Score as the benchmark's published script does, with its known errors.")
]
