"""Helpers for tests of estimators, of this package or your own."""

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
        return {"check_clustering": "nearly all products of its rows are above 0, which means one cluster"}
    if estimator.capabilities.counts:
        classifier = "it treats an estimator with sparse rows and predict_proba as a classifier"
        return {
            "check_clustering": "it passes columns of mean 0, whose negative entries are not counts",
            "check_estimator_sparse_array": classifier,
            "check_estimator_sparse_matrix": classifier,
        }
    if estimator.capabilities.tables:
        return {"check_clustering": "it expects three clusters of 16 rows each, and the method makes small groups"}
    if not (estimator.capabilities.sample_weight and isinstance(estimator.get_params(deep=False).get("init"), str)):
        return {}
    reason = (
        "the initial centres are random, and differ between rows of weight 2 and the same rows twice; "
        "sklearn.cluster.KMeans also fails it"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
