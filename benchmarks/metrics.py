"""Does the fitness of a metric say which one leads to the right clusters? Thesis section 6.4: its four constructions, its
tables and texts. The real data are the published ones beside the project."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks._harness import Report
from benchmarks._published import kept, published_data
from clew import Constraints
from clew.audit import advise_metric, distance_matrix, metric_fitness
from clew.audit._models import k_medoids
from clew.evaluation import adjusted_rand_score

VECTORS = ("euclidean", "manhattan", "chebyshev", "mahalanobis")
TEXTS = ("news_diff3", "news_sim3", "news_rel3")
# Sets of 1 to 100 constraints that a metric is judged by, as many as it takes to see differences of a hundredth.
N_DRAWS, N_SETS, N_STARTS = 12, 30, 20
