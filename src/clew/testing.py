"""Helpers for tests of estimators, those of this package or your own."""

from __future__ import annotations

from typing import Any


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks of scikit-learn that an estimator fails by its nature, each with the reason.

    Parameters
    ----------
    estimator : estimator
        An instance, because the checks that fail may depend on its parameters.

    Returns
    -------
    dict
        Reason by name of the check, as `sklearn.utils.estimator_checks.check_estimator` takes it.

    Examples
    --------
    >>> from clew import SeededKMeans
    >>> from clew.testing import expected_failed_checks
    >>> sorted(expected_failed_checks(SeededKMeans(random_state=0)))
    ['check_sample_weight_equivalence_on_dense_data', 'check_sample_weight_equivalence_on_sparse_data']
    >>> expected_failed_checks(SeededKMeans(2, init=[[0.0], [1.0]]))
    {}
    """
    if estimator.capabilities.pairwise == "signed graph":
        return {"check_clustering": "its products of rows are nearly all above 0, which say that all rows are together"}
    if estimator.capabilities.counts:
        classifier = "it takes an estimator with sparse rows and predict_proba for a classifier"
        return {
            "check_clustering": "it gives columns of mean 0, whose entries below 0 are no counts",
            "check_estimator_sparse_array": classifier,
            "check_estimator_sparse_matrix": classifier,
        }
    if estimator.capabilities.tables:
        return {"check_clustering": "its three clusters have 16 rows each, and the method makes groups of few rows"}
    if not (estimator.capabilities.sample_weight and isinstance(estimator.get_params(deep=False).get("init"), str)):
        return {}
    reason = (
        "the start is drawn, and draws for rows of weight 2 and for the same rows twice are not the same; "
        "sklearn.cluster.KMeans fails it too"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
