"""Labels of new rows, computed block by block on the workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.exceptions import DataTypeError


def map_predict(model: Any, X: Any) -> Any:
    """Call `predict` of a fitted model on every block of a Dask array or frame; return a Dask array of labels."""
    if hasattr(X, "to_dask_array"):
        labels = X.map_partitions(model.predict, meta=np.empty(0, dtype=model.labels_.dtype))
        return labels.to_dask_array() if hasattr(labels, "to_dask_array") else labels  # newer versions give an array
    if getattr(X, "ndim", None) != 2:
        raise DataTypeError(f"X is a Dask {type(X).__name__}: expected rows and columns.")
    return X.rechunk({1: -1}).map_blocks(model.predict, dtype=model.labels_.dtype, drop_axis=1)
