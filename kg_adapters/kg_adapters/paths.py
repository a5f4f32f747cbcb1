"""What every path search refuses, so that all of them refuse the same."""

from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import PathRequest
from kg_boundary.shown import in_quotes

MAX_HOPS: Final = 4


def check_path_request(request: PathRequest) -> None:
    """Refuse a request that no graph could answer.

    Raises:
        InvalidRequest: `max_hops` is not 1 to 4, `limit` is below 1, or source and target are the same.
    """
    if not 1 <= request.max_hops <= MAX_HOPS:
        raise InvalidRequest(f"A path has 1 to {MAX_HOPS} hops; max_hops was {request.max_hops}.")
    if request.limit < 1:
        raise InvalidRequest(f"limit must be at least 1; it was {request.limit}.")
    if request.source == request.target:
        raise InvalidRequest(
            f"Source and target are both {in_quotes(str(request.source))}. Name two different entities, or ask for the "
            "neighbors of the one."
        )
