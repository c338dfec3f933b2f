"""Turn images into vectors of grey values and histograms of edge directions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.exceptions import DataError, FileError, MissingExtraError

SIDE = 32  # width and height to which images are scaled
_PIXEL = 2  # pixels per side of a square that is averaged to a grey value
_CELL = 8  # pixels per side of a cell of the histogram
_DIRECTIONS = 9
_BLOCK = 1024  # images per block, because gradients take ten times the memory of the result
_BLANK = np.zeros((SIDE, SIDE))


def image_vectors(names: Sequence[str], folder: Path | None) -> NDArray[np.float64]:
    """Grey values and edge directions of each image, both of length 1; an empty cell gets the mean."""
    blocks = [
        _described([_grey(confined(name, folder)) if name else _BLANK for name in names[start : start + _BLOCK]])
        for start in range(0, len(names), _BLOCK)
    ]
    vectors = np.concatenate(blocks)
    there = np.array([bool(name) for name in names])
    vectors[~there] = vectors[there].mean(axis=0)
    return vectors


def _described(images: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    grey = np.stack(images)
    return np.hstack([_pixels(grey), _directions(grey)])


def confined(name: str, folder: Path | None) -> Path:
    """The file that a cell names. Raises if the path is outside the folder."""
    if folder is None:
        raise DataError(
            f'"{name}" is an image in an unknown folder. Pass image_folder=..., or read the table from a file in the '
            "folder of the images."
        )
    root = folder.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise FileError(
            f'"{name}" is outside the folder {folder}. Move it into the folder, or pass image_folder=... in Python.'
        )
    return path


def _grey(path: Path) -> NDArray[np.float64]:
    image = _pillow()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns about unusual palettes
        # Images that are too large for the memory (decompression bombs) are refused.
        warnings.simplefilter("error", image.DecompressionBombWarning)
        try:
            with image.open(path) as opened:
                small = opened.convert("L").resize((SIDE, SIDE), image.Resampling.BOX)
                return np.asarray(small, dtype=np.float64) / 255
        except (OSError, ValueError, Warning, image.DecompressionBombError) as error:
            raise FileError(f"Cannot read the image {path}: {error}.") from error


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("Images need Pillow: pip install 'clew[images]'.") from error
    return Image


def _pixels(grey: NDArray[np.float64]) -> NDArray[np.float64]:
    side = SIDE // _PIXEL
    small = grey.reshape(-1, side, _PIXEL, side, _PIXEL).mean(axis=(2, 4)).reshape(len(grey), -1)
    return _unit(small - small.mean(axis=1, keepdims=True))


def _directions(grey: NDArray[np.float64]) -> NDArray[np.float64]:
    """Histogram of edge directions (0 to 180 degrees) of each cell, scaled to length 1, or 0."""
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(down, right)
    direction = np.floor(np.mod(np.arctan2(down, right), np.pi) / np.pi * _DIRECTIONS).astype(np.intp) % _DIRECTIONS
    side = SIDE // _CELL
    row, column = np.meshgrid(np.arange(SIDE) // _CELL, np.arange(SIDE) // _CELL, indexing="ij")
    cell = (np.arange(len(grey))[:, None, None] * side * side + row * side + column) * _DIRECTIONS + direction
    counts = np.bincount(cell.ravel(), weights=strength.ravel(), minlength=len(grey) * side * side * _DIRECTIONS)
    cells = counts.reshape(len(grey), side * side, _DIRECTIONS)
    # A cell with weak edges is mostly noise, so it is not scaled up.
    lengths = np.linalg.norm(cells, axis=2, keepdims=True)
    return _unit((cells / (lengths + 0.1 * lengths.max(axis=1, keepdims=True, initial=1e-12))).reshape(len(grey), -1))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 1e-12, lengths, 1)
