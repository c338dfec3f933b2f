"""A merge, a split, a move and a never-join over HTTP hold after new rows, a fit, a kill and a restart."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from tests.server import Client, QuickServer, write_table


def data(name, seed):
    """A permuted set, the number of clusters wanted, and how many rows are there at first: 10 % come later."""
    X = load_iris().data if name == "iris" else load_digits().data[:440]
    X = X[np.random.default_rng(seed).permutation(len(X))]
    return X, 7 if name == "iris" else 10, round(len(X) / 1.1)


def partition(labels):
    found = {}
    for row, cluster in labels.items():
        found.setdefault(cluster, []).append(row)
    return found


def correct(client, kind, **body):
    status, done = client.post("/api/corrections", kind=kind, annotator="ann", **body)
    assert (status, done["conflict"]) == (201, None), done
    return done


def by_four_corrections(client):
    """Correct the largest clusters; gives what must hold for every row named, and the clusters left alone."""
    clusters = partition(client.get("/api/labels"))
    merged, other, split, source, target, *rest = sorted(clusters, key=lambda one: -len(clusters[one]))
    part = clusters[split][: len(clusters[split]) // 2]
    correct(client, "merge", cluster=merged, other=other)
    piece = correct(client, "split", cluster=split, rows=part)["cluster"]
    moved = clusters[source][0]
    correct(client, "move", row=moved, cluster=target)
    correct(client, "never", clusters=[source, target])
    expected = dict.fromkeys(clusters[merged] + clusters[other], merged)
    expected |= dict.fromkeys(part, piece) | dict.fromkeys(set(clusters[split]) - set(part), split)
    expected[moved] = target
    return expected, (other, source, target), {one: clusters[one] for one in (*rest, source, target)}


def check(labels, expected, named, others):
    """Every corrected row is where it was put; every other cluster has kept its id."""
    assert {row: labels[row] for row in expected} == expected
    gone, source, target = named
    ids = set(labels.values())
    assert gone not in ids and {source, target} < ids
    for cluster, rows in others.items():
        found = [labels[row] for row in rows]
        assert max(set(found), key=found.count) == cluster  # rows at the border may go over


@pytest.mark.parametrize("name", ["iris", "digits"])
def test_corrections_over_http_survive_new_rows_and_a_kill(tmp_path, name, seed):
    X, n_clusters, n_first = data(name, seed)
    table = write_table(tmp_path / "data.csv", X[:n_first])
    place = table, "--id", "name", "-k", str(n_clusters), "--project", tmp_path / "kept.clew"
    with QuickServer(*place) as server:
        client = Client(server.host)
        claims = by_four_corrections(client)
        check(client.get("/api/labels"), *claims)
        write_table(table, X)  # a tenth more rows at the end of the file
        status, added = client.post("/api/rows/rescan")
        assert (status, added["count"]) == (201, len(X) - n_first)
        labels = client.get("/api/labels")
        check(labels, *claims)
        assert len(labels) == len(X)
        client.close()
        server.kill()
    with QuickServer(*place) as server:
        client = Client(server.host)
        check(client.get("/api/labels"), *claims)
        assert client.ask("PUT", "/api/settings", {"random_state": 1})[0] == 200  # clusters are made anew
        check(client.get("/api/labels"), *claims)
        client.close()
