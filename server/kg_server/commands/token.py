"""`kg-sextant token`: make, list and revoke the tokens of those who may call over HTTP."""

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from kg_adapters.errors import InvalidRequest
from kg_boundary.shown import counted
from kg_server.callers import EVERY_SCOPE
from kg_server.commands import options
from kg_server.commands.invocation import invocation
from kg_server.commands.output import show, warn
from kg_server.commands.tools import EXAMPLES
from kg_server.naming.refusals import closest
from kg_server.serving.tokens import StaticToken, TokenFile

token = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make, list and revoke tokens for callers over HTTP."
)

_MOST_DAYS: Final = 36_500

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who the token is for: its memories belong to this name.")]


@token.command()
def add(
    context: typer.Context,
    name: Name,
    scopes: Annotated[
        str, typer.Option(metavar="SCOPE,SCOPE", help="What it may do: read the graph, and keep memories.")
    ] = "read,memory",
    tools: Annotated[
        str | None, typer.Option(metavar="TOOL,TOOL", help="The only tools that it may call; default: all.")
    ] = None,
    expires_days: Annotated[
        float | None,
        typer.Option(metavar="N", help="After how many days it expires; default: never."),
    ] = None,
) -> None:
    """Make a token and print it, this once; servers that run accept it at once."""
    allowed = _parts(scopes)
    if "read" not in allowed or not EVERY_SCOPE.issuperset(allowed):
        raise InvalidRequest("--scopes takes read or read,memory.")
    if expires_days is not None and not 0 < expires_days <= _MOST_DAYS:
        raise InvalidRequest(f"--expires-days takes a number of days above 0, and up to {_MOST_DAYS:,}.")
    named = None if tools is None else _parts(tools)
    known = (*EXAMPLES, "Recall")
    for each in named or ():
        if each not in known:
            near = closest(each, known, limit=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise InvalidRequest(f"There is no tool {each}.{meant} The tools are {', '.join(known)}.")
    file = _file(context)
    made = file.add(name, allowed, named, expires_days)
    warn(f"A token for {name}, which is not shown again; {file.path} holds its hash. Clients send it as")
    warn("Authorization: Bearer TOKEN.")
    show({"name": name, "token": made}, [made], as_json=False)


@token.command("list")
def list_(context: typer.Context, as_json: options.Json = False) -> None:
    """List the tokens, without the tokens themselves."""
    found = _file(context).tokens()
    rows = [{**each.model_dump(exclude={"sha256"}), "expired": each.expired} for each in found]
    lines = [_line(each) for each in found] or ["There are no tokens."]
    show(rows, lines, as_json=as_json)


@token.command()
def revoke(context: typer.Context, name: Name) -> None:
    """Delete a token; servers that run refuse it at once."""
    _file(context).revoke(name)
    show({"revoked": name}, [f"Revoked {name}."], as_json=False)


def _file(context: typer.Context) -> TokenFile:
    return TokenFile(invocation(context).load().settings.tokens_file)


def _line(known: StaticToken) -> str:
    tools = "every tool" if known.tools is None else f"{counted(len(known.tools), 'tool')}: {', '.join(known.tools)}"
    if known.expires is None:
        end = "never expires"
    else:
        end = f"{'expired' if known.expired else 'expires'} {_day(known.expires)}"
    return f"{known.name}  {','.join(known.scopes)}  {tools}  made {_day(known.created)}, {end}"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
