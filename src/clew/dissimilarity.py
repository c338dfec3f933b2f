"""Dissimilarity matrices for `ConstrainedKMedoids`: from any function of two items, from sequences and from kernels.

Kulis et al. 2009 (`kulis2009`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._distances import distance_matrix, numeric
from clew._validation import check_matrix, check_square, refuse_negative
from clew.constraints import Constraints
from clew.exceptions import DataError, ParameterError

__all__ = ["dissimilarities", "edit_distances", "kernel_dissimilarity"]


def dissimilarities(items: Sequence[Any], measure: Callable[[Any, Any], Any]) -> npt.NDArray[np.float64]:
    """Compute the matrix of dissimilarities of any items (sequences, texts, sets, records) with your own function.

    Parameters
    ----------
    items : sequence
    measure : callable
        Function of two items that returns their dissimilarity, a finite number >= 0. It is called for all n² ordered
        pairs, so it may be asymmetric.

    Returns
    -------
    ndarray of shape (n_items, n_items)

    Examples
    --------
    >>> from clew.dissimilarity import dissimilarities
    >>> dissimilarities([{"home", "cart"}, {"home"}, {"blog"}], lambda a, b: len(a ^ b))
    array([[0., 1., 3.],
           [1., 0., 2.],
           [3., 2., 0.]])
    """
    if not callable(measure):
        raise ParameterError(f"measure={measure!r} in dissimilarities: expected a function of two items.")
    items = list(items)
    if not items:
        raise DataError("dissimilarities needs at least one item.")
    measured = numeric(measure)
    matrix = np.array([[measured(one, other) for other in items] for one in items])
    return np.asarray(refuse_negative(matrix, "dissimilarity", np.arange(len(items))))


def edit_distances(sequences: Any) -> npt.NDArray[np.float64]:
    """Edit distances between all sequences: insertions, deletions, substitutions and swaps of adjacent symbols.

    Parameters
    ----------
    sequences : sequence of texts, or of lists of symbols

    Returns
    -------
    ndarray of shape (n_sequences, n_sequences)

    Examples
    --------
    >>> from clew.dissimilarity import edit_distances
    >>> edit_distances(["abc", "acb", "abcd"])
    array([[0., 1., 1.],
           [1., 0., 2.],
           [1., 2., 0.]])
    """
    return distance_matrix(sequences, "edit")[0]


def kernel_dissimilarity(
    kernel: Any, constraints: Any = None, *, weight: float = 1.0, sigma: float = 0.0
) -> npt.NDArray[np.float64]:
    r"""Turn a kernel matrix into dissimilarities, after raising it for must-links and lowering it for cannot-links.

    With :math:`S = K + W + \sigma I`, where W is `weight` for a must-link, minus `weight` for a cannot-link and 0
    elsewhere, the dissimilarity is :math:`\max S - S` ([1]_; thesis section 4.6.3). It is never negative. Its diagonal
    need not be 0.

    Parameters
    ----------
    kernel : array-like of shape (n_samples, n_samples)
        A symmetric matrix of similarities, such as ``sklearn.metrics.pairwise.rbf_kernel(X)``.
    constraints : Constraints, labels, dict, frame, sparse matrix, path or None
        Only given pairs count. The weight of each is multiplied by its confidence.
    weight : float, default=1.0
    Added for each must-link and subtracted for each cannot-link. If the kernel is at most 1, like the radial basis
    function, a weight of 1 makes must-linked rows at least as similar as equal rows.
    sigma : float, default=0.0
        Added to the similarity of each row to itself.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)

    References
    ----------
    .. [1] B. Kulis, S. Basu, I. Dhillon, R. Mooney (2009). "Semi-supervised graph clustering: a kernel approach."
       Machine Learning 74(1).

    Examples
    --------
    >>> from clew.dissimilarity import kernel_dissimilarity
    >>> kernel_dissimilarity([[1.0, 0.5], [0.5, 1.0]], {"cannot_link": [(0, 1)]})
    array([[0. , 1.5],
           [1.5, 0. ]])
    """
    for name, value in (("weight", weight), ("sigma", sigma)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
            raise ParameterError(f"{name}={value!r} in kernel_dissimilarity: expected a finite number >= 0.")
    likeness = np.array(check_matrix(kernel), dtype=np.float64)
    check_square(likeness, "signed graph")  # kernels may be negative
    known = Constraints.of(constraints, n_samples=len(likeness))
    for pairs, sure, sign in (
        (known.must_link, known.must_link_confidence, weight),
        (known.cannot_link, known.cannot_link_confidence, -weight),
    ):
        _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
        for one, other in (pairs[first].T, pairs[first, ::-1].T):
            likeness[one, other] += sign * sure[first]
    likeness[np.diag_indices_from(likeness)] += sigma
    return np.asarray(likeness.max() - likeness)
