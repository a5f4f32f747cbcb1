"""How much is generated."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--generated-calls", type=int, default=0, help="How many calls are generated; 0 for a few.")
    parser.addoption("--generated-questions", type=int, default=0, help="How many are asked of tables; 0 for a few.")
    parser.addoption("--generated-expressions", type=int, default=0, help="How many are asked of all graphs.")
