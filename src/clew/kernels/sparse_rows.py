"""Sums and inner products of sparse rows with the centres of their clusters."""

import cython

index = cython.fused_type(cython.int, cython.longlong)


def add_sparse_rows(
    values: cython.const[cython.double][::1],
    columns: cython.const[index][::1],
    row_ptr: cython.const[index][::1],
    weights: cython.const[cython.double][::1],
    labels: cython.const[cython.int][::1],
    sums: cython.double[:, ::1],
):
    """Add CSR rows (`values`, `columns`, `row_ptr`), times their `weights`, to the `sums` of their clusters."""
    row: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    weight: cython.double
    with cython.nogil:
        for row in range(labels.shape[0]):
            cluster = labels[row]
            weight = weights[row]
            for entry in range(row_ptr[row], row_ptr[row + 1]):
                sums[cluster, columns[entry]] += weight * values[entry]


def multiply_own(
    values: cython.const[cython.double][::1],
    columns: cython.const[index][::1],
    row_ptr: cython.const[index][::1],
    centers: cython.const[cython.double][:, ::1],
    labels: cython.const[cython.int][::1],
    products: cython.double[::1],
):
    """Write the inner product of each CSR row with the centre of its own cluster into `products`."""
    row: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    cluster: cython.Py_ssize_t
    product: cython.double
    with cython.nogil:
        for row in range(labels.shape[0]):
            cluster = labels[row]
            product = 0.0
            for entry in range(row_ptr[row], row_ptr[row + 1]):
                product += values[entry] * centers[cluster, columns[entry]]
            products[row] = product
