"""Ask about random pairs: the baseline every strategy has to beat.

Truong and Battiti 2013 (`truong2013`), section 4.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from clew.active._answers import Pair
from clew.active._strategy import Strategy
from clew.active._view import View

# Number of rejection-sampling draws before the open pairs are counted. They fail if few pairs in a thousand are open.
_TRIES = 1000


class RandomPairs(Strategy):
    """Ask about uniformly random open pairs until none is left.

    Notes
    -----
    Open pairs are found by rejection sampling. If nearly all pairs are decided, open pairs are counted row by row
    instead, with O(n) memory. They are listed only if "unsure" pairs outnumber them a thousand to one.

    References
    ----------
    .. [1] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Section 4.

    Examples
    --------
    >>> from clew.active import Questions, RandomPairs
    >>> questions = Questions([[0.0], [5.0], [9.0]], RandomPairs(), random_state=0)
    >>> len(questions.ask(10))
    3
    """

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Draw open pairs until none is left."""
        while (found := random_open_pair(view, rng)) is not None:
            yield Pair(*found, why="Two rows picked at random.")


def random_open_pair(view: View, rng: np.random.Generator) -> tuple[int, int] | None:
    """Draw one of the open pairs uniformly, or return None if every pair is decided."""
    draws = rng.integers(view.n_rows, size=(_TRIES, 2)).tolist()
    blind = next(((one, two) for one, two in draws if view.is_open(one, two)), None)
    return blind or _counted_pair(view, rng)


def _counted_pair(view: View, rng: np.random.Generator) -> tuple[int, int] | None:
    """Draw an open pair as `random_open_pair` does, from counts of the undecided pairs of each component."""
    roots = {view.knowledge.component(row): row for row in range(view.n_rows)}
    rows = list(roots.values())
    weights = np.array([len(view.knowledge.rows(row)) * len(view.knowledge.open_rows(row)) for row in rows])
    if not weights.any():
        return None
    tries = _TRIES if weights.sum() > _TRIES else 0  # listing few pairs is faster than drawing
    for place in rng.choice(len(rows), size=tries, p=weights / weights.sum()).tolist():
        one = int(rng.choice(view.knowledge.rows(rows[place])))
        two = int(rng.choice(view.knowledge.open_rows(rows[place])))
        if view.is_open(one, two):
            return one, two
    listed = [
        (one, two)
        for row in rows
        for one in view.knowledge.rows(row).tolist()
        for two in view.knowledge.open_rows(row).tolist()
        if one < two and view.is_open(one, two)
    ]
    return listed[int(rng.integers(len(listed)))] if listed else None
