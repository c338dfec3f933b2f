"""The base classes of estimators, and the checks that every `fit` shares.

`ConstrainedClusterer` makes clusters, and `AlternativeClusterer` makes clusters that differ from given ones. Metric
learners, which transform rows, have their base in `clew.metric._family`. Each `fit` checks parameters, rows and
constraints once. Then it calls the method's `_fit`, which trusts them.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import count
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from clew._families import families
from clew._persistence import Learned, State, check_learned, write_state
from clew._validation import (
    Allowed,
    Pairwise,
    as_generator,
    check_given,
    check_pairwise,
    check_parameters,
    check_rows,
    check_table,
    check_weights,
    is_table,
    n_distinct_rows,
    refuse_negative_counts,
)
from clew._words import listed
from clew.constraints import Constraints
from clew.constraints._inputs import marks_unknown, only_means_constraints
from clew.datasets._stored import is_dask, is_remote
from clew.evaluation import normalized_mutual_info_score, variation_of_information
from clew.exceptions import (
    ConstraintError,
    DataError,
    DataTypeError,
    FewerClustersWarning,
    FileError,
    ParameterError,
    UnusedKnowledgeWarning,
)

# The label of rows in no cluster, if classes have names.
NOISE = "noise"

Handling = Literal["hard", "soft", "seeds", "ignored"]
Role = Literal["clusterer", "metric learner", "alternative clusterer"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True)
class Capabilities:
    """Declares how a method handles each kind of constraint and data. Tests, commands, docs and messages use it.

    A kind of constraint is "hard" if it holds in every result, "soft" if breaking it has a price, "seeds" if it only
    initialises the clusters, and "ignored" if the method does not use it. With `prices_doubt`, "hard" applies to
    constraints of confidence 1, and less certain ones are soft.
    """

    labels: Handling
    must_link: Handling
    cannot_link: Handling
    groups: bool = True  # must_groups count as must-links and cannot_groups as cannot-links
    soft_groups: Handling = "ignored"
    triplets: Handling = "ignored"
    sizes: Handling = "ignored"  # size_min and size_max
    prices_doubt: bool = False
    sample_weight: bool = False
    sparse: bool = False
    counts: bool = False  # X holds counts, such as word counts of documents: no entry is below 0
    pairwise: Pairwise | None = None  # X is a square matrix of this kind instead of rows and columns
    asymmetric: bool = False  # this matrix may differ from its transpose
    tables: bool = False  # X may be a table of records, with columns of text
    any_shape: bool = False  # clusters may have any shape; else they are round under the metric
    quadratic: bool = False  # memory grows with the square of the number of rows
    needs_n_clusters: bool = True
    needs_both_kinds: bool = False  # fit refuses must-links without cannot-links, and vice versa
    noise: bool = False  # labels_ may contain -1, for rows in no cluster
    predicts: bool = False  # inductive: new rows get a cluster, or are mapped
    embeds: bool = False  # transform maps rows to a learned space; else, a clusterer's gives distances to its centres
    streams: bool = False  # has partial_fit
    out_of_core: bool = False  # fit also takes paths, datasets, batches and Dask collections, without loading them
    monotone: bool = False  # the objective never rises from round to round
    extra: str | None = None  # fit needs this extra of clew

    @property
    def vectors(self) -> bool:
        """Whether X holds vectors of any numbers, such as encoded columns, and not a square matrix or counts."""
        return self.pairwise is None and not self.counts


# Largest number of methods that a warning about unused constraints names.
_MOST_USERS = 4

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress `FewerClustersWarning`, for fits inside other methods."""
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def is_quiet() -> bool:
    """Whether a fit runs inside `quietly`."""
    return _is_quiet.get()


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called clew."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "clew":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def all_estimators(role: Role | None = None) -> list[type[Any]]:
    """Every estimator class of a role, or of all roles, family by family in the order of each family's `__all__`."""
    classes = [getattr(family, name) for family in families() for name in family.__all__]
    return [cls for cls in classes if role is None or cls._role == role]


class Checked(NamedTuple):
    """Validated arguments of `fit`."""

    X: Any
    constraints: Constraints
    weights: npt.NDArray[np.float64]  # empty: every row counts once
    rng: np.random.Generator


class ConstrainedEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: checks parameters, rows and constraints; saves learned attributes."""

    _role: ClassVar[Role]
    _capabilities: ClassVar[Capabilities]
    _parameters: ClassVar[dict[str, Allowed]]
    n_clusters: int | str  # if the method has this parameter
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        "n_features_in_": Learned("integer", low=1, counts="columns"),
        "feature_names_in_": Learned("text", (("columns",),), optional=True),
    }

    @classmethod
    def _examples(cls) -> list[Any]:
        """Small instances for tests."""
        raise NotImplementedError  # pragma: no cover

    @classmethod
    def _is_installed(cls) -> bool:
        """Whether the extra that the method needs is installed."""
        return True

    @property
    def capabilities(self) -> Capabilities:
        """How this instance handles each kind of constraint and data; it may depend on parameters."""
        return replace(self._capabilities, needs_n_clusters=isinstance(getattr(self, "n_clusters", None), Integral))

    @contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        """Restore the estimator if the block fails or is interrupted."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _checked(self, X: Any, y: Any, constraints: Any, sample_weight: Any = None, *, reset: bool = True) -> Checked:
        """Check the parameters and all arguments of `fit`."""
        check_parameters(self, self._parameters)
        X = self._check_input(X, reset=reset)
        n_samples = X.shape[0]
        self._refuse_constraints_as_y(y, n_samples)
        known = self._usable(Constraints.of(constraints, n_samples=n_samples))
        return Checked(X, known, check_weights(sample_weight, n_samples), self._generator())

    def _generator(self) -> np.random.Generator:
        """The random generator; a method without `random_state` does not use it."""
        return as_generator(getattr(self, "random_state", 0))

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        """Check X and convert it to the form that this method takes: rows, a square matrix, or a table of records."""
        self._refuse_remote(X)
        can = self.capabilities
        if can.pairwise is not None:
            return check_pairwise(
                self, X, can.pairwise, reset=reset, accept_sparse=can.sparse, asymmetric=can.asymmetric
            )
        if can.tables and is_table(X):
            return check_table(self, X, reset=reset)
        rows = check_rows(self, X, reset=reset, accept_sparse=can.sparse)
        if can.counts:
            refuse_negative_counts(rows, type(self).__name__)
        return rows

    def _refuse_remote(self, X: Any) -> None:
        """Raise if X is not in memory and this method needs all rows. A memory-mapped array is an array to it."""
        if self.capabilities.out_of_core or isinstance(X, np.memmap) or not is_remote(X):
            return
        users = [cls.__name__ for cls in all_estimators(self._role) if cls._capabilities.out_of_core]
        other = f", or use {listed(users, 'or')}" if users else ""
        here = " with these parameters" if self._capabilities.out_of_core else ""
        load, what = "clew.datasets.read_table", f"a {type(X).__name__}"
        if is_dask(X):
            load, what = "X.compute()", f"a Dask {type(X).__name__}"
        elif isinstance(X, str | os.PathLike):
            what = f"the path {str(X)!r}"
        raise DataTypeError(
            f"{type(self).__name__}{here} needs all rows in memory, and X is {what}. Load X ({load}){other}."
        )

    def _check_new_rows(self, X: Any) -> Any:
        """Check X for `predict` and `transform`: it must have the fitted columns."""
        check_is_fitted(self)
        return self._check_input(X, reset=False)

    def _usable(self, constraints: Constraints) -> Constraints:
        """The constraints that this method uses; a hard method refuses contradictory ones."""
        self._warn_of_unused(constraints)
        if hasattr(self, "min_confidence"):
            constraints = constraints.at_least(self.min_confidence)
        can = self.capabilities
        if can.must_link == "hard":
            certain = constraints.at_least(1.0) if can.prices_doubt else constraints
            certain.require_consistent()
        return constraints

    def _refuse_constraints_as_y(self, y: Any, n_samples: int) -> None:
        if only_means_constraints(y, n_samples):
            raise ConstraintError(
                f"y is a {type(y).__name__} that holds constraints, and {type(self).__name__} ignores y. "
                "Pass constraints by name: fit(X, constraints=...)."
            )
        if marks_unknown(y):
            warn_caller(
                f"{type(self).__name__} ignores y. If -1 in y is a row without a label, pass fit(X, constraints=y).",
                UnusedKnowledgeWarning,
            )

    def _refuse_too_many_clusters(self, n_samples: int) -> None:
        if self.capabilities.needs_n_clusters and int(self.n_clusters) > n_samples:
            raise DataError(f"n_clusters={self.n_clusters}, but X has n_samples={n_samples} rows. Lower n_clusters.")

    def _warn_of_unused(self, constraints: Constraints) -> None:
        given = {
            "triplets": len(constraints.triplets) > 0,
            "soft_groups": constraints.soft_groups is not None and constraints.soft_groups.nnz > 0,
            "groups": constraints.must_groups is not None or constraints.cannot_groups is not None,
            "must_link": len(constraints.must_link) > 0,
            "cannot_link": len(constraints.cannot_link) > 0,
        }
        kinds = [kind for kind, is_given in given.items() if is_given]
        for kind in kinds:
            if not _uses(self.capabilities, kind):
                users = self._users(kind, kinds)
                advice = f"Use {listed(users[:_MOST_USERS], 'or')}" if users else "No method of this version uses them"
                message = f"{type(self).__name__} ignores the {kind} in constraints. {advice}."
                warn_caller(message, UnusedKnowledgeWarning)

    def _users(self, kind: str, given: list[str]) -> list[str]:
        """Names of the methods that use a kind of constraints, and are most like this one.

        Methods for the same kind of data are preferred, then those that ignore the fewest of the given kinds, and among
        them those of the same family.
        """
        mine, family = self.capabilities, type(self).__module__.rpartition(".")[0]

        def rank(cls: type[Any]) -> tuple[bool, int, bool]:
            can = cls._capabilities
            other_data = (can.counts, can.pairwise, can.tables) != (mine.counts, mine.pairwise, mine.tables)
            n_ignored = sum(not _uses(can, other) for other in given)
            return other_data, n_ignored, cls.__module__.rpartition(".")[0] != family

        users = [cls for cls in all_estimators(self._role) if _uses(cls._capabilities, kind)]
        return [cls.__name__ for cls in users if rank(cls) == min(map(rank, users))]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a zip of arrays and JSON; `clew.load` reads it back.

        No code is stored: the parameter `callback`, which only a fit uses, is None in the loaded estimator.
        """
        write_state(path, *self._state())

    def _state(self) -> State:
        """The parameters and the learned attributes that are declared in `_learned_attributes`."""
        learned = {name: getattr(self, name) for name in self._learned_attributes if hasattr(self, name)}
        params = self.get_params(deep=False)
        return State(type(self).__name__, params | ({"callback": None} if "callback" in params else {}), learned)

    def _expected_attributes(self) -> dict[str, Learned]:
        """The attributes that a fit with these parameters learns."""
        return self._learned_attributes

    @classmethod
    def _from_state(cls, path: str | os.PathLike[str], state: State) -> Self:
        """Build an estimator from a state that was read from a file; raise if no fit can lead to that state."""
        try:
            estimator = cls(**state.params)
            check_parameters(estimator, cls._parameters)
        except TypeError:
            raise FileError(f"{path} holds parameters that {state.name} does not have. Update clew.") from None
        except ParameterError as error:
            raise FileError(f"{path} cannot be used: {error}") from None
        check_learned(path, estimator._expected_attributes(), state.learned)
        for name, value in state.learned.items():
            setattr(estimator, name, value)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.capabilities.sparse
        tags.input_tags.positive_only = self.capabilities.counts
        tags.input_tags.pairwise = self.capabilities.pairwise is not None
        tags.transformer_tags = None if not hasattr(self, "transform") else tags.transformer_tags
        return tags


def _uses(can: Capabilities, kind: str) -> bool:
    return getattr(can, kind) not in (False, "ignored")


class LabellingEstimator(ClusterMixin, ConstrainedEstimator):  # type: ignore[misc]
    """Base of the two roles whose result is one label per row. The label -1 is noise, a row in no cluster."""

    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedEstimator._learned_attributes,
        "labels_": Learned("label", (("rows",),), low=-1),
        "classes_": Learned("text", ((None,),), optional=True),
        "cluster_labels_": Learned("integer", (("clusters",),), low=0),
        "cluster_sizes_": Learned("integer", (("clusters",),), low=0),
        "violated_must_link_": Learned("integer", ((None, 2),), low=0),
        "violated_cannot_link_": Learned("integer", ((None, 2),), low=0),
    }
    labels_: npt.NDArray[Any]

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> npt.NDArray[Any]:
        """Cluster the rows and return their labels. The arguments are those of `fit`."""
        self.fit(X, y, **kwargs)
        return self.labels_

    def _set_first_labels(self, given: Checked, labels: npt.NDArray[Any]) -> None:
        """Set `labels_` of a first fit. Labels are class names if the user named the classes."""
        known = given.constraints
        self.__dict__.pop("classes_", None)
        if known.classes is not None:
            self.classes_ = cluster_names(known.classes, labels, getattr(self, "cluster_labels_", ()))
        self._set_labels(known, labels)
        self._explain_number(given.X, known, labels)

    def _set_labels(self, constraints: Constraints, labels: npt.NDArray[Any]) -> None:
        """Set `labels_` and the pairs that they violate."""
        self.violated_must_link_, self.violated_cannot_link_ = constraints.violations(labels)
        self.labels_ = self._with_class_names(labels)
        logging.getLogger(type(self).__module__).info(
            "%s: %d rows, %d must-links and %d cannot-links violated",
            type(self).__name__, len(labels), len(self.violated_must_link_), len(self.violated_cannot_link_),
        )  # fmt: skip

    def _with_class_names(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Replace labels by class names, if the user named the classes."""
        if not hasattr(self, "classes_"):
            return labels
        names = np.append(self.classes_, NOISE)  # index -1 is the last name
        if hasattr(labels, "map_blocks"):  # labels on other machines
            return labels.map_blocks(lambda block: names[block], dtype=object)
        return np.asarray(names[labels], dtype=object)

    def _explain_number(self, X: Any, constraints: Constraints, labels: npt.NDArray[Any]) -> None:
        """Warn if there are fewer clusters than requested, with the number and the reason."""
        n_found = len(np.unique(labels[labels >= 0]))
        if not self.capabilities.needs_n_clusters or n_found >= int(self.n_clusters) or is_quiet():
            return
        warn_caller(
            f"{type(self).__name__} found {n_found} of {self.n_clusters} clusters: "
            f"{self._why_fewer(X, constraints, int(self.n_clusters))}",
            FewerClustersWarning,
        )

    def _why_fewer(self, X: Any, constraints: Constraints, n_clusters: int) -> str:
        n_components = constraints.closure().n_components
        if self.capabilities.must_link != "seeds" and n_components < n_clusters:
            noun = "component" if n_components == 1 else "components"
            return f"must-links leave {n_components} {noun} of rows. Lower n_clusters, or remove must-links."
        if self.capabilities.pairwise is None and (reason := self._why_alike(X, n_clusters)):
            return reason
        return self._why_empty(X)

    def _why_empty(self, X: Any) -> str:
        """Why clusters are empty although rows and must-links allow more of them."""
        return "splitting a cluster further would not lower the cost. Lower n_clusters, or try another random_state."

    def _why_alike(self, X: Any, n_clusters: int) -> str:
        """Why X has too few distinct rows for this number of clusters; an empty text if it has enough."""
        values = X.data if sparse.issparse(X) else X - X[:1]
        largest = float(np.abs(values).max(initial=0))
        if 0 < largest < np.sqrt(np.finfo(X.dtype).tiny):
            return f"rows differ by {largest:.3g} at most, whose square is 0 in {X.dtype} numbers. Scale X."
        n_rows = n_distinct_rows(X, n_clusters, directions=self._measures_angles)
        if n_rows < n_clusters:
            noun = "direction" if self._measures_angles else "row"
            return f"X has {n_rows} distinct {noun if n_rows == 1 else noun + 's'}. Lower n_clusters."
        return ""

    @property
    def _measures_angles(self) -> bool:
        """Whether the method treats rows of the same direction as equal."""
        return False


