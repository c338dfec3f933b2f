"""The protocol of query strategies, and the choice of the clusterer that makes the labels."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from clew.active._answers import Question
from clew.active._view import View
from clew.constraints import Constraints


class PairOpinions(NamedTuple):
    """What the model of a strategy says about some pairs of rows.

    Attributes
    ----------
    probability : ndarray of shape (n_pairs,)
        Probability that the two rows belong together, from all evidence but the answers about this pair.
    words : list of str
        How the two rows compare, such as "phone is equal; name differs by one letter". May be empty.
    """

    probability: npt.NDArray[np.float64]
    words: list[str]


@runtime_checkable
class Strategy(Protocol):
    """A query strategy: yields questions and receives answers.

    Subclass it to write a strategy that also makes labels. For a strategy that only asks, a function of a view and a
    random generator is enough.

    Attributes
    ----------
    passive : bool
        Whether annotators may answer pairs that nobody asked about.
    has_labels : bool
        Whether the strategy has a clusterer of its own, see `labels`.
    keeps_n_clusters : bool
        Whether `labels` returns the requested number of clusters. Only used if `has_labels`.
    """

    passive: bool = False
    has_labels: bool = False
    keeps_n_clusters: bool = False

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Question, Any, None]:
        """Yield questions worth asking, the best one first.

        The driver restarts a strategy by calling it again, after `undo` for example. All it needs to know is therefore
        in the view.
        """
        ...

    def labels(self, view: View) -> npt.NDArray[Any]:
        """Cluster the rows of a view. Only called if `has_labels`. Default: one cluster."""
        return np.zeros(view.n_rows, dtype=np.int64)

    def probabilities(self, view: View, labels: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
        """Probability that each row belongs to its cluster. Default: None, because a strategy has no such model."""
        return None

    def certain_constraints(self, view: View) -> Constraints | None:
        """Constraints that `labels` satisfies even if answers are wrong. Default: None, because answers are facts."""
        return None

    def opinions(self, view: View, pairs: npt.NDArray[np.int64]) -> PairOpinions | None:
        """What the strategy's own model says about answered pairs. Default: None, because a strategy has no model."""
        return None

    def pair_beliefs(self, view: View) -> dict[tuple[int, int], float] | None:
        """Probability that the rows of each answered pair are together. Default: None, because answers are facts."""
        return None

    def suspects_errors(self, view: View) -> bool:
        """Whether answers look wrong, so that a check question may come before its turn. Default: they do not."""
        return False

    def repeats_questions(self, view: View) -> bool:
        """Whether a check question may be about a pair that was asked before. Default: no pair is asked twice."""
        return False


class Asker(Strategy):
    """A strategy that only asks, made from a function or another callable."""

    def __init__(self, ask: Callable[[View, np.random.Generator], Generator[Question, Any, None]]) -> None:
        self._ask = ask

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Question, Any, None]:
        """Yield the questions of the function."""
        return self._ask(view, rng)


def as_strategy(given: Any) -> Strategy:
    """Return a strategy unchanged, and turn any other callable into a strategy that only asks."""
    return given if isinstance(given, Strategy) else Asker(given)


def strategy_makes_labels(strategy: Strategy, *, chosen: Any, n_clusters: int | None = None) -> bool:
    """Whether the strategy's own clusterer makes the labels, for questions and for sessions.

    Parameters
    ----------
    strategy : Strategy
    chosen : object or None
        The clusterer that the user chose, if any. It then makes the labels.
    n_clusters : int or None
        The number of clusters that the labels must have, if any.
    """
    keeps = n_clusters is None or strategy.keeps_n_clusters
    return chosen is None and strategy.has_labels and keeps
