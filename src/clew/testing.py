"""Help for those who test estimators of this package, or their own beside them."""

from __future__ import annotations

from typing import Any


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks of scikit-learn that an estimator fails by its nature, each with the reason.

    Parameters
    ----------
    estimator : estimator
        An instance: what it fails may depend on its parameters.

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
    >>> expected_failed_checks(SeededKMeans(leftover="mean"))
    {}
    """
    if not (estimator._capabilities.sample_weight and _starts_at_drawn_rows(estimator)):
        return {}
    reason = (
        "the start is drawn from the rows, so a row of weight 2 and the same row twice in another place see different "
        "draws; sklearn.cluster.KMeans fails it too"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


def _starts_at_drawn_rows(estimator: Any) -> bool:
    params = estimator.get_params(deep=False)
    init, leftover = params.get("init"), params.get("leftover")
    return isinstance(init, str) and "k-means++" in (init, leftover if init == "neighbourhoods" else None)