def cluster_names(classes: npt.NDArray[Any], labels: npt.NDArray[Any], clusters: Any) -> npt.NDArray[Any]:
    """The name of each cluster number: its class, or new-1, new-2, ... for clusters without a class."""
    n_names = 1 + max((int(np.max(numbers, initial=-1)) for numbers in (labels, clusters)), default=-1)
    fresh = (name for place in count(1) if (name := f"new-{place}") not in set(classes.tolist()))
    names = [*classes.tolist(), *(next(fresh) for _ in range(n_names - len(classes)))]
    return np.array(names, dtype=object)


def own_probability(model: Any) -> npt.NDArray[np.float64] | None:
    """Probability of each row's own cluster from a fitted clusterer; None if the method has no probabilities."""
    if hasattr(model, "row_probabilities_"):
        return np.asarray(model.row_probabilities_, dtype=np.float64)
    if not hasattr(model, "probabilities_"):
        return None
    order = np.argsort(model.cluster_labels_, kind="stable")
    own = order[np.searchsorted(model.cluster_labels_, model.labels_, sorter=order)]
    return np.asarray(np.take_along_axis(model.probabilities_, own[:, None], axis=1)[:, 0])


class ConstrainedClusterer(LabellingEstimator):
    """Base of the clusterers: each supplies `_fit`."""

    _role = "clusterer"

    def _fit(
        self, X: Any, constraints: Constraints, weights: npt.NDArray[np.float64], rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Cluster checked rows; set learned attributes and return the labels."""
        raise NotImplementedError  # pragma: no cover

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None, **others: Any) -> Self:
        """Cluster the rows under constraints.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn. Constraints are refused here: pass them by name.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            See `Constraints.of`.
        """
        self._refuse_arguments(others)
        return self._fit_checked(X, y, constraints, None)

    def _refuse_arguments(self, others: dict[str, Any]) -> None:
        """Raise on arguments that this method does not take. For weights, the message names methods that take them."""
        for name, value in others.items():
            if name != "sample_weight":
                raise TypeError(f"{type(self).__name__}.fit() got an unexpected keyword argument {name!r}")
            if value is not None:
                users = [cls.__name__ for cls in all_estimators(self._role) if cls._capabilities.sample_weight]
                raise DataTypeError(
                    f"{type(self).__name__} cannot use weights. Leave out sample_weight, or use {listed(users, 'or')}."
                )

    def _fit_checked(self, X: Any, y: Any, constraints: Any, sample_weight: Any) -> Self:
        with self._whole_or_not_at_all():
            given = self._checked(X, y, constraints, sample_weight)
            self._refuse_too_many_clusters(given.X.shape[0])
            self._set_first_labels(given, self._fit(*given))
        return self


class WeightedClusterer(ConstrainedClusterer):
    """Base of clusterers that use `sample_weight`."""

    def fit(  # type: ignore[override]  # every argument is named here
        self, X: Any, y: Any = None, *, constraints: Any = None, sample_weight: Any = None
    ) -> Self:
        """Cluster the rows under constraints.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn. Constraints are refused here: pass them by name.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            See `Constraints.of`.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; prices of pairs are not weighted.
        """
        return self._fit_checked(X, y, constraints, sample_weight)


class AlternativeClusterer(LabellingEstimator):
    """Base of methods that find clusters unlike given ones: each supplies `_fit`."""

    _role = "alternative clusterer"
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **LabellingEstimator._learned_attributes,
        "given_": Learned("integer", (("rows",),), low=-1),
        "variation_of_information_": Learned("real"),
        "normalized_mutual_info_": Learned("real"),
    }

    def _fit(
        self, X: Any, given: npt.NDArray[np.int64], constraints: Constraints, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Cluster checked rows unlike `given`; set learned attributes and return the labels."""
        raise NotImplementedError  # pragma: no cover

    def fit(self, X: Any, y: Any = None, *, given: Any, constraints: Any = None) -> Self:
        """Find clusters that differ from the given ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn. Constraints are refused here: pass them by name.
        given : array-like of shape (n_samples,)
            The known clusters, two or more: a label per row, -1 for noise.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            Constraints on the new clusters. See `Constraints.of`.
        """
        with self._whole_or_not_at_all():
            checked = self._checked(X, y, constraints)
            self._refuse_too_many_clusters(checked.X.shape[0])
            known = check_given(given, checked.X.shape[0])
            labels = self._fit(checked.X, known, checked.constraints, checked.rng)
            self._set_first_labels(checked, labels)
            self.given_, clustered = known, known >= 0
            self.variation_of_information_ = variation_of_information(known[clustered], labels[clustered])
            self.normalized_mutual_info_ = normalized_mutual_info_score(known[clustered], labels[clustered])
        return self
