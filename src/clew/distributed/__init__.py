"""The k-means relatives over Dask arrays and frames: the solvers of `clew.partitional`, one reduction per round.

`fit` and `predict` of an estimator find this package when they are given a Dask collection; there is nothing to call.
"""

from clew.distributed._predict import map_predict
from clew.distributed._rows import DaskLabels, DaskRows

__all__ = ["DaskLabels", "DaskRows", "map_predict"]
