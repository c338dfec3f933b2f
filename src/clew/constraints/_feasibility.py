"""Can the rows be split into k clusters at all? A witness, a proof, or "unknown" at a work limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.constraints._arrays import IntArray
from clew.constraints._closure import Closure
from clew.exceptions import ParameterError
from clew.solvers.coloring import WORK_LIMIT, Coloring, color

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

# Rows named in a sentence before the rest is counted.
_NAMED = 12


@dataclass(frozen=True)
class Feasibility:
    """The answer of `Constraints.check`; true in a condition when a labelling exists.

    Attributes
    ----------
    status : {"feasible", "infeasible", "unknown"}
    message : str
        One sentence in the user's ids.
    labels : ndarray of shape (n_samples,) or None
        A labelling that satisfies everything, when feasible.
    rows : ndarray or None
        Rows that cannot be split into k clusters, when infeasible.
    contradictory : bool
        Whether no number of clusters would do.
    """

    status: Literal["feasible", "infeasible", "unknown"]
    message: str
    labels: IntArray | None = None
    rows: IntArray | None = None
    contradictory: bool = False

    def __bool__(self) -> bool:
        return self.status == "feasible"


def check(constraints: Constraints, n_clusters: int, work_limit: int = WORK_LIMIT) -> Feasibility:
    """Whether some labelling with `n_clusters` clusters satisfies every constraint."""
    if not isinstance(n_clusters, int | np.integer) or isinstance(n_clusters, bool) or n_clusters < 1:
        raise ParameterError(f"n_clusters={n_clusters!r} in check: expected an integer >= 1.")
    conflicts = constraints.conflicts(limit=1)
    if conflicts:
        rows = np.array(sorted(set(conflicts[0].chain)), dtype=np.int64)
        return Feasibility("infeasible", str(conflicts[0]), rows=rows, contradictory=True)
    closed = constraints.closure()
    found = color(closed.graph, int(n_clusters), work_limit=work_limit)
    if found.colors is not None:
        labels = found.colors[closed.component_of].astype(np.int64)
        return Feasibility("feasible", f"A labelling with {n_clusters} clusters satisfies everything.", labels=labels)
    if found.proof is not None:
        rows = np.sort(closed.first_row[found.proof])
        return Feasibility("infeasible", proof_sentence(constraints, closed, found, n_clusters), rows=rows)
    return Feasibility("unknown", unknown_sentence(n_clusters, work_limit))


def proof_sentence(constraints: Constraints, closed: Closure, found: Coloring, n_clusters: int) -> str:
    """Why no labelling exists, in the user's ids."""
    assert found.proof is not None
    names = [str(constraints.describe_row(row)) for row in np.sort(closed.first_row[found.proof]).tolist()]
    rest = len(names) - _NAMED
    listed = (
        ", ".join(names[:_NAMED]) + f" and {rest} more"
        if rest > 0
        else " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    )
    rows = "Rows" if len(names) > 1 else "Row"
    if found.is_clique:
        why = f"are pairwise cannot-linked and need {len(names)} clusters, but n_clusters={n_clusters}"
    else:
        why = f"cannot be split into n_clusters={n_clusters} clusters (every way was tried)"
    return f"{rows} {listed} {why}. Raise n_clusters."


def unknown_sentence(n_clusters: int, work_limit: int) -> str:
    """Neither a witness nor a proof was found."""
    return (
        f"Neither a labelling with {n_clusters} clusters nor a proof that there is none was found within "
        f"work_limit={work_limit}. Raise work_limit or n_clusters."
    )
