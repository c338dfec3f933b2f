"""Breadth-first search for the shortest chain of links between two rows."""

import cython


def find_chain(
    partner_ptr: cython.const[cython.longlong][::1],
    partners: cython.const[cython.longlong][::1],
    hub_ptr: cython.const[cython.longlong][::1],
    hubs: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    source: cython.longlong,
    target: cython.longlong,
    previous: cython.longlong[::1],
    hub_seen: cython.char[::1],
    queue: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Search from `source` until `target` is reached; return the number of rows visited.

    The neighbours of a row are its `partners` and the `members` of its `hubs` (groups of rows that belong together).
    Each hub is opened once, so the search is linear in links and memberships. Writes `previous` (all -1 on entry), the
    row before each visited row, and `queue`, the visited rows in order. The caller resets both. Ties: the neighbour
    listed first.
    """
    head: cython.Py_ssize_t = 0
    tail: cython.Py_ssize_t = 1
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    row: cython.longlong
    hub: cython.longlong
    other: cython.longlong
    with cython.nogil:
        queue[0] = source
        previous[source] = source
        while head < tail and previous[target] < 0:
            row = queue[head]
            head += 1
            for entry in range(partner_ptr[row], partner_ptr[row + 1]):
                other = partners[entry]
                if previous[other] < 0:
                    previous[other] = row
                    queue[tail] = other
                    tail += 1
            for entry in range(hub_ptr[row], hub_ptr[row + 1]):
                hub = hubs[entry]
                if hub_seen[hub]:
                    continue
                hub_seen[hub] = 1
                for place in range(member_ptr[hub], member_ptr[hub + 1]):
                    other = members[place]
                    if previous[other] < 0:
                        previous[other] = row
                        queue[tail] = other
                        tail += 1
    return tail
