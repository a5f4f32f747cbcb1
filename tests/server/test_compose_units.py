"""Quantities: those of one unit compare and add up on every engine, and different units are refused by name."""

from collections.abc import Callable
from pathlib import Path

import pytest
import rdflib
from mcp import Client

from calls import reply_of
from kg_adapters.index.build.build import build_store
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.import_options import ImportOptions
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.rdflib_adapter import RdflibAdapter
from kg_server.app import build_server
from kg_server.settings import Settings
from plain_graphs import WithoutSets
from sparql_stand_in import StandInEndpoint, adapter_over

BRIDGES = Path(__file__).parents[1] / "data" / "bridges-qudt.ttl"
MILLS = BRIDGES.with_name("mills.json")
BRIDGE, MILL = "Type[bridge]", "Type[paper mill]"


def local(folder: Path, file: Path = BRIDGES) -> KGAdapter:
    return LocalAdapter(open_store(build_store([file], folder / "store", ImportOptions(sparql=False)).folder))


def without_sets(folder: Path) -> KGAdapter:
    return WithoutSets(local(folder))


def by_rdflib(_: Path) -> KGAdapter:
    return RdflibAdapter(rdflib.Graph().parse(BRIDGES))


def endpoint(_: Path) -> KGAdapter:
    return adapter_over(StandInEndpoint(rdflib.Graph().parse(BRIDGES).serialize(format="nt")))


async def asked(graph: KGAdapter, *expressions: str) -> list[str]:
    """Return the first line of what Compose says of each expression, without the rows that show it."""
    async with Client(build_server(graph, Settings())) as client:
        replies = [reply_of(await client.call_tool("Compose", {"expression": each})) for each in expressions]
    await graph.aclose()
    return [reply.text.splitlines()[0].partition(" Over ")[0] for reply in replies]


@pytest.mark.parametrize("opened", [local, without_sets, by_rdflib, endpoint])
async def test_quantities_of_one_unit_compare_and_add_up_on_every_engine(
    opened: Callable[[Path], KGAdapter], tmp_path: Path
) -> None:
    told = await asked(
        opened(tmp_path),
        f"Max[{BRIDGE}, clearance]",
        f"Mean[{BRIDGE}, clearance]",
        f"Sum[Where[{BRIDGE}, length > 100 m], length]",
        f"Count[Where[{BRIDGE}, length >= Mean[{BRIDGE}, length]]]",
        f"Count[Where[{BRIDGE}, length = Feature[Mill Bridge, length]]]",
        f"Sum[Minus[{BRIDGE}, Mill Bridge], weight limit]",
        f"Sum[{BRIDGE}, weight limit]",
    )
    left_out = " 1 more has no clearance (ex:clearance) and is not counted."
    assert told == [
        f"55 m.{left_out}",
        f"21.4 m.{left_out}",
        "2,060.5 m.",
        "1. Namely Strait Bridge (ex:strait).",
        "1. Namely Mill Bridge (ex:mill).",
        "52,000 kg. 1 more has no weight limit (ex:weight) and is not counted.",
        "weight limit (ex:weight) has values in different units, which are not compared or added up: kg, TON_Metric. "
        "Table[…] shows each value with its unit.",
    ]


async def test_what_is_compared_with_quantities_has_their_unit(tmp_path: Path) -> None:
    different = "different units are not compared."
    told = await asked(
        local(tmp_path, MILLS),
        f"Where[{MILL}, daily output > 9 km]",
        f"Where[{MILL}, daily output > Max[{MILL}, elevation above sea level]]",
        f"Where[{MILL}, employees > Max[{MILL}, daily output]]",
        f"Where[{MILL}, daily output > Count[{MILL}]]",
        f"Where[{MILL}, length > 5]",
        f"Where[{MILL}, daily output ~ 1]",
    )
    assert told == [
        "daily output (P2000) is given in 'quire', not in 'km'. Write the number without a unit.",
        f"daily output (P2000) has the unit quire, and what it is compared with has the unit m; {different}",
        f"employees (P1128) has no unit, and what it is compared with has the unit quire; {different}",
        f"daily output (P2000) has the unit quire, and what it is compared with has no unit; {different}",
        "length (P2043) has values in different units, which are not compared or added up: m, km. "
        "Table[…] shows each value with its unit.",
        "~ looks for a text in texts, and daily output (P2000) has numbers. Use =, !=, <, <=, > or >=.",
    ]


@pytest.mark.parametrize("opened", [local, by_rdflib, endpoint])
async def test_the_schema_shows_ranges_with_their_unit(opened: Callable[[Path], KGAdapter], tmp_path: Path) -> None:
    graph = opened(tmp_path)
    async with Client(build_server(graph, Settings())) as client:
        whole = reply_of(await client.call_tool("Schema", {})).text
        about = reply_of(await client.call_tool("Schema", {"about": "bridge"})).text
    await graph.aclose()
    assert "length 48…1,848 m" in whole
    assert "weight limit 75% 12,000…40,000 kg, also TON_Metric" in whole
    assert "feature | clearance (ex:clearance) | 3 of 4 3.2…55 m" in about
