"""Tables of the user's own data as vectors, and a few bundled sets to try things on.

`read_table` reads csv, tsv, jsonl, parquet, npy and npz; `encode` makes vectors of any table and tells how;
`write_table` writes csv, tsv, jsonl and parquet, whole or not at all. `load` gives a bundled data set by its name;
nothing is fetched from a network.
"""

from clew._tables import check_writable, replacing, write_table
from clew.datasets._as_table import as_table
from clew.datasets._bundled import Dataset, load, load_breast_cancer, load_digits, load_iris, load_wine, names
from clew.datasets._encode import Encoded, Encoding, encode
from clew.datasets._read import Table, read_table
from clew.datasets._scaling import scaled

__all__ = [
    "Dataset",
    "Encoded",
    "Encoding",
    "Table",
    "as_table",
    "check_writable",
    "encode",
    "load",
    "load_breast_cancer",
    "load_digits",
    "load_iris",
    "load_wine",
    "names",
    "read_table",
    "replacing",
    "scaled",
    "write_table",
]
