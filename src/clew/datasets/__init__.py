"""Read tables, turn them into vectors, and load a few bundled data sets.

`read_table` reads csv, tsv, jsonl, parquet, npy and npz. `encode` turns any table into vectors and describes how.
`write_table` writes csv, tsv, jsonl and parquet; an error leaves no partial file. `load` returns a bundled data set by
its name, without network access. `open_rows` opens rows outside memory, for fits that read them by the chunk.
"""

from clew._tables import check_writable, replacing, write_table
from clew.datasets._as_table import as_table
from clew.datasets._bundled import Dataset, load, load_breast_cancer, load_digits, load_iris, load_wine, names
from clew.datasets._encode import Encoded, Encoding, encode
from clew.datasets._golden import golden_records
from clew.datasets._read import Table, read_table
from clew.datasets._scaling import scaled
from clew.datasets._size import check_size
from clew.datasets._stored import StoredRows, is_stored, open_rows, parquet_files

__all__ = [
    "Dataset",
    "Encoded",
    "Encoding",
    "StoredRows",
    "Table",
    "as_table",
    "check_size",
    "check_writable",
    "encode",
    "golden_records",
    "is_stored",
    "load",
    "load_breast_cancer",
    "load_digits",
    "load_iris",
    "load_wine",
    "names",
    "open_rows",
    "parquet_files",
    "read_table",
    "replacing",
    "scaled",
    "write_table",
]
