"""The heaviest one-to-one matching of the clusters of two labellings, from the sparse contingency table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from clew.evaluation._contingency import Contingency, Integers, distinct, encode_both

# A round of fixing costs about as much as reading the cells, so below one fixed cell in sixteen the solver is
# cheaper: a long chain of equal overlaps would otherwise be eaten up two cells a round.
_SHARE_WORTH_A_ROUND = 16


def matching_accuracy(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Fraction of rows labelled right, under the best one-to-one matching of clusters to classes.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row. With unequal numbers of classes and clusters some stay unmatched, and
        their rows count as wrong.

    Returns
    -------
    float
        Above 0, up to 1 (same partition).

    Notes
    -----
    The matching is exact. Memory O(n). Time O(n log n) where the labellings mostly agree; at worst the time
    is quadratic in the number of clusters, some 20 s for 100,000 clusters that overlap in one long chain.

    Examples
    --------
    >>> from clew.evaluation import matching_accuracy
    >>> matching_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    return accuracy_of(Contingency.of(*encode_both(labels_true, labels_pred)))


def accuracy_of(table: Contingency) -> float:
    """Accuracy of a table under its best matching."""
    return _matched_rows(table) / table.n_rows


def _matched_rows(table: Contingency) -> int:
    rows, columns, weights = table.cell_true, table.cell_pred, table.cell_sizes
    total = 0
    # SciPy's solver is quadratic in the number of clusters, however sparse the table. Where the labellings
    # mostly agree, an exact rule settles nearly all of it: a cell at least as heavy as its heaviest rivals in
    # its row and in its column together is in some best matching, since it can replace what uses either.
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
    """For each cell, the weight of the heaviest other cell of its line, 0 if it is alone there."""
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
    # The solver matches every row, so each gets a spare column of its own that stands for "unmatched". It
    # asks for weights other than 0, so one is added to every weight: each row pays it once, whatever its
    # match.
    spare = np.arange(n_rows)
    weights = np.concatenate([weights + 1, np.ones_like(spare)])
    rows = np.concatenate([rows, spare])
    columns = np.concatenate([columns, n_columns + spare])
    # 32-bit indices: the solver of SciPy 1.11 takes no others.
    coordinates = (rows.astype(np.int32), columns.astype(np.int32))
    graph = csr_array((weights, coordinates), shape=(n_rows, n_columns + n_rows))
    matched = min_weight_full_bipartite_matching(graph, maximize=True)
    return int(graph[matched].sum()) - n_rows
