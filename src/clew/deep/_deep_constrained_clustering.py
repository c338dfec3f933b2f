"""An autoencoder whose embedding is trained until clusters and constraints agree in it.

Zhang, Basu and Davidson 2019 (`zhang2019`) on top of deep embedded clustering, Xie et al. 2016 (`xie2016`). The filter
of constraints is section 6.6 and Algorithm 9 of the thesis (`randel2021b`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import pairwise_distances_argmin_min

from clew._base import Capabilities, ConstrainedClusterer, quietly
from clew._neighbours import nearest_neighbours
from clew._persistence import Learned, State
from clew._validation import CALLABLE, NONE, RANDOM_STATE, Allowed, above, array_like, integer, number, words
from clew._words import counted
from clew.constraints import Constraints
from clew.deep._network import FloatArray, IntArray, NetworkShape, Rows, SingleArray, soft_assignment
from clew.deep._progress import DeepProgress
from clew.exceptions import FileError, ParameterError
from clew.partitional import SeededKMeans
from clew.partitional._seeding import cluster_labels
from clew.partitional._sizes import LIMIT, read_limits

# Below this number of rows, layers and batches are small. With batches of 256, a round of 240 digits is one step, and
# the ARI is below that of k-means on the pixels (docs/decisions.md).
_FEW = 2_000
# Least number of rows, and hidden layers. With the 784 columns of an image, the largest network has four times as many
# weights as the middle one. 10,000 images take a minute of pre-training with the middle one.
_LAYERS = ((50_000, (500, 500, 2000)), (_FEW, (256, 256, 512)), (0, (64, 64)))
# Starts of k-means in the first embedding, as in Xie et al.
_STARTS = 20
# Root mean square distance of rows from their centres in the first embedding, in units of the kernel of the shares. Not
# critical: with 1 and 3, the ARI on the test digits of MNIST is 0.76 and 0.77; it is 0.75 without scaling.
_SPREAD = 2.0
# Margin of a triplet: the probability of sharing a cluster must be higher for the near row by this much.
_MARGIN = 0.5


def _is_sizes(value: Any) -> bool:
    is_flat = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return is_flat and all(integer(1).accepts(one) for one in value)


class DeepConstrainedClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ConstrainedClusterer):  # type: ignore[misc]
    r"""Clustering in the embedding of a neural network that is trained on rows and constraints.

    An autoencoder first learns to compress the rows to a few dimensions, in which neighbours stay together. Then its
    encoder and the cluster centres are trained until rows are close to one centre and constraints hold. Use it for
    images and long texts, where distances between rows say little, and for thousands of rows or more. Images must be
    aligned: the network has no convolutions, so it does not recognise an object that has moved. It needs torch:
    ``pip install 'clew[deep]'``.

    Parameters
    ----------
    n_clusters : int, default=8
    layers : "auto", int or list of int, default="auto"
        Numbers of units in the hidden layers of the encoder; the decoder has them in reverse. "auto" means (64, 64)
        below 2,000 rows, (256, 256, 512) below 50,000 rows, and (500, 500, 2000), as in [3]_, from there on.
    n_components : int, default=10
        Dimensions of the embedding.
    filter_fraction : float or None, default=None
        Share of the must-links and of the cannot-links with a negative impact that is dropped before each round, the
        lowest impact first. The impact of a pair comes from dual variables of the clustering in the embedding. Use it
        where some pairs may be wrong. None uses all pairs.
    filter_rule : {"soft", "kmeans"}, default="soft"
        "soft": when training on all pairs has ended, a second stage of training filters them. Pairs that hold are
        used, so a fraction of 0 is the same as None. "kmeans": filter from the first round on, by k-means in the
        embedding, and use no pair that holds there. With ``n_neighbors=0``, it is Algorithm 9 of [2]_ as it is printed.
    penalty : float, default=10.0
        Weight of a constraint (a must-link, a cannot-link, a known class or a triplet), relative to the weight of a
        row. For a pair it is multiplied by the confidence.
    size_min : number, array of shape (n_clusters,) or None, default=None
        Desired smallest number of rows in a cluster. Smaller clusters are charged, but not refused. An array has one
        limit for each cluster, in the order of `cluster_labels_`.
    size_max : number, array of shape (n_clusters,) or None, default=None
        Desired largest number of rows in a cluster, in the same form.
    size_penalty : float, default=1.0
        Weight of the mean squared excess over these limits, in units of the average size of a cluster.
    reconstruction : float, default=0.0
        Weight of the reconstruction error while clustering, which keeps the embedding faithful to the rows. It is 1 in
        [1]_, and makes a round take twice as long.
    pretrained : array of shape (n_weights,) or None, default=None
        Initial weights for clustering, such as the `network_` of an earlier fit with the same layers. They replace
        pre-training, so that one pre-training (a fit with ``max_iter=0``) can be used for many fits.
    n_neighbors : int, default=10
        Number of nearest neighbours. Pre-training places each row close to its neighbours in X and away from other
        rows. While clustering, pairs and triplets are learned for neighbours in the first embedding as well. 0 turns
        both off, as in [1]_.
    pretrain_epochs : int, default=50
        Number of passes over the rows while pre-training.
    max_iter : int, default=100
        Largest number of rounds, each with one pass over the rows and one over the constraints. The second stage of
        the filter "soft" has as many rounds again.
    tol : float, default=0.001
        Stop when a smaller share of the rows changes its cluster in a round. A round of few rows has few steps of the
        optimiser, so then in as many rounds in a row as have eight steps together.
    batch_size : "auto" or int, default="auto"
        Number of rows for each step of the optimiser. "auto" means 64 below 2,000 rows, and 256 from there on.
    learning_rate : float, default=0.001
        Step of the Adam optimiser.
    callback : callable or None, default=None
        Called after each round with a named tuple of `stage`, `n_iter`, `max_iter`, `objective`, `changed`, `seconds`
        and `seconds_left`, an estimate. If it returns False, the stage (pre-training, clustering or filtering) ends.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    embedding_centers_ : ndarray of shape (n_clusters, n_components)
        Centres of the clusters, in the embedding.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters,)
        Label and number of rows of each cluster.
    network_ : ndarray
        All weights of the encoder and of the decoder.
    shift_ : ndarray of shape (n_features,)
        Means of the columns.
    scale_ : float
        The network takes ``(X - shift_) / scale_``.
    used_must_link_, used_cannot_link_ : ndarray of shape (n_pairs, 2)
        Distinct given pairs that the last round used, themselves or by neighbours: all of them without a filter.
    objective_ : float
        J below at the result, without the reconstruction error and groups.
    objective_history_ : ndarray
        J before the first round and after each round, with all given pairs. It need not fall: targets change, and a
        filter leaves pairs out.
    changed_history_ : ndarray of shape (n_iter_,)
        Share of the rows that changed their cluster in each round.
    pretraining_history_ : ndarray
        Mean squared reconstruction error of each epoch, in units of the variance of X.
    n_iter_ : int
        Number of rounds of clustering and filtering. If the last number of `changed_history_` is not below `tol`,
        clusters were still changing.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Pairs that the labels break: all broken given pairs, and one pair for each row that breaks a group or class.

    Notes
    -----
    Constraints: all kinds are soft, except soft groups, which are ignored. Only given pairs are priced; entailed ones
    are not added. With the embedding z of a row and the centre m of a cluster, q is a row's share in a cluster, and p
    sharpens it:

    .. math:: q_i^c \propto (1 + \lVert z_i - m_c \rVert^2)^{-1}, \quad p_i^c \propto (q_i^c)^2 / \sum_j q_j^c

    Minimises, by mini-batches, with p fixed during a round,

    .. math:: J = \frac{1}{n} \Big( \sum_{i,c} p_i^c \log \frac{p_i^c}{q_i^c}
              - \lambda \sum_{ML} \log s_{ij} - \lambda \sum_{CL} \log (1 - s_{ij}) \Big), \quad
              s_{ij} = \sum_c q_i^c q_j^c

    plus the reconstruction error, minus :math:`\log q_i^c` for known classes, :math:`\max(0, s_{ij} - s_{il} + 1/2)`
    for triplets (i closer to l than to j), and the charge for sizes. In each use of a pair or triplet, a row is
    represented by itself or one of its `n_neighbors` neighbours, with equal probabilities. In each round, as many pairs
    are drawn from a must-group or cannot-group as it has rows. A batch without a constraint learns from its rows alone.

    The filter "soft" begins when training on all pairs has ended, after `max_iter` rounds or at `tol`. In each later
    round, the score of a pair is the mean impact of five of its representatives. The impact is that of
    `clew.audit.impact`, where a row costs :math:`-\log q` in a cluster. Of the must-links with a negative score, the
    floor of `filter_fraction` times their number is dropped, the lowest first. The same holds for cannot-links.

    Pre-training minimises the reconstruction error plus, for each row i of a batch and its neighbour j, the negative
    logarithm of :math:`(1 + \lVert z_i - z_j \rVert^2)^{-1}`, divided by its sum over all other rows of the batch [4]_.
    The embedding is then multiplied by a number that brings rows to a root mean square distance of 2 from the centres
    of k-means.

    Time O(t (n + m) w) for t rounds, m pairs and w weights, and O(n² d) for neighbours of up to 20,000 rows (beyond,
    they are approximate); memory O(n (k + e) + w) beyond X, with e dimensions, and O(m k)
    for the filter. Sparse rows become dense a batch at a time. If there are more must-links or cannot-links than rows,
    a round has more steps, with fewer rows each. The same seed gives the same result on one machine with the same
    number of torch threads. `predict` and `transform` do not need torch.
    Departs from [1]_ and [2]_: pairs are learned for neighbours, too. Pairs are learned in the same batches as rows, so
    that J is one objective. Layers are pre-trained together and not one after another. The losses in [2]_ lack their
    minus signs, and its filter drops :math:`\lfloor \alpha \rfloor` times the number of pairs, which is 0 below
    :math:`\alpha = 1`; here it is the floor of the product. The filter of [2]_ begins with the first round, ranks both
    kinds of pairs together, and uses no pair that holds, and no neighbours. ``filter_rule="kmeans"`` does so.

    References
    ----------
    .. [1] H. Zhang, S. Basu, I. Davidson (2019). "A framework for deep constrained clustering: algorithms and
       advances." ECML PKDD.
    .. [2] R. Randel (2021). "Optimization methods to enhance constraint-based semi-supervised clustering." PhD thesis,
       Polytechnique Montréal. Section 6.6, Algorithm 9.
    .. [3] J. Xie, R. Girshick, A. Farhadi (2016). "Unsupervised deep embedding for clustering analysis." ICML.
    .. [4] S. Damrich, J. N. Böhm, F. A. Hamprecht, D. Kobak (2023). "From t-SNE to UMAP with contrastive learning."
       ICLR.

    Examples
    --------
    >>> from clew import DeepConstrainedClustering
    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [9.0, 9.0], [9.0, 8.0], [8.0, 9.0]]
    >>> model = DeepConstrainedClustering(n_clusters=2, layers=16, n_components=2, random_state=0)
    >>> labels = model.fit(X, constraints={"cannot_link": [(0, 3)]}).labels_
    >>> bool(labels[0] == labels[1] != labels[3] == labels[4])
    True
    >>> model.transform(X).shape
    (6, 2)
    """

    _capabilities = Capabilities(
        labels="soft",
        must_link="soft",
        cannot_link="soft",
        triplets="soft",
        sizes="soft",
        sparse=True,
        predicts=True,
        embeds=True,
        extra="deep",
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "layers": words("auto") | integer(1) | Allowed("a list of integers >= 1", _is_sizes),
        "n_components": integer(1),
        "filter_fraction": number(0, 1) | NONE,
        "filter_rule": words("soft", "kmeans"),
        "penalty": number(0),
        "size_min": LIMIT,
        "size_max": LIMIT,
        "size_penalty": number(0),
        "reconstruction": number(0),
        "pretrained": array_like() | NONE,
        "n_neighbors": integer(0),
        "pretrain_epochs": integer(0),
        "max_iter": integer(0),
        "tol": number(0),
        "batch_size": words("auto") | integer(1),
        "learning_rate": above(0),
        "callback": CALLABLE | NONE,
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "embedding_centers_": Learned("real", (("clusters", "dimensions"),)),
        "network_": Learned("real", ((None,),)),
        "shift_": Learned("real", (("columns",),)),
        "scale_": Learned("real", low=0),
        "used_must_link_": Learned("integer", ((None, 2),), low=0, below="rows"),
        "used_cannot_link_": Learned("integer", ((None, 2),), low=0, below="rows"),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "changed_history_": Learned("real", ((None,),), low=0, empty=True),
        "pretraining_history_": Learned("real", ((None,),), low=0, empty=True),
        "n_iter_": Learned("integer", low=0),
    }
    network_: SingleArray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        layers: Any = "auto",
        n_components: int = 10,
        filter_fraction: float | None = None,
        filter_rule: str = "soft",
        penalty: float = 10.0,
        size_min: Any = None,
        size_max: Any = None,
        size_penalty: float = 1.0,
        reconstruction: float = 0.0,
        pretrained: Any = None,
        n_neighbors: int = 10,
        pretrain_epochs: int = 50,
        max_iter: int = 100,
        tol: float = 0.001,
        batch_size: int | str = "auto",
        learning_rate: float = 0.001,
        callback: Callable[[DeepProgress], Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.layers = layers
        self.n_components = n_components
        self.filter_fraction = filter_fraction
        self.filter_rule = filter_rule
        self.penalty = penalty
        self.size_min = size_min
        self.size_max = size_max
        self.size_penalty = size_penalty
        self.reconstruction = reconstruction
        self.pretrained = pretrained
        self.n_neighbors = n_neighbors
        self.pretrain_epochs = pretrain_epochs
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.callback = callback
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[DeepConstrainedClustering]:
        if not cls._is_installed():
            return []
        small: dict[str, Any] = {"n_clusters": 3, "layers": 8, "n_components": 2, "batch_size": 16, "random_state": 0}
        return [
            cls(**small, pretrain_epochs=4, max_iter=4),
            cls(**small, pretrain_epochs=2, max_iter=3, filter_fraction=0.5),
        ]

    @classmethod
    def _is_installed(cls) -> bool:
        return find_spec("torch") is not None

    def _shape(self, n_rows: int, n_features: int) -> NetworkShape:
        by_rows = next(hidden for least, hidden in _LAYERS if n_rows >= least)
        hidden = by_rows if isinstance(self.layers, str) else [int(units) for units in np.atleast_1d(self.layers)]
        return NetworkShape((n_features, *hidden, int(self.n_components)))

    def _rows_of_a_batch(self, n_rows: int) -> int:
        return (64 if n_rows < _FEW else 256) if isinstance(self.batch_size, str) else int(self.batch_size)

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        from clew.deep._knowledge import DeepKnowledge  # loads torch, which is optional
        from clew.deep._rounds import deep_clustering
        from clew.deep._training import LossWeights, threads_for

        k, n_rows = int(self.n_clusters), X.shape[0]
        names = cluster_labels(constraints.closure(), k)
        limits = read_limits(self, k, self.size_min, self.size_max)
        shape, rows = self._shape(*X.shape), Rows.standardized(X)
        with threads_for(shape):
            network, self.pretraining_history_ = self._first_weights(shape, rows, rng)
        embedding = shape.encode(network, rows)
        centers = self._first_centers(embedding, constraints, names, rng)
        factor = _factor(embedding, centers)
        least = most = None
        if limits is not None:
            least, most = limits.lower / n_rows, np.minimum(limits.upper / n_rows, 1.0)
        with threads_for(shape):
            found = deep_clustering(
                rows,
                shape,
                shape.scaled(network, factor),
                DeepKnowledge.of(constraints, names, n_rows),
                factor * centers,
                np.column_stack([np.arange(n_rows), _neighbors(embedding, self.n_neighbors)]),
                LossWeights(self.reconstruction, self.penalty, self.size_penalty, _MARGIN, least, most),
                rng,
                filter_fraction=self.filter_fraction,
                filter_rule=self.filter_rule,
                batch_size=self._rows_of_a_batch(n_rows),
                learning_rate=self.learning_rate,
                max_iter=self.max_iter,
                tol=self.tol,
                callback=self.callback,
            )
        self.network_, self.shift_, self.scale_ = found.network, rows.shift, rows.scale
        self.embedding_centers_ = found.centers.astype(X.dtype)
        self.objective_history_, self.changed_history_ = np.array(found.history), np.array(found.changed)
        self.objective_ = float(self.objective_history_[-1])
        self.used_must_link_ = np.unique(found.used.must_link.given, axis=0)
        self.used_cannot_link_ = np.unique(found.used.cannot_link.given, axis=0)
        self.n_iter_ = len(found.changed)
        self.cluster_labels_ = names
        self.cluster_sizes_ = np.bincount(found.labels, minlength=k)
        return names[found.labels]

    def _first_weights(
        self, shape: NetworkShape, rows: Rows, rng: np.random.Generator
    ) -> tuple[SingleArray, FloatArray]:
        """The initial weights for clustering, and the error of each epoch of pre-training."""
        from clew.deep._rounds import pretrain

        if self.pretrained is None:
            return pretrain(
                rows,
                shape,
                _neighbors(rows.X, self.n_neighbors),
                rng,
                n_epochs=self.pretrain_epochs,
                batch_size=self._rows_of_a_batch(rows.n_rows),
                learning_rate=self.learning_rate,
                callback=self.callback,
            )
        try:
            given = np.asarray(self.pretrained, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"pretrained in DeepConstrainedClustering cannot be used: {error}.") from error
        if given.shape != (shape.n_weights,):
            raise ParameterError(
                f"pretrained in DeepConstrainedClustering has shape {given.shape}, but "
                f"{counted(shape.sizes[0], 'column')}, layers {shape.sizes[1:-1]} and n_components={self.n_components} "
                f"need {shape.n_weights} weights. "
                "Give the network_ of a fit with the same layers."
            )
        if not np.isfinite(given).all():
            raise ParameterError("pretrained contains NaN or infinity.")
        return given, np.empty(0)

    @quietly()
    def _first_centers(
        self, embedding: SingleArray, constraints: Constraints, names: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """Centres of k-means in the first embedding, seeded by the known classes."""
        known = None if constraints.labels is None else Constraints(labels=constraints.labels)
        init = "k-means++" if known is None else "neighbourhoods"
        start = SeededKMeans(len(names), init=init, n_init=_STARTS, random_state=rng)
        return np.asarray(start.fit(embedding.astype(np.float64), constraints=known).cluster_centers_)

    def _embedded(self, X: Any) -> SingleArray:
        """New rows in the embedding."""
        rows = Rows(self._check_new_rows(X), self.shift_, self.scale_)
        return self._shape(len(self.labels_), self.n_features_in_).encode(self.network_, rows)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Map rows to the embedding, in which other methods can cluster them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._embedded(X).astype(self.embedding_centers_.dtype)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_centers_.shape[1])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest centre in the embedding; constraints are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        shares = soft_assignment(self._embedded(X), self.embedding_centers_.astype(np.float32))
        return self._with_class_names(self.cluster_labels_[shares.argmax(axis=1)])

    @classmethod
    def _from_state(cls, path: str | os.PathLike[str], state: State) -> Self:
        estimator: Any = super()._from_state(path, state)
        if state.learned:
            shape = estimator._shape(len(estimator.labels_), estimator.n_features_in_)
            found = len(estimator.network_), estimator.embedding_centers_.shape
            needed = shape.n_weights, (int(estimator.n_clusters), shape.sizes[-1])
            if found != needed:
                raise FileError(
                    f"{path} cannot be used: its network has {found[0]} weights and centres of shape {found[1]}, but "
                    f"layers {shape.sizes[1:-1]} need {needed[0]} and {needed[1]}. Save the estimator again."
                )
        return estimator


def _neighbors(X: Any, n_neighbors: int) -> IntArray:
    """The nearest neighbours of each row, fewer than `n_neighbors` if there are not enough rows."""
    n_neighbors = min(n_neighbors, X.shape[0] - 1)
    if n_neighbors == 0:
        return np.empty((X.shape[0], 0), dtype=np.int64)
    return nearest_neighbours(X, n_neighbors)[1]


def _factor(embedding: SingleArray, centers: FloatArray) -> float:
    """Factor for the embedding, so that its clusters have the width of the kernel of the shares."""
    nearest = pairwise_distances_argmin_min(embedding.astype(np.float64), centers)[1]
    return float(_SPREAD / (np.sqrt((nearest**2).mean()) or _SPREAD))
