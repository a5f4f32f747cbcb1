"""How much is generated."""

import pytest

GENERATED_CALLS = 1_200


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--generated-calls", type=int, default=GENERATED_CALLS, help="How many calls are generated.")
