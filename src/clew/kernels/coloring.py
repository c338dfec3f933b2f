"""Graph colouring: peel vertices that can always be coloured, then search exactly (DSATUR with backtracking).

The neighbours of a vertex come from its edges (`edge_ptr`, `edges`) and its cliques (`clique_ptr`, `cliques`, with the
vertices in `member_ptr`, `members`), so that a clique is never expanded to pairs. A neighbour that is listed twice
counts twice everywhere.
"""

import cython


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _lower(degree: cython.longlong[::1], limit: cython.longlong, vertex: cython.longlong) -> cython.bint:
    """Lower a degree by one; return whether it has just fallen below the limit."""
    degree[vertex] -= 1
    return degree[vertex] == limit - 1


def peel(
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    fixed: cython.const[cython.int][::1],
    n_colors: cython.longlong,
    degree: cython.longlong[::1],
    peeled: cython.char[::1],
    order: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Repeatedly remove vertices with fewer than `n_colors` neighbours; return the number of removed vertices.

    Removed vertices can always be coloured afterwards, in reverse `order`. Vertices with a `fixed` colour (>= 0) stay.
    Reads the graph and `fixed`; writes `degree`, `peeled` (0 on entry) and `order`.
    """
    head: cython.Py_ssize_t = 0
    tail: cython.Py_ssize_t = 0
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    vertex: cython.longlong
    other: cython.longlong
    clique: cython.longlong
    with cython.nogil:
        for vertex in range(fixed.shape[0]):
            degree[vertex] = edge_ptr[vertex + 1] - edge_ptr[vertex]
            for entry in range(clique_ptr[vertex], clique_ptr[vertex + 1]):
                degree[vertex] += member_ptr[cliques[entry] + 1] - member_ptr[cliques[entry]] - 1
            if degree[vertex] < n_colors and fixed[vertex] < 0:
                peeled[vertex] = 1
                order[tail] = vertex
                tail += 1
        while head < tail:
            vertex = order[head]
            head += 1
            for entry in range(edge_ptr[vertex], edge_ptr[vertex + 1]):
                other = edges[entry]
                if not peeled[other] and _lower(degree, n_colors, other) and fixed[other] < 0:
                    peeled[other] = 1
                    order[tail] = other
                    tail += 1
            for entry in range(clique_ptr[vertex], clique_ptr[vertex + 1]):
                clique = cliques[entry]
                for place in range(member_ptr[clique], member_ptr[clique + 1]):
                    other = members[place]
                    if not peeled[other] and _lower(degree, n_colors, other) and fixed[other] < 0:
                        peeled[other] = 1
                        order[tail] = other
                        tail += 1
    return tail


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unlink(
    vertex: cython.longlong,
    level: cython.longlong,
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
) -> cython.void:
    if before[vertex] >= 0:
        after[before[vertex]] = after[vertex]
    else:
        first[level] = after[vertex]
    if after[vertex] >= 0:
        before[after[vertex]] = before[vertex]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _link(
    vertex: cython.longlong,
    level: cython.longlong,
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
) -> cython.void:
    before[vertex] = -1
    after[vertex] = first[level]
    if first[level] >= 0:
        before[first[level]] = vertex
    first[level] = vertex


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mark(
    change: cython.int,
    other: cython.longlong,
    color: cython.longlong,
    colors: cython.int[::1],
    blocked: cython.int[:, ::1],
    saturation: cython.longlong[::1],
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
) -> cython.bint:
    """Count one more (or fewer) neighbour of `other` with `color`; return whether `other` has no colour left now."""
    level: cython.longlong = saturation[other]
    blocked[other, color] += change
    if change > 0 and blocked[other, color] == 1:
        saturation[other] = level + 1
    elif change < 0 and blocked[other, color] == 0:
        saturation[other] = level - 1
    else:
        return False
    if colors[other] < 0:
        _unlink(other, level, first, after, before)
        _link(other, saturation[other], first, after, before)
        return saturation[other] == blocked.shape[1]
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _spread(
    change: cython.int,
    vertex: cython.longlong,
    color: cython.longlong,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    colors: cython.int[::1],
    blocked: cython.int[:, ::1],
    saturation: cython.longlong[::1],
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
    work: cython.longlong[::1],
) -> cython.bint:
    """Update all neighbours of `vertex` after it took (or gave back) `color`; return whether one has no colour left."""
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    clique: cython.longlong
    out: cython.bint = False
    for entry in range(edge_ptr[vertex], edge_ptr[vertex + 1]):
        if _mark(change, edges[entry], color, colors, blocked, saturation, first, after, before):
            out = True
    work[0] += edge_ptr[vertex + 1] - edge_ptr[vertex] + 1
    for entry in range(clique_ptr[vertex], clique_ptr[vertex + 1]):
        clique = cliques[entry]
        for place in range(member_ptr[clique], member_ptr[clique + 1]):
            if members[place] != vertex:
                if _mark(change, members[place], color, colors, blocked, saturation, first, after, before):
                    out = True
        work[0] += member_ptr[clique + 1] - member_ptr[clique]
    return out


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _need(vertex: cython.longlong, after: cython.const[cython.longlong][::1], needed: cython.char[::1]) -> cython.void:
    """Mark one vertex of a list as needed, unless one is already marked."""
    start: cython.longlong = vertex
    while vertex >= 0 and not needed[vertex]:
        vertex = after[vertex]
    if vertex < 0:
        needed[start] = 1


def search_coloring(
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    fixed: cython.const[cython.int][::1],
    by_degree: cython.const[cython.longlong][::1],
    preference: cython.const[cython.int][:, ::1],
    work_limit: cython.longlong,
    colors: cython.int[::1],
    blocked: cython.int[:, ::1],
    saturation: cython.longlong[::1],
    first: cython.longlong[::1],
    after: cython.longlong[::1],
    before: cython.longlong[::1],
    used: cython.longlong[::1],
    stack: cython.longlong[:, ::1],
    needed: cython.char[::1],
    work: cython.longlong[::1],
) -> cython.int:
    """Colour every vertex so that no two neighbours have one colour: 1 found, 0 impossible, -1 work limit reached.

    The most saturated vertex comes first (Brélaz 1979). Colours are tried in order of `preference`. Of the colours that
    no vertex has yet, only the first is tried, because they are equivalent. Reads the graph, `fixed` (>= 0: this
    colour), `by_degree` (vertices, lowest degree first) and `preference` (one row for all or one per vertex).
    Writes `colors` and work space: `blocked`, `saturation`, `used`
    (0 on entry), `first` (-1 on entry, one longer than the number of colours), `after`, `before`, `stack`
    (vertex, preference tried, unused tried). `work[0]` grows by one per neighbour visited.

    `needed` (0 on entry) becomes 1 for every vertex that was coloured or that ran out of colours. If the result is 0,
    the graph among these vertices has no colouring either, because the search there would take the same steps.
    """
    n_vertices: cython.Py_ssize_t = fixed.shape[0]
    n_colors: cython.longlong = blocked.shape[1]
    n_orders: cython.longlong = preference.shape[0]
    vertex: cython.longlong
    place: cython.Py_ssize_t
    depth: cython.Py_ssize_t = 0
    n_open: cython.Py_ssize_t = 0
    level: cython.longlong
    color: cython.longlong
    choice: cython.longlong
    status: cython.int = 2  # still searching
    descend: cython.bint = True
    with cython.nogil:
        for place in range(n_vertices):
            vertex = by_degree[place]
            if fixed[vertex] < 0:
                _link(vertex, 0, first, after, before)
                n_open += 1
        for vertex in range(n_vertices):
            colors[vertex] = fixed[vertex]
        for vertex in range(n_vertices):
            if fixed[vertex] >= 0:
                needed[vertex] = 1
                if blocked[vertex, fixed[vertex]]:
                    status = 0
                used[fixed[vertex]] += 1
                if _spread(
                    1,
                    vertex,
                    fixed[vertex],
                    edge_ptr,
                    edges,
                    clique_ptr,
                    cliques,
                    member_ptr,
                    members,
                    colors,
                    blocked,
                    saturation,
                    first,
                    after,
                    before,
                    work,
                ):
                    status = 0
                    _need(first[n_colors], after, needed)
        while status == 2:
            if work[0] > work_limit:
                status = -1
                break
            if descend:
                if depth == n_open:
                    status = 1
                    break
                level = n_colors
                while first[level] < 0:
                    level -= 1
                vertex = first[level]
                _unlink(vertex, level, first, after, before)
                needed[vertex] = 1
                stack[depth, 0] = vertex
                stack[depth, 1] = 0
                stack[depth, 2] = 0
            else:
                vertex = stack[depth, 0]
                color = colors[vertex]
                used[color] -= 1
                # The colour is removed before the vertex is open again, so that it is linked just once.
                _spread(
                    -1,
                    vertex,
                    color,
                    edge_ptr,
                    edges,
                    clique_ptr,
                    cliques,
                    member_ptr,
                    members,
                    colors,
                    blocked,
                    saturation,
                    first,
                    after,
                    before,
                    work,
                )
                colors[vertex] = -1
            choice = stack[depth, 1]
            color = -1
            while choice < n_colors:
                color = preference[vertex % n_orders, choice]
                choice += 1
                if not blocked[vertex, color]:
                    if used[color]:
                        break
                    if not stack[depth, 2]:
                        stack[depth, 2] = 1
                        break
                color = -1
            stack[depth, 1] = choice
            if color < 0:
                _link(vertex, saturation[vertex], first, after, before)
                if depth == 0:
                    status = 0
                    break
                depth -= 1
                descend = False
            else:
                colors[vertex] = color
                used[color] += 1
                # A neighbour has no colour left, so the loop tries the next colour of this vertex.
                if _spread(
                    1,
                    vertex,
                    color,
                    edge_ptr,
                    edges,
                    clique_ptr,
                    cliques,
                    member_ptr,
                    members,
                    colors,
                    blocked,
                    saturation,
                    first,
                    after,
                    before,
                    work,
                ):
                    _need(first[n_colors], after, needed)
                    descend = False
                else:
                    depth += 1
                    descend = True
    return status


def color_greedily(
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    order: cython.const[cython.longlong][::1],
    preference: cython.const[cython.int][:, ::1],
    blocked: cython.char[::1],
    colors: cython.int[::1],
):
    """Give each vertex of `order` its most preferred colour that no coloured neighbour has.

    Reads the graph, `order` and `preference`; writes `colors` (-1: none yet); `blocked` is work space, one per colour.
    """
    turn: cython.Py_ssize_t
    entry: cython.Py_ssize_t
    place: cython.Py_ssize_t
    color: cython.Py_ssize_t
    n_orders: cython.longlong = preference.shape[0]
    vertex: cython.longlong
    clique: cython.longlong
    with cython.nogil:
        for turn in range(order.shape[0]):
            vertex = order[turn]
            for color in range(blocked.shape[0]):
                blocked[color] = 0
            for entry in range(edge_ptr[vertex], edge_ptr[vertex + 1]):
                if colors[edges[entry]] >= 0:
                    blocked[colors[edges[entry]]] = 1
            for entry in range(clique_ptr[vertex], clique_ptr[vertex + 1]):
                clique = cliques[entry]
                for place in range(member_ptr[clique], member_ptr[clique + 1]):
                    if members[place] != vertex and colors[members[place]] >= 0:
                        blocked[colors[members[place]]] = 1
            for entry in range(preference.shape[1]):
                if not blocked[preference[vertex % n_orders, entry]]:
                    colors[vertex] = preference[vertex % n_orders, entry]
                    break


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _watch(
    vertex: cython.longlong,
    colors: cython.int[::1],
    blocked: cython.int[:, ::1],
    hot: cython.longlong[::1],
    place: cython.longlong[::1],
    n_hot: cython.longlong,
) -> cython.longlong:
    """Update the list of vertices that have the colour of a neighbour; return its length."""
    last: cython.longlong
    if blocked[vertex, colors[vertex]] > 0:
        if place[vertex] < 0:
            place[vertex] = n_hot
            hot[n_hot] = vertex
            n_hot += 1
    elif place[vertex] >= 0:
        n_hot -= 1
        last = hot[n_hot]
        hot[place[vertex]] = last
        place[last] = place[vertex]
        place[vertex] = -1
    return n_hot


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _tell(
    change: cython.int,
    vertex: cython.longlong,
    color: cython.longlong,
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    colors: cython.int[::1],
    blocked: cython.int[:, ::1],
    hot: cython.longlong[::1],
    place: cython.longlong[::1],
    n_hot: cython.longlong,
    work: cython.longlong[::1],
) -> cython.longlong:
    """Update the counts of all neighbours of `vertex`; return the number of hot vertices."""
    entry: cython.Py_ssize_t
    position: cython.Py_ssize_t
    clique: cython.longlong
    for entry in range(edge_ptr[vertex], edge_ptr[vertex + 1]):
        blocked[edges[entry], color] += change
        n_hot = _watch(edges[entry], colors, blocked, hot, place, n_hot)
    work[0] += edge_ptr[vertex + 1] - edge_ptr[vertex]
    for entry in range(clique_ptr[vertex], clique_ptr[vertex + 1]):
        clique = cliques[entry]
        for position in range(member_ptr[clique], member_ptr[clique + 1]):
            if members[position] != vertex:
                blocked[members[position], color] += change
                n_hot = _watch(members[position], colors, blocked, hot, place, n_hot)
        work[0] += member_ptr[clique + 1] - member_ptr[clique]
    return n_hot


def mend_coloring(
    edge_ptr: cython.const[cython.longlong][::1],
    edges: cython.const[cython.longlong][::1],
    clique_ptr: cython.const[cython.longlong][::1],
    cliques: cython.const[cython.longlong][::1],
    member_ptr: cython.const[cython.longlong][::1],
    members: cython.const[cython.longlong][::1],
    fixed: cython.const[cython.int][::1],
    jitter: cython.const[cython.longlong][::1],
    work_limit: cython.longlong,
    colors: cython.int[::1],
    blocked: cython.int[:, ::1],
    hot: cython.longlong[::1],
    place: cython.longlong[::1],
    forbidden: cython.longlong[:, ::1],
    work: cython.longlong[::1],
) -> cython.longlong:
    """Recolour one vertex at a time to lower the number of conflicts (tabu search, Hertz & de Werra 1987).

    A vertex is hot if it has the same colour as a neighbour. Starts from any complete `colors` and returns the number
    of hot vertices; 0 means a colouring. A recoloured vertex may not take its old colour back for 0.6 x (number of hot
    vertices) + (next `jitter`) steps. Reads the graph, `fixed` and `jitter`; writes `colors` and work space: `blocked`,
    `forbidden` (0 on entry), `hot`, `place` (-1 on entry). `work[0]` grows by one per neighbour visited and per colour
    compared.
    """
    n_colors: cython.longlong = blocked.shape[1]
    vertex: cython.longlong
    position: cython.Py_ssize_t
    color: cython.longlong
    n_hot: cython.longlong = 0
    step: cython.longlong = 0
    change: cython.longlong
    lowest: cython.longlong
    best_vertex: cython.longlong
    best_color: cython.longlong
    old: cython.longlong
    with cython.nogil:
        for vertex in range(fixed.shape[0]):
            n_hot = _tell(
                1, vertex, colors[vertex], edge_ptr, edges, clique_ptr, cliques, member_ptr, members,
                colors, blocked, hot, place, n_hot, work,
            )  # fmt: skip
        while n_hot > 0 and work[0] < work_limit:
            step += 1
            lowest = 1 << 40
            best_vertex = -1
            best_color = -1
            for position in range(n_hot):
                vertex = hot[position]
                if fixed[vertex] >= 0:
                    continue
                for color in range(n_colors):
                    if color == colors[vertex]:
                        continue
                    change = blocked[vertex, color] - blocked[vertex, colors[vertex]]
                    if change < lowest and forbidden[vertex, color] < step:
                        lowest = change
                        best_vertex = vertex
                        best_color = color
            work[0] += n_hot * n_colors
            if best_vertex < 0:
                continue
            old = colors[best_vertex]
            forbidden[best_vertex, old] = step + (6 * n_hot) // 10 + jitter[step % jitter.shape[0]]
            colors[best_vertex] = best_color
            n_hot = _watch(best_vertex, colors, blocked, hot, place, n_hot)
            n_hot = _tell(
                -1, best_vertex, old, edge_ptr, edges, clique_ptr, cliques, member_ptr, members,
                colors, blocked, hot, place, n_hot, work,
            )  # fmt: skip
            n_hot = _tell(
                1, best_vertex, best_color, edge_ptr, edges, clique_ptr, cliques, member_ptr, members,
                colors, blocked, hot, place, n_hot, work,
            )  # fmt: skip
    return n_hot
