"""What tests that run inspect_ai share."""

import gc
from collections.abc import Iterator

import pytest

LEFT_OPEN = "ignore:.*MemoryObject:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore that inspect_ai leaves a stream of its hooks open."""
    for item in items:
        if item.path.parent.name == "evaluation":
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))


@pytest.fixture(autouse=True, scope="module")
def _collected() -> Iterator[None]:
    """Collect what inspect_ai leaves open at the end of a module, whose tests ignore the warning."""
    yield
    gc.collect()
    gc.freeze()
