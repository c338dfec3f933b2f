"""Collect the inputs of a fit from the log: constraints, clusters to keep, and the clusterer that makes the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active import Auto
from clew.active._strategy import Strategy, strategy_makes_labels
from clew.constraints import Constraints
from clew.session._clustering import FitPlan, FitResult
from clew.session._events import SILENT, Event
from clew.session._keeping import Kept
from clew.session._known import Known
from clew.session._labelling import Labelling
from clew.session._ledger import Ledger
from clew.session._settings import MAKING
from clew.session._strategies import has_small_groups, lasting_strategy
from clew.session._table import ProjectRows

IntArray = npt.NDArray[np.int64]


# Settings that change the clusters only where answers do. Corrected clusters stay after such a change.
_WEIGHING = ("random_state", "strategy", "error_rate")
# Number of contradictions from which answers are evidence without a given error rate.
_SEVERAL = 2


class Planner:
    """Makes the plan of a fit, and tells whether a result is still valid."""

    def __init__(self, ledger: Ledger, rows: ProjectRows, known: Known, labelling: Labelling) -> None:
        self._ledger, self._rows, self._known, self._labelling = ledger, rows, known, labelling

    def plan(self) -> FitPlan:
        """Return a plan with all inputs of a fit."""
        rows, known, settings = self._rows, self._known.constraints(), self._ledger.settings
        certain = self._certain()
        return FitPlan(
            version=self._ledger.version,
            X=rows.X,
            records=rows.compared,
            rows=rows.present,
            constraints=known._replace(ids=rows.present_ids),
            binding=self._known.binding(),
            certain=certain,
            current=self._labelling.present,
            n_clusters=self._known.driver.n_clusters,
            n_groups=len(self._known.driver.view.neighbourhoods),
            method=settings["method"],
            metric=rows.metric,
            random_state=int(settings["random_state"]),
            own_labels=self._own_labels(known),
            kept=self._kept(known, certain),
            settled=self._is_settled(),
            notes=self._labelling.notes,
            probability=self._labelling.present_probability,
        )

    def _kept(self, known: Constraints, certain: Constraints | None) -> Kept | None:
        """The corrected clusters that a fit starts from. None without corrections, or if all must be fitted again."""
        live = [one for one in self._known.corrections() if one.seq not in self._known.quarantined]
        if not live or self._labelling.is_outdated or not self._ledger.fitted_version:
            return None
        base, put = self._labelling.base.copy(), np.zeros(len(self._labelling.base), dtype=bool)
        for one in live:
            for rows, before, after in one.changes:
                put[rows] = True
                if one.waited:  # in use since a conflict was resolved; its rows have not moved yet
                    there = [row for row in rows if base[row] == before]
                    base[there] = int(base.max()) + 1 if one.more_clusters > 0 else after
        present, view, auto = self._rows.present, self._known.driver.view, Auto()
        all_hold = certain is None and self._ledger.settings["method"] is None
        known = known if all_hold else self._still_held(known, base[present]) | self._always(certain, base[present])
        asked = view.questioned & view.named
        # A view of its own: the fit may run in another thread, while answers change this one.
        apart = self._known.fresh(auto).view
        small = self._are_small()
        return Kept(base[present], known, asked, put[present], lambda: auto.kernel_sum(apart), small=small)

    def _still_held(self, known: Constraints, base: IntArray) -> Constraints:
        """The pairs that corrected clusters must satisfy, without answers that the clusters had violated."""
        holds = base[known.must_link[:, 0]] == base[known.must_link[:, 1]]
        differs = base[known.cannot_link[:, 0]] != base[known.cannot_link[:, 1]]
        kept = Constraints(
            known.must_link[holds],
            known.cannot_link[differs],
            must_link_confidence=known.must_link_confidence[holds],
            cannot_link_confidence=known.cannot_link_confidence[differs],
            n_samples=known.n_rows,
        )
        return kept | self._known.said(lambda _, events: max(events) > self._labelling.base_version)

    def _always(self, certain: Constraints | None, base: IntArray) -> Constraints:
        """The constraints that corrected clusters must satisfy whatever people answer.

        Given constraints are among them, unless a chosen method has violated one.
        """
        if certain is not None:
            return certain
        given, binding = self._known.prior.at_least(1.0), self._known.binding()
        return binding if any(map(len, given.violations(base))) else given | binding

    def _clusterer(self) -> Strategy | None:
        """The strategy whose own clusterer makes the labels. A temporary strategy borrows the default's."""
        strategy = lasting_strategy(self._ledger.settings)
        return (
            strategy if strategy_makes_labels(strategy, chosen=None, n_clusters=self._known.driver.n_clusters) else None
        )

    def _certain(self) -> Constraints | None:
        """Knowledge that holds even if answers are wrong; None while answers are facts.

        Answers that need more clusters than were chosen are no sign of errors here: people may have found a cluster.
        A single contradiction is for people to resolve.
        """
        view = self._known.driver.view
        is_doubtful = view.error_rate or view.n_contradictions + view.n_disputed >= _SEVERAL or self._are_small()
        strategy = self._clusterer() if self._ledger.settings["method"] is None and is_doubtful else None
        certain = None if strategy is None else strategy.certain_constraints(view)
        return None if certain is None else certain.at_least(1.0) | self._known.binding()

    def _are_small(self) -> bool:
        return has_small_groups(self._ledger.settings, self._known.driver)

    def _own_labels(self, known: Constraints) -> Callable[[], npt.NDArray[Any]] | None:
        """Labels from the strategy's own clusterer, if it has one."""
        strategy = self._clusterer()
        if strategy is None:
            return None
        copied = self._known.copier(strategy)

        def own() -> npt.NDArray[Any]:
            with copied() as driver:
                driver.view.constraints = lambda: known  # with the soft constraints of resolved conflicts
                return strategy.labels(driver.view)

        return own

    def _is_settled(self) -> bool:
        """Whether no event that the clusters depend on came after the last fit."""
        fitted = self._ledger.fitted_version
        silent = all(one.kind in SILENT or _is_indifferent(one) for one in self._ledger.events[fitted:])
        return bool(fitted) and silent and bool((self._labelling.present >= 0).all())

    def is_late(self, fit: FitPlan | FitResult) -> bool:
        """Whether corrections, rows or settings have changed since a fit was planned."""
        return any(self._changes_clusters(self._ledger.target(one)) for one in self._ledger.events[fit.version :])

    def _changes_clusters(self, event: Event) -> bool:
        if event.kind == "setting":
            return bool({*MAKING, "random_state"} & set(event.payload["settings"]))
        return event.kind in ("correction", "rows_added") or bool(self._ledger.withdrawn(event))


def _is_indifferent(event: Event) -> bool:
    """Whether an event changes only settings that the clusters do not depend on."""
    return event.kind == "setting" and not {*MAKING, *_WEIGHING} & set(event.payload["settings"])
