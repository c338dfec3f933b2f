"""Scores from entropies: normalised mutual information and variation of information."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

from clew.evaluation._contingency import Contingency, Integers, encode_scored


def normalized_mutual_info_score(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    r"""Mutual information divided by the mean entropy of the two labellings.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row.

    Returns
    -------
    float
        From 0 (independent) to 1 (same partition). 1 if both labellings have a single cluster.

    Notes
    -----
    .. math:: \mathrm{NMI} = \frac{I(C; K)}{(H(C) + H(K)) / 2}

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained
       clustering." SIAM International Conference on Data Mining. Section 5.2.

    Examples
    --------
    >>> from clew.evaluation import normalized_mutual_info_score
    >>> round(normalized_mutual_info_score(["a", "a", "b", "b"], [0, 0, 1, 2]), 3)
    0.8
    """
    return nmi_of(Contingency.of(*encode_scored(labels_true, labels_pred)))


def variation_of_information(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Sum of the two conditional entropies of the labellings, in nats.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row.

    Returns
    -------
    float
        H(C | K) + H(K | C): 0 for the same partition, at most log(n_samples). A metric on partitions.

    References
    ----------
    .. [1] M. Meila (2003). "Comparing clusterings by the variation of information." Learning Theory and
       Kernel Machines, 173-187.

    Examples
    --------
    >>> from clew.evaluation import variation_of_information
    >>> round(variation_of_information([0, 0, 1, 1], [0, 0, 0, 0]), 4)
    0.6931
    """
    return vi_of(Contingency.of(*encode_scored(labels_true, labels_pred)))


def nmi_of(table: Contingency) -> float:
    """Normalised mutual information of a table."""
    true, pred, joint = _entropies(table)
    mean = (true + pred) / 2
    return max(0.0, true + pred - joint) / mean if mean else 1.0


def vi_of(table: Contingency) -> float:
    """Variation of information of a table."""
    true, pred, joint = _entropies(table)
    return 2 * joint - (true + pred)


def _entropies(table: Contingency) -> tuple[float, float, float]:
    true, pred, joint = (
        _entropy(sizes, table.n_rows) for sizes in (table.true_sizes, table.pred_sizes, table.cell_sizes)
    )
    return true, pred, joint


def _entropy(sizes: Integers, n_rows: int) -> float:
    if sizes.size == 1:
        return 0.0
    # Distinct sizes are summed in ascending order, so that renaming or swapping labellings gives the same rounding.
    size, times = np.unique(sizes, return_counts=True)
    return log(n_rows) - float(np.sum(times * size * np.log(size))) / n_rows
