"""`clew cluster --unlike`: another way to group the rows than the clusters in a file."""

import csv
import json

import pytest

from clew.evaluation import same_partition


@pytest.fixture
def square(tmp_path):
    """Sixteen rows in four corners: left and right are far apart, low and high less far."""
    places = [(x, y, place) for x in (0, 12) for y in (0, 5) for place in range(4)]
    rows = [f"r{row},{x + place % 2 / 9},{y + place // 2 / 9}" for row, (x, y, place) in enumerate(places)]
    (tmp_path / "data.csv").write_text("\n".join(["name,x,y", *rows]) + "\n")
    left = [x > 0 for x, _, _ in places]
    high = [y > 0 for _, y, _ in places]
    return tmp_path, left, high


def clusters_in(path):
    return [record["cluster"] for record in csv.DictReader(path.read_text().splitlines())]


def scale(*words):
    return ("cluster", "data.csv", "-k", 2, "--scale", "none", *words)


@pytest.mark.parametrize("method", [(), ("-m", "coordinated-conditional-ib")])
def test_the_other_grouping_is_found_and_written(clew, square, method):
    folder, left, high = square
    assert clew(*scale("--id", "name")).exit_code == 0
    assert same_partition(clusters_in(folder / "data-labels.csv"), left)
    result = clew(*scale("--id", "name", "--unlike", "data-labels.csv", *method))
    assert result.exit_code == 0, result.output
    assert same_partition(clusters_in(folder / "data-other-labels.csv"), high)
    said = " ".join(result.stdout.split())
    assert "unlike data-labels.csv, 2 clusters" in said
    assert "similarity 0.00 (0: independent" in said
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_rows_are_found_by_id_in_any_order_or_by_number(clew, square):
    folder, left, high = square
    named = [f"r{row},{'noise' if row == 3 else 'east' if far else 'west'}" for row, far in enumerate(left)]
    (folder / "named.csv").write_text("\n".join(["name,cluster", *reversed(named)]) + "\n")
    (folder / "rows.csv").write_text("\n".join(["row,cluster", *(f"{n},{int(far)}" for n, far in enumerate(left))]))
    (folder / "plain.csv").write_text("\n".join(["side", *("ab"[far] for far in left)]))
    for words in (("--id", "name", "--unlike", "named.csv"), ("--unlike", "rows.csv"), ("--unlike", "plain.csv")):
        result = clew(*scale(*words, "--json"))
        assert result.exit_code == 0, result.output
        assert same_partition(clusters_in(folder / "data-other-labels.csv"), high)
        told = json.loads(result.stdout)["unlike"]
        assert told["clusters"] == 2
        assert told["normalized_mutual_info"] < 0.1 < told["variation_of_information"]


def test_answers_are_kept(clew, square):
    folder, left, _ = square
    (folder / "known.csv").write_text("\n".join(["name,cluster", *(f"r{n},{int(far)}" for n, far in enumerate(left))]))
    (folder / "answers.csv").write_text("id_1,id_2,answer\nr0,r4,same\n")
    result = clew(*scale("--id", "name", "--unlike", "known.csv", "-c", "answers.csv"))
    assert "must-link" in result.stdout, result.output


@pytest.mark.parametrize(
    "file, words, message",
    [
        (None, (), "Cannot read known.csv"),
        ("name,cluster\nr0,1\nr1,2\n", (), "has no cluster for 14 of 16 rows of data.csv, such as r2"),
        ("name,cluster\n" + "".join(f"r{n},1\n" for n in range(16)), (), "all rows are in one cluster"),
        ("name,cluster\n" + "".join(f"r{n},{n % 2}\n" for n in range(17)), (), "it has no row r16"),
        ("name,cluster\n" + "".join(f"r{n % 15},{n % 2}\n" for n in range(16)), (), "names 1 rows twice"),
        ("name,cluster\n" + "".join(f"r{n},{n or ''}\n" for n in range(16)), (), "row r0 has an empty cell"),
        ("who,cluster\nr0,1\nr1,2\n", (), 'has no column "name" to find the rows by. It has who, cluster'),
        ("name,a,b\nr0,1,2\n", (), 'has no column "cluster". It has name, a, b'),
        ("name,cluster\nr0,1\nr1,2\n", ("-m", "pck-means"), "an alternative clusterer is needed: one of cond-ens"),
        ("name,cluster\nr0,1\nr1,2\n", ("-o", "known.csv"), "would overwrite an input"),
        ("name,cluster\nr0,1\nr1,2\n", ("--groups", "small"), "--groups small and --unlike: leave out one"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(clew, square, file, words, message):
    folder, *_ = square
    if file is not None:
        (folder / "known.csv").write_text(file)
    result = clew(*scale("--id", "name", "--unlike", "known.csv", *words))
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.split())
    assert not (folder / "data-other-labels.csv").exists()


def test_rows_by_number_need_their_number_and_an_id_column_is_named(clew, square):
    folder, *_ = square
    (folder / "known.csv").write_text("side\na\nb\n")
    assert "known.csv has 2 rows, but data.csv has 16" in " ".join(clew(*scale("--unlike", "known.csv")).stderr.split())
    (folder / "known.csv").write_text("name,cluster\nr0,1\nr1,2\n")
    assert 'names its rows in the column "name": add --id name' in " ".join(
        clew(*scale("--unlike", "known.csv")).stderr.split()
    )
    assert "To find clusters unlike known ones, add --unlike FILE." in " ".join(
        clew(*scale("-m", "cond-ens")).stderr.split()
    )
