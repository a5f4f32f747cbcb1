"""How sure a mean is: percentile bootstrap over questions, with a seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

RESAMPLES: Final = 2_000
LEVEL: Final = 0.95

_AT_ONCE: Final = 2_000_000
"""How many values are drawn at once."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with its 95 % interval, and over how many questions."""

    value: float
    low: float
    high: float
    count: int


def mean_of(values: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Figure | None:
    """Return the mean of values with its interval; None where there is no value."""
    if not values:
        return None
    means = _resampled_means(values, np.random.default_rng(seed), resamples)
    return _figure(float(np.mean(values)), means, len(values))


def macro_mean_of(groups: Mapping[str, Sequence[float]], seed: int = 0, resamples: int = RESAMPLES) -> Figure | None:
    """Return the mean of the means of groups; each group is drawn from by itself."""
    filled = [values for values in groups.values() if values]
    if not filled:
        return None
    dice = np.random.default_rng(seed)
    means = np.mean([_resampled_means(values, dice, resamples) for values in filled], axis=0)
    value = float(np.mean([np.mean(values) for values in filled]))
    return _figure(value, means, sum(map(len, filled)))


def difference_of(
    ours: Mapping[str, float], theirs: Mapping[str, float], seed: int = 0, resamples: int = RESAMPLES
) -> Figure | None:
    """Return by how much one mean is larger than another over the questions, by id, that both have."""
    return mean_of([value - theirs[id_] for id_, value in ours.items() if id_ in theirs], seed, resamples)


def _resampled_means(values: Sequence[float], dice: np.random.Generator, resamples: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    rows = max(1, _AT_ONCE // len(array))
    parts = [
        array[dice.integers(0, len(array), size=(min(rows, resamples - first), len(array)))].mean(axis=1)
        for first in range(0, resamples, rows)
    ]
    return np.concatenate(parts)


def _figure(value: float, means: NDArray[np.float64], count: int) -> Figure:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(value, float(low), float(high), count)
