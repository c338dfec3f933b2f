"""Find clusters unlike the given ones: cluster within each given cluster, extend to all rows, combine.

Gondek & Hofmann 2005 (`gondek2005`); Truong & Battiti 2013 (`truong2013`), section 3.2.5, Algorithm 15.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from clew._base import AlternativeClusterer, Capabilities, quietly
from clew._distances import distances_between
from clew._persistence import Learned
from clew._validation import ESTIMATOR, NONE, RANDOM_STATE, Allowed, integer
from clew.constraints import Constraints
from clew.exceptions import DataError
from clew.partitional import PCKMeans

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Rows whose distances to the local centres are computed at once.
_ROWS_AT_ONCE = 4096


class CondEns(AlternativeClusterer):
    r"""Finds clusters unlike the given ones by clustering inside each given cluster and combining the results.

    Inside one given cluster, the given clusters explain nothing, so a local clustering shows what else there is. Try it
    first: it is fast, and it works best if the other grouping is independent of the given one.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of new clusters.
    n_local_clusters : int, default=None
        Number of local clusters inside each given cluster. None: `n_clusters`.
    clusterer : estimator with `fit_predict`, default=None
        Finds the local clusters. It is cloned for each given cluster; it gets `n_local_clusters` if it has
        ``n_clusters``, and a seed if its ``random_state`` is None. None: k-means that knows the constraints.
    random_state : int, Generator or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The new clusters.
    given_ : ndarray of shape (n_samples,)
        The given clusters, numbered in the order in which they appear; -1 is noise.
    members_ : ndarray of shape (n_samples, n_members)
        The extended local clusterings that were combined, one column each.
    member_clusters_ : ndarray of shape (n_members,)
        The number in `given_` of the cluster that each column comes from.
    inertia_ : float
        Sum of squared distances of rows to the mean of their new cluster: L(X, C) of [2], Eq. 46.
    variation_of_information_ : float
        Variation of information between new and given clusters, in nats: the larger, the more they differ.
    normalized_mutual_info_ : float
        Normalised mutual information between new and given clusters: 0 if they are independent.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: labels and pairs are soft, as in `PCKMeans`. They apply to the new clusters. Noise rows
    of the given clusters (-1) belong to no local clustering, and get a new cluster like all other rows.

    1. Clustering: each given cluster is split into local clusters. Given clusters without two different rows are left
       out.
    2. Extension: every row of X goes to the nearest mean of the local clusters. This gives one clustering of all rows
       for each given cluster, a *member*.
    3. Combination: k-means on the indicators of the members' clusters. The weight of a member is the number of rows
    of its given cluster. This is kernel k-means whose kernel is the co-association of two rows, the weighted share of
       the members that put them together; the matrix of all pairs is never built.

    The survey does not define steps 2 and 3; nearest means and co-association are this project's choice. Time
    O(n d L k) beyond the local clusterings and memory O(n L k), for L given clusters.

    References
    ----------
    .. [1] D. Gondek, T. Hofmann (2005). "Non-redundant clustering with conditional ensembles." KDD 2005.
    .. [2] T. Truong, R. Battiti (2013). "A Survey of Semi-Supervised Clustering Algorithms: from a priori scheme to
       interactive scheme and open issues." Section 3.2.5, Eq. 45-46, Algorithm 15.

    Examples
    --------
    >>> from clew import CondEns
    >>> X = [[0, 0], [0, 1], [9, 0], [9, 1]]
    >>> labels = CondEns(n_clusters=2, random_state=0).fit(X, given=["left", "left", "right", "right"]).labels_
    >>> bool(labels[0] == labels[2] != labels[1] == labels[3])
    True
    """

    _capabilities = Capabilities(labels="soft", must_link="soft", cannot_link="soft", sparse=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "n_local_clusters": NONE | integer(2),
        "clusterer": NONE | ESTIMATOR,
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **AlternativeClusterer._learned_attributes,
        "members_": Learned("integer", (("rows", "members"),), low=0),
        "member_clusters_": Learned("integer", (("members",),), low=0),
        "inertia_": Learned("real", low=0),
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        n_local_clusters: int | None = None,
        clusterer: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_local_clusters = n_local_clusters
        self.clusterer = clusterer
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[CondEns]:
        return [cls(random_state=0), cls(3, n_local_clusters=4, random_state=0)]

    def _fit(self, X: Any, given: IntArray, constraints: Constraints, rng: np.random.Generator) -> npt.NDArray[Any]:
        members = {}
        for cluster in range(int(given.max()) + 1):
            inside = np.flatnonzero(given == cluster)
            local = self._local_labels(X[inside], constraints[inside], rng)
            centers = means_of(X[inside], local)
            if len(centers) > 1:
                members[cluster] = nearest(X, centers)
        if not members:
            raise DataError(
                "All rows of each given cluster are equal, so there is nothing to split. Give larger clusters."
            )
        self.members_ = np.column_stack(list(members.values()))
        self.member_clusters_ = np.array(list(members), dtype=np.int64)
        weights = np.bincount(given[given >= 0])[self.member_clusters_]
        labels = self._combined(indicators(self.members_, weights), constraints, rng)
        self.inertia_ = inertia(X, labels)
        return labels

    def _local_labels(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> IntArray:
        n_local = min(int(self.n_local_clusters or self.n_clusters), X.shape[0])
        if X.shape[0] == 1:
            return np.zeros(1, dtype=np.int64)
        if self.clusterer is None:
            model, options = PCKMeans(max(n_local, 2)), {"constraints": constraints.numbered()}
        else:
            model, options = clone(self.clusterer), {}
            if "n_clusters" in model.get_params(deep=False):
                model.set_params(n_clusters=max(n_local, 2))
        if model.get_params(deep=False).get("random_state", 0) is None:
            model.set_params(random_state=int(rng.integers(2**31 - 1)))
        with quietly():
            return np.asarray(model.fit_predict(X, **options), dtype=np.int64)

    def _combined(self, rows: Any, constraints: Constraints, rng: np.random.Generator) -> IntArray:
        model = PCKMeans(int(self.n_clusters), random_state=int(rng.integers(2**31 - 1)))
        with quietly():
            model.fit(rows, constraints=constraints.numbered())
        self.cluster_labels_ = np.asarray(model.cluster_labels_, dtype=np.int64)
        self.cluster_sizes_ = np.asarray(model.cluster_sizes_, dtype=np.int64)
        return np.asarray(model.labels_, dtype=np.int64)


def means_of(X: Any, labels: IntArray) -> FloatArray:
    """The mean of the rows of each cluster, without noise; of equal means, only one is returned."""
    kept = np.flatnonzero(labels >= 0)
    codes = np.unique(labels[kept], return_inverse=True)[1]
    picked = sparse.csr_array((np.ones(len(kept)), (codes, kept)), shape=(codes.max(initial=-1) + 1, X.shape[0]))
    sums = picked @ X
    sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums)
    means = sums / np.bincount(codes, minlength=len(sums))[:, None]
    first = np.unique(means, axis=0, return_index=True)[1]
    return np.asarray(means[np.sort(first)], dtype=np.float64)


def nearest(X: Any, centers: FloatArray) -> IntArray:
    """The nearest centre of each row; ties go to the first."""
    found = np.empty(X.shape[0], dtype=np.int64)
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        found[rows] = distances_between(X[rows], centers, "euclidean").argmin(axis=1)
    return found


def indicators(members: IntArray, weights: IntArray) -> Any:
    """One column for each cluster of each member. The squared entries are the member's share of the total weight."""
    n_rows, n_members = members.shape
    starts = np.concatenate([[0], np.cumsum(members.max(axis=0) + 1)])
    entries = np.tile(np.sqrt(weights / weights.sum()), n_rows)
    places = (members + starts[:-1]).ravel()
    return sparse.csr_array(
        (entries, places, np.arange(0, n_rows * n_members + 1, n_members)), shape=(n_rows, int(starts[-1]))
    )


def inertia(X: Any, labels: IntArray) -> float:
    """Sum of squared distances of rows to the mean of their cluster."""
    codes = np.unique(labels, return_inverse=True)[1]
    picked = sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    origin = 0.0 if sparse.issparse(X) else X.mean(axis=0, dtype=np.float64)  # differences keep more digits
    rows = X if sparse.issparse(X) else X - origin
    sums = picked @ rows
    squares = rows.multiply(rows).sum() if sparse.issparse(rows) else np.einsum("ij,ij->", rows, rows)
    sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums)
    between = (np.einsum("ij,ij->i", sums, sums) / np.bincount(codes)).sum()
    return max(0.0, float(squares - between))
