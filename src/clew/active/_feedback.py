"""Ask no questions: the user volunteers the pairs.

Truong and Battiti 2013 (`truong2013`), section 4: the passive scheme of Cohn, Caruana and McCallum 2003.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from clew.active._answers import Pair
from clew.active._strategy import Strategy
from clew.active._view import View


class Feedback(Strategy):
    """Let the user look at the clusters and correct wrong pairs.

    `Questions.ask` always returns None. `Questions.tell` takes any pair of rows.

    References
    ----------
    .. [1] D. Cohn, R. Caruana, A. McCallum (2003). "Semi-supervised clustering with user feedback." Cornell University
       TR2003-1892.

    Examples
    --------
    >>> from clew.active import Feedback, Questions
    >>> questions = Questions([[0.0], [1.0], [9.0]], Feedback(), n_clusters=2, random_state=0)
    >>> questions.tell((1, 2), "same")
    True
    >>> questions.constraints.must_link
    array([[1, 2]])
    """

    passive = True

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Yield no question."""
        yield from ()
