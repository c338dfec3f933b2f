"""Active learning of constraints: query strategies, the driver that asks, a simulated annotator, learning curves."""

from clew.active._ability_to_separate import AbilityToSeparate
from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair, Stated, Which
from clew.active._auto import Auto
from clew.active._cluster_pairs import ClusterPairs
from clew.active._committee import Committee
from clew.active._dense_min_max import DenseMinMax
from clew.active._density_border import DensityBorder
from clew.active._explore_consolidate import ExploreConsolidate
from clew.active._feedback import Feedback
from clew.active._information_gain import InformationGain
from clew.active._learning_curve import LearningCurve, learning_curve
from clew.active._log import Answered
from clew.active._min_max import MinMax
from clew.active._oracle import BudgetSpentError, Oracle
from clew.active._point_uncertainty import PointUncertainty
from clew.active._questions import Questions, QuestionsProgress
from clew.active._random_pairs import RandomPairs
from clew.active._strategy import Strategy
from clew.active._super_instances import SuperInstances
from clew.active._uncertain_matches import UncertainMatches
from clew.active._view import Neighbourhood, View

__all__ = [
    "DIFFERENT",
    "SAME",
    "UNSURE",
    "AbilityToSeparate",
    "Answer",
    "Answered",
    "Auto",
    "BudgetSpentError",
    "ClusterPairs",
    "Committee",
    "DenseMinMax",
    "DensityBorder",
    "ExploreConsolidate",
    "Feedback",
    "InformationGain",
    "LearningCurve",
    "MinMax",
    "Neighbourhood",
    "Oracle",
    "Pair",
    "PointUncertainty",
    "Questions",
    "QuestionsProgress",
    "RandomPairs",
    "Stated",
    "Strategy",
    "SuperInstances",
    "UncertainMatches",
    "View",
    "Which",
    "learning_curve",
]
