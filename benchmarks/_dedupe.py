"""Group records with the dedupe package: `python _dedupe.py FILE`, in an environment of its own, which needs no clew.

FILE is JSON: ``columns`` (name to texts), ``pairs`` (row, row, same or not) and ``budgets``. Prints a JSON list with
the groups of the rows after the first answers of each budget, null where dedupe fails.
"""

import json
import sys

import dedupe
from dedupe import variables


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    names = list(given["columns"])
    rows = {
        place: {name: cell.strip().lower() or None for name, cell in zip(names, cells, strict=True)}
        for place, cells in enumerate(zip(*given["columns"].values(), strict=True))
    }
    print(json.dumps([_grouped(rows, names, given["pairs"][:budget]) for budget in given["budgets"]]))


def _grouped(rows, names, pairs):
    try:
        model = dedupe.Dedupe([variables.String(name, has_missing=True) for name in names], num_cores=1)
        model.prepare_training(rows)
        model.mark_pairs(
            {
                "match": [(rows[one], rows[two]) for one, two, same in pairs if same],
                "distinct": [(rows[one], rows[two]) for one, two, same in pairs if not same],
            }
        )
        model.train()
        groups = [0] * len(rows)
        for group, (members, _) in enumerate(model.partition(rows, 0.5)):
            for row in members:
                groups[int(row)] = group
        return groups
    except Exception as error:
        print(f"dedupe after {len(pairs)} answers: {error!r}", file=sys.stderr)
        return None


if __name__ == "__main__":
    main()
