"""Scale columns before clustering."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from clew.exceptions import ParameterError

SCALES = ("none", "standard", "minmax", "robust")


def scaled(X: Any, how: str) -> Any:
    """Scale each column: none, standard, minmax or robust.

    Examples
    --------
    >>> from clew.datasets import scaled
    >>> scaled([[0.0], [2.0]], "standard").ravel()
    array([-1.,  1.])
    """
    if how not in SCALES:
        raise ParameterError(f"scale={how!r}: expected {', '.join(SCALES[:-1])} or {SCALES[-1]}.")
    if how == "none":
        return X
    from sklearn import preprocessing

    if sparse.issparse(X) and how == "minmax":
        raise ParameterError("scale=minmax would make a sparse matrix dense. Use standard or robust.")
    scalers = {
        "standard": lambda: preprocessing.StandardScaler(with_mean=not sparse.issparse(X)),
        "minmax": preprocessing.MinMaxScaler,
        "robust": lambda: preprocessing.RobustScaler(with_centering=not sparse.issparse(X)),
    }
    return scalers[how]().fit_transform(X)
