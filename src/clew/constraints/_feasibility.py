"""Feasibility of constraints with k clusters: a labelling, a proof that there is none, or "unknown"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from clew._words import listed_rows
from clew.constraints._arrays import IntArray
from clew.constraints._closure import Closure
from clew.constraints._conflicts import innermost
from clew.exceptions import InfeasibleConstraintsError, ParameterError, WorkLimitError
from clew.solvers.coloring import WORK_LIMIT, Coloring, color

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

# Largest number of rows of a proof that are named; the rest is only counted.
_MOST_LISTED = 100


@dataclass(frozen=True)
class Feasibility:
    """The result of `Constraints.check`. Its truth value is True if a labelling exists.

    Attributes
    ----------
    status : {"feasible", "infeasible", "unknown"}
    message : str
        One sentence in the user's ids.
    fact : str
        The message without the number of clusters that was tried and without advice.
    labels : ndarray of shape (n_samples,) or None
        A labelling that satisfies all constraints, if feasible.
    rows : ndarray or None
        Rows that cannot be split into k clusters, if infeasible.
    irreducible : bool
        Whether every row of `rows` is needed: without any one of them, the others can be split into k clusters (into
        two, for the rows of a contradiction). False if the work limit was reached before this was known.
    contradictory : bool
        Whether the constraints are infeasible with every number of clusters.
    """

    status: Literal["feasible", "infeasible", "unknown"]
    message: str
    labels: IntArray | None = None
    rows: IntArray | None = None
    contradictory: bool = False
    irreducible: bool = True
    fact: str = ""

    def __post_init__(self) -> None:
        if not self.fact:
            object.__setattr__(self, "fact", self.message)

    def __bool__(self) -> bool:
        return self.status == "feasible"


def check(constraints: Constraints, n_clusters: int, work_limit: int = WORK_LIMIT) -> Feasibility:
    """Check whether a labelling with `n_clusters` clusters satisfies every constraint."""
    check_number(n_clusters, "check")
    conflicts = constraints.conflicts(limit=1)
    if conflicts:
        conflict = innermost(constraints, conflicts[0])
        rows = np.array(sorted(set(conflict.chain)), dtype=np.int64)
        return Feasibility("infeasible", str(conflict), rows=rows, contradictory=True)
    closed = constraints.closure()
    found = color(closed.graph, int(n_clusters), work_limit=work_limit)
    if found.colors is not None:
        labels = found.colors[closed.component_of].astype(np.int64)
        return Feasibility("feasible", f"A labelling with {n_clusters} clusters satisfies everything.", labels=labels)
    if found.proof is not None:
        rows = np.sort(closed.first_row[found.proof])
        fact, message = proof_sentences(constraints, closed, found, n_clusters)
        return Feasibility("infeasible", message, rows=rows, irreducible=found.is_irreducible, fact=fact)
    return Feasibility("unknown", unknown_sentence(n_clusters, work_limit))


def require_coloring(
    constraints: Constraints,
    closed: Closure,
    components: IntArray,
    n_clusters: int,
    *,
    fixed: npt.NDArray[np.int32],
    preference: npt.NDArray[np.int32],
    work_limit: int,
) -> npt.NDArray[np.int32]:
    """Find clusters of some components that violate no cannot-link; raise an error with the reason if there are none.

    `fixed` and `preference` have one entry for each of the components; see `color`.
    """
    graph = closed.graph.part(components)
    found = color(graph, n_clusters, fixed=fixed, preference=preference, work_limit=work_limit)
    if found.colors is not None:
        return found.colors
    if found.proof is None:
        raise WorkLimitError(unknown_sentence(n_clusters, work_limit))
    found = found._replace(proof=components[found.proof])
    fact, message = proof_sentences(constraints, closed, found, n_clusters)
    raise InfeasibleConstraintsError(message, np.sort(closed.first_row[found.proof]), fact)


def check_number(n_clusters: Any, where: str) -> None:
    """Raise unless a number of clusters is an integer >= 1."""
    if not isinstance(n_clusters, int | np.integer) or isinstance(n_clusters, bool) or n_clusters < 1:
        raise ParameterError(f"n_clusters={n_clusters!r} in {where}: expected an integer >= 1.")


def proof_sentences(constraints: Constraints, closed: Closure, found: Coloring, n_clusters: int) -> tuple[str, str]:
    """Explain why no labelling exists, with the user's ids: the fact alone, and the message with advice."""
    assert found.proof is not None
    names = [constraints.describe_row(row) for row in np.sort(closed.first_row[found.proof]).tolist()]
    rows = f"{'Rows' if len(names) > 1 else 'Row'} {listed_rows(names, _MOST_LISTED)}"
    more = "" if found.is_irreducible else " Fewer of these rows may be enough: work_limit was reached."
    if found.is_clique:
        why = f"{rows} are pairwise cannot-linked and need {len(names)} clusters"
        return f"{why}.", f"{why}, but n_clusters={n_clusters}.{more} Raise n_clusters."
    why = f"{rows} cannot be split into n_clusters={n_clusters} clusters (every way was tried).{more}"
    return why, f"{why} Raise n_clusters."


def unknown_sentence(n_clusters: int, work_limit: int) -> str:
    """Explain that neither a labelling nor a proof was found."""
    return (
        f"Neither a labelling with {n_clusters} clusters nor a proof that there is none was found within "
        f"work_limit={work_limit}. Raise work_limit or n_clusters."
    )
