"""Alternative clusterers: they find good clusters that differ from clusters already known."""

from clew.alternative._cond_ens import CondEns
from clew.alternative._coordinated_conditional_ib import CoordinatedConditionalIB

__all__ = ["CondEns", "CoordinatedConditionalIB"]
