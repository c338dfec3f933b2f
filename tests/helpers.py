"""Small builders that several test files share."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from clew import Constraints
from clew._registry import all_estimators


def examples(n, **options):
    """Settings of Hypothesis: n examples with `--thorough`, two fifths as many in `make test`."""
    thorough = settings.default.max_examples == settings.get_profile("thorough").max_examples
    return settings(max_examples=n if thorough else -(-2 * n // 5), **options)


def installed(role=None):
    """The estimators that can run here: the extra that one of them needs may be missing."""
    return [cls for cls in all_estimators(role) if cls._examples()]


# Clusterers of vectors; the others take a square matrix or counts.
OF_ROWS = [cls for cls in installed("clusterer") if cls._capabilities.vectors]
# A network that trains fast on few rows, for the methods that have one.
_SMALL_NETWORK = {"layers": 8, "n_components": 2, "pretrain_epochs": 4}
# Clusterers that are told the number of clusters; the others find it.
COUNTING = [cls for cls in installed("clusterer") if "n_clusters" in cls._parameters]

BENCHMARK_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def benchmark_data():
    """The reader of the published data sets, or a skip."""
    script = BENCHMARK_DATA / "load.py"
    if not script.exists():
        pytest.skip(f"the published benchmark data is not at {BENCHMARK_DATA}")
    spec = importlib.util.spec_from_file_location("benchmark_data_load", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(cls, n_clusters, **options):
    """An estimator with a number of clusters and other options, each of them if it takes it."""
    wanted = {"n_clusters": n_clusters, **_SMALL_NETWORK, **options}
    return cls(**{name: value for name, value in wanted.items() if name in cls._parameters})


def random_knowledge(rng, n, n_classes=3, *, consistent=True, sure=True):
    """Constraints of every kind about n rows; consistent ones agree with a hidden labelling."""
    hidden = rng.integers(n_classes, size=n)

    def some_pairs(same):
        first, second = np.triu_indices(n, 1)
        fits = (hidden[first] == hidden[second]) == same if consistent else np.ones(len(first), dtype=bool)
        pairs = np.column_stack([first, second])[fits]
        return pairs[rng.random(len(pairs)) < rng.choice([0.0, 0.2, 0.5])]

    def groups(separate):
        column = np.where(rng.random(n) < 0.5, rng.integers(3, size=n), -1)
        if consistent and separate:  # at most one row of each class in a group
            key = column * n_classes + hidden
            repeated = np.ones(n, dtype=bool)
            repeated[np.unique(key, return_index=True)[1]] = False
            column[repeated] = -1
        elif consistent:
            column = np.where(column >= 0, column * n_classes + hidden, -1)
        return column

    must_link, cannot_link = some_pairs(True), some_pairs(False)
    uses = rng.random(3) < 0.4
    confidence = (lambda size: None) if sure else (lambda size: rng.choice([0.25, 0.5, 1.0], size))
    return Constraints(
        must_link,
        cannot_link,
        must_link_confidence=confidence(len(must_link)),
        cannot_link_confidence=confidence(len(cannot_link)),
        labels=np.where(rng.random(n) < 0.4, hidden if consistent else rng.integers(n_classes, size=n), -1)
        if uses[0]
        else None,
        must_groups=groups(False) if uses[1] else None,
        cannot_groups=groups(True) if uses[2] else None,
        n_samples=n,
    )


def whole_numbers(rng, n, n_columns=2):
    """Rows of whole numbers, far enough apart that exact ties are rare and small enough that sums are exact."""
    return rng.integers(-99, 100, size=(n, n_columns)).astype(float)


def ask_all(questions, oracle, budget=5_000):
    """Pairs asked until nothing is left; checks that none is repeated or implied."""
    asked = []
    while len(asked) < budget and (pair := questions.ask()) is not None:
        assert pair.key not in asked
        assert questions.view.knowledge.relation(*pair.key) is None
        asked.append(pair.key)
        questions.tell(pair, oracle(pair))
    return asked
