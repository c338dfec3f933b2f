"""Convert frames and masked arrays to the one form that the rest of the package uses."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from clew.exceptions import ClewError, DataError


def as_frame(data: Any, error: type[ClewError] = DataError) -> nw.DataFrame[Any] | None:
    """Convert a pandas, polars or Arrow frame, also a lazy one, to a narwhals frame; None for other data.

    Raises `error` if two columns have one name.
    """
    try:
        frame = nw.from_native(data, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        if not isinstance(frame, nw.DataFrame):
            return None
        names = [str(name) for name in frame.columns]
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(data, "column_names", None) or data.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise error(f'The frame has two columns called "{twice}". Rename one of them.')
    return frame


def without_mask(data: Any) -> Any:
    """Replace masked entries of a masked array by NaN; other data is returned unchanged."""
    if not np.ma.isMaskedArray(data):
        return data
    if not np.ma.is_masked(data):
        return np.asarray(data)
    return np.ma.filled(data.astype(np.float64) if data.dtype.kind in "biu" else data, np.nan)
