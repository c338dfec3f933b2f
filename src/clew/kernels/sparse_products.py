"""Dot products of sparse rows: the largest products of each row, and the products of given pairs of rows."""

import cython


def top_products(
    row_ptr: cython.const[cython.longlong][::1],
    features: cython.const[cython.longlong][::1],
    values: cython.const[cython.double][::1],
    feature_ptr: cython.const[cython.longlong][::1],
    rows: cython.const[cython.longlong][::1],
    weights: cython.const[cython.double][::1],
    own: cython.longlong,
    most_visited: cython.longlong,
    sums: cython.double[::1],
    touched: cython.longlong[::1],
    neighbours: cython.longlong[:, ::1],
    products: cython.double[:, ::1],
):
    """Write the rows with the largest products with each query row, and the products.

    Query row q has the values ``values[row_ptr[q]:row_ptr[q + 1]]`` of the features at the same positions. Feature f
    has the ``weights`` of the ``rows`` in ``feature_ptr[f]:feature_ptr[f + 1]``. Row ``own + q`` is the query row
    itself and is left out; a negative `own` leaves none out. The features of a query row are read in their order until
    `most_visited` entries of `rows` have been read, so the first features count most. Writes `neighbours` and
    `products`, largest product first, padded with -1 and 0 if no further row shares a feature. Work space with an entry
    per row: `sums` (0 on entry) and `touched`. Ties: the row that was reached first.
    """
    query: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    slot: cython.Py_ssize_t
    feature: cython.longlong
    row: cython.longlong
    n_touched: cython.longlong
    n_visited: cython.longlong
    n_kept: cython.Py_ssize_t
    most: cython.Py_ssize_t = neighbours.shape[1]
    value: cython.double
    with cython.nogil:
        for query in range(neighbours.shape[0]):
            n_touched = 0
            n_visited = 0
            for entry in range(row_ptr[query], row_ptr[query + 1]):
                feature = features[entry]
                n_visited += feature_ptr[feature + 1] - feature_ptr[feature]
                if n_visited > most_visited and n_touched > 0:
                    break
                value = values[entry]
                for place in range(feature_ptr[feature], feature_ptr[feature + 1]):
                    row = rows[place]
                    if sums[row] == 0:
                        touched[n_touched] = row
                        n_touched += 1
                    sums[row] += value * weights[place]
            n_kept = 0
            for place in range(n_touched):
                row = touched[place]
                value = sums[row]
                sums[row] = 0
                if own >= 0 and row == own + query:
                    continue
                if n_kept < most:
                    slot = n_kept
                    n_kept += 1
                elif value > products[query, most - 1]:
                    slot = most - 1
                else:
                    continue
                while slot > 0 and products[query, slot - 1] < value:
                    products[query, slot] = products[query, slot - 1]
                    neighbours[query, slot] = neighbours[query, slot - 1]
                    slot -= 1
                products[query, slot] = value
                neighbours[query, slot] = row
            for slot in range(n_kept, most):
                products[query, slot] = 0
                neighbours[query, slot] = -1


def pair_products(
    row_ptr: cython.const[cython.longlong][::1],
    features: cython.const[cython.longlong][::1],
    values: cython.const[cython.double][::1],
    firsts: cython.const[cython.longlong][::1],
    seconds: cython.const[cython.longlong][::1],
    products: cython.double[::1],
):
    """Write the product of rows `firsts[p]` and `seconds[p]` to `products[p]`, for every p.

    Row r has the values ``values[row_ptr[r]:row_ptr[r + 1]]`` of the features at the same positions of `features`, in
    ascending order.
    """
    pair: cython.Py_ssize_t
    one: cython.longlong
    two: cython.longlong
    end_one: cython.longlong
    end_two: cython.longlong
    total: cython.double
    with cython.nogil:
        for pair in range(firsts.shape[0]):
            one = row_ptr[firsts[pair]]
            two = row_ptr[seconds[pair]]
            end_one = row_ptr[firsts[pair] + 1]
            end_two = row_ptr[seconds[pair] + 1]
            total = 0
            while one < end_one and two < end_two:
                if features[one] < features[two]:
                    one += 1
                elif features[one] > features[two]:
                    two += 1
                else:
                    total += values[one] * values[two]
                    one += 1
                    two += 1
            products[pair] = total
