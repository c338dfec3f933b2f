"""The k-means relatives over Dask arrays and frames: the solvers of `clew.partitional`, with one reduction per round.

`fit` and `predict` of an estimator use this package if they get a Dask collection. It has no functions to call.
"""

from clew.distributed._predict import map_predict
from clew.distributed._rows import DaskLabels, DaskRows

__all__ = ["DaskLabels", "DaskRows", "map_predict"]
