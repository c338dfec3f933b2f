"""Sequences of page visits, clustered by edit distance around medoids: example visits that people can read.

`python examples/sequences.py` prints the clusters without and with two answers.
"""

from __future__ import annotations

from clew import ConstrainedKMedoids
from clew.dissimilarity import edit_distances

visits = [
    "home search product cart pay", "home product cart pay", "search product cart pay", "home search product cart",
    "home help contact", "help contact", "home search help contact", "home help", "home search product",
    "home search product product",
]  # fmt: skip
D = edit_distances([visit.split() for visit in visits])
# An analyst knows: a full cart belongs with the purchases, and a visit that first searched did not come for help.
answers = {"must_link": [(0, 3)], "cannot_link": [(4, 6)]}
for known in (None, answers):
    model = ConstrainedKMedoids(n_clusters=3, metric="precomputed", solver="exact", random_state=0)
    model.fit(D, constraints=known)
    print(f"{'without' if known is None else 'with'} answers: cost {model.inertia_:g}, proven {model.gap_ == 0}")
    for label, medoid in zip(model.cluster_labels_, model.medoid_indices_, strict=True):
        members = [visits[row] for row in (model.labels_ == label).nonzero()[0]]
        print(f"  like '{visits[medoid]}': {len(members)} visits")
