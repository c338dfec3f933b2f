"""Rows in batches: each cluster of the earlier batches is added to the next batch as one weighted row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from clew._words import listed_rows
from clew.constraints import Constraints
from clew.exceptions import ConstraintError
from clew.partitional._geometry import FloatArray, IntArray


def with_anchors(X: Any, weights: FloatArray, centers: Any, masses: FloatArray) -> tuple[Any, FloatArray]:
    """Append a row at each centre, with the total weight of its cluster so far."""
    weights = weights if len(weights) else np.ones(X.shape[0])
    if sparse.issparse(X):
        rows = sparse.csr_matrix(sparse.vstack([X, sparse.csr_matrix(centers.astype(X.dtype))]))
    else:
        rows = np.concatenate([X, centers.astype(X.dtype)])
    return rows, np.concatenate([weights, masses])


def know_anchors(known: Constraints, clusters: IntArray) -> Constraints:
    """Constraints on the rows and the class of each appended row; labels must name existing clusters."""
    labels = np.full(known.n_rows, -1) if known.labels is None else known.labels
    unknown = np.setdiff1d(labels[labels >= 0], clusters)
    if len(unknown):
        row = int(np.flatnonzero(labels == unknown[0])[0])
        raise ConstraintError(
            f"labels[{row}] is {unknown[0]}, but the clusters so far are {listed_rows(clusters.tolist())}. "
            "Name one of them, or fit again with all rows."
        )
    n_more = len(clusters)
    return Constraints(
        known.must_link,
        known.cannot_link,
        must_link_confidence=known.must_link_confidence,
        cannot_link_confidence=known.cannot_link_confidence,
        labels=np.concatenate([labels, clusters]),
        must_groups=_padded(known.must_groups, n_more),
        cannot_groups=_padded(known.cannot_groups, n_more),
        n_samples=known.n_rows + n_more,
    )


def _padded(groups: IntArray | None, n_more: int) -> IntArray | None:
    if groups is None:
        return None
    return np.concatenate([groups, np.full((n_more, *groups.shape[1:]), -1)])
