"""Labelled data sets of scikit-learn, in the form that the demo and the docs use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.exceptions import ParameterError


@dataclass(frozen=True)
class Dataset:
    """Rows with known classes.

    Attributes
    ----------
    name : str
        Name of the data set, as in `load`.
    X : (n_samples, n_features) float64
    y : (n_samples,) int64
        The class of each row, a position in `class_names`.
    feature_names, class_names : tuple of str
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]


def load_iris() -> Dataset:
    """150 irises of three species, with four measurements each (Fisher 1936).

    Examples
    --------
    >>> from clew.datasets import load_iris
    >>> load_iris().X.shape
    (150, 4)
    """
    return _bundled("iris")


def load_wine() -> Dataset:
    """178 wines of three growers, with 13 chemical measurements on very different scales.

    Examples
    --------
    >>> from clew.datasets import load_wine
    >>> load_wine().X.shape
    (178, 13)
    """
    return _bundled("wine")


def load_digits() -> Dataset:
    """1797 handwritten digits as 8 x 8 grey values.

    Examples
    --------
    >>> from clew.datasets import load_digits
    >>> len(load_digits().class_names)
    10
    """
    return _bundled("digits")


def load_breast_cancer() -> Dataset:
    """569 tumours, benign or malignant, with 30 measurements each.

    Examples
    --------
    >>> from clew.datasets import load_breast_cancer
    >>> load_breast_cancer().class_names
    ('malignant', 'benign')
    """
    return _bundled("breast_cancer")


_LOADERS: dict[str, Callable[[], Dataset]] = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}


def names() -> list[str]:
    """List the names that `load` knows.

    Examples
    --------
    >>> from clew.datasets import names
    >>> names()
    ['breast_cancer', 'digits', 'iris', 'wine']
    """
    return sorted(_LOADERS)


def load(name: str) -> Dataset:
    """Load a bundled data set by its name.

    Examples
    --------
    >>> from clew.datasets import load
    >>> load("wine").class_names
    ('class_0', 'class_1', 'class_2')
    """
    if name not in _LOADERS:
        raise ParameterError(f'There is no bundled data set "{name}". There are {", ".join(names())}.')
    return _LOADERS[name]()


def _bundled(name: str) -> Dataset:
    from sklearn import datasets

    bunch: Any = getattr(datasets, f"load_{name}")()
    return Dataset(
        name=name,
        X=np.ascontiguousarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, bunch.target_names)),
    )
