"""Tables of the user's own data, and a few bundled sets to try things on.

`read_table` reads csv, tsv, parquet, npy and npz; `write_table` writes csv, tsv, jsonl and parquet, whole or
not at all. `load` gives a bundled data set by its name; nothing is fetched from a network.
"""

from clew._tables import check_writable, replacing, write_table
from clew.datasets._bundled import Dataset, load, load_breast_cancer, load_digits, load_iris, load_wine, names
from clew.datasets._read import Table, read_table

__all__ = [
    "Dataset",
    "Table",
    "check_writable",
    "load",
    "load_breast_cancer",
    "load_digits",
    "load_iris",
    "load_wine",
    "names",
    "read_table",
    "replacing",
    "write_table",
]
