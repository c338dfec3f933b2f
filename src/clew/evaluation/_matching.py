"""Maximum-weight one-to-one matching of the clusters of two labellings, from the sparse contingency table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from clew.evaluation._contingency import Contingency, Integers, distinct, encode_scored

# A round must fix at least one in this many cells. It takes about as long as reading all cells. On a long chain of
# equal overlaps a round fixes only two cells, and the solver is faster.
_SHARE_WORTH_A_ROUND = 16


def matching_accuracy(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Fraction of correctly labelled rows under the best one-to-one matching of clusters to classes.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row. If the numbers of classes and clusters differ, some stay unmatched, and their
        rows count as wrong.

    Returns
    -------
    float
        Above 0, up to 1 (same partition).

    Notes
    -----
    The matching is exact. Memory O(n). Time O(n log n) if the labellings mostly agree. The worst case is quadratic in
    the number of clusters: about 20 s for 100,000 clusters that overlap in one long chain.

    Examples
    --------
    >>> from clew.evaluation import matching_accuracy
    >>> matching_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    return accuracy_of(Contingency.of(*encode_scored(labels_true, labels_pred)))


def accuracy_of(table: Contingency) -> float:
    """Accuracy of a table under its best matching."""
    return _matched_rows(table) / table.n_rows


def _matched_rows(table: Contingency) -> int:
    rows, columns, weights = table.cell_true, table.cell_pred, table.cell_sizes
    total = 0
    # SciPy's solver takes quadratic time in the number of clusters, even for a sparse table. If the labellings mostly
    # agree, an exact rule fixes nearly all cells first: a cell is in some best matching if its weight is at least the
    # sum of the largest other weight in its row and the largest other weight in its column.
    while weights.size:
        fixed = np.flatnonzero(weights >= _heaviest_rival(rows, weights) + _heaviest_rival(columns, weights))
        fixed = fixed[np.unique(rows[fixed], return_index=True)[1]]
        fixed = fixed[np.unique(columns[fixed], return_index=True)[1]]
        if fixed.size * _SHARE_WORTH_A_ROUND < weights.size:
            break
        total += int(weights[fixed].sum())
        left = ~(np.isin(rows, rows[fixed]) | np.isin(columns, columns[fixed]))
        rows, columns, weights = rows[left], columns[left], weights[left]
    return total + _heaviest_matching(distinct(rows).codes, distinct(columns).codes, weights)


def _heaviest_rival(lines: Integers, weights: Integers) -> Integers:
    """For each cell, the largest weight of another cell in its line (a row or a column), 0 if there is none."""
    best = np.zeros(int(lines.max()) + 1, dtype=np.int64)
    np.maximum.at(best, lines, weights)
    candidates = np.flatnonzero(weights == best[lines])
    leader_of = np.full(best.size, -1)
    leader_of[lines[candidates]] = candidates
    leads = leader_of[lines] == np.arange(weights.size)
    second = np.zeros_like(best)
    np.maximum.at(second, lines, np.where(leads, 0, weights))
    return np.where(leads, second[lines], best[lines])


def _heaviest_matching(rows: Integers, columns: Integers, weights: Integers) -> int:
    if not weights.size:
        return 0
    n_rows, n_columns = int(rows.max()) + 1, int(columns.max()) + 1
    if n_rows > n_columns:
        rows, columns, n_rows, n_columns = columns, rows, n_columns, n_rows
    # The solver matches every row, so each row gets a spare column that means "unmatched". The solver needs weights
    # other than 0, so 1 is added to every weight. This adds the same constant to every matching.
    spare = np.arange(n_rows)
    weights = np.concatenate([weights + 1, np.ones_like(spare)])
    rows = np.concatenate([rows, spare])
    columns = np.concatenate([columns, n_columns + spare])
    # 32-bit indices: the solver of SciPy 1.11 takes no others.
    coordinates = (rows.astype(np.int32), columns.astype(np.int32))
    graph = csr_array((weights, coordinates), shape=(n_rows, n_columns + n_rows))
    matched = min_weight_full_bipartite_matching(graph, maximize=True)
    return int(graph[matched].sum()) - n_rows
