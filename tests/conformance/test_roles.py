"""Every role has a base, is found by the registry, and is offered where it belongs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

import clew
from clew import Constraints, PCKMeans, Session, _registry
from clew._base import ROLES
from clew.cli._app import app
from clew.evaluation import same_partition
from clew.exceptions import ConstraintError, DataError, FileError, ParameterError, UnusedKnowledgeWarning
from clew.web._routes_data import _project
from tests.conformance.toys import ToyAlternative, ToyScaling

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
OTHERS = {"toy-scaling": "metric learner", "toy-alternative": "alternative clusterer"}


def command(*words):
    return CliRunner().invoke(app, list(words), prog_name="clew")


def test_the_registry_finds_estimators_by_role(toys):
    found = {role: [cls.__name__ for cls in _registry.all_estimators(role)] for role in ROLES}
    assert {"GeometryPreservingLearner", "ToyScaling"} <= set(found["metric learner"])
    assert found["alternative clusterer"] == ["CondEns", "CoordinatedConditionalIB", "ToyAlternative"]
    assert {"PCKMeans", "ToyMedoids"} <= set(found["clusterer"])
    assert sum(map(len, found.values())) == len(_registry.all_estimators())
    assert _registry.find_method("ToyScaling") == "toy-scaling"


@pytest.mark.parametrize("name, role", OTHERS.items())
def test_only_clusterers_are_offered_where_rows_are_clustered(name, role, toys, tmp_path):
    article = "an" if role.startswith("a") else "a"
    refusal = f"{name} is {article} {role}, and a clusterer is needed: one of .*toy-medoids"
    table = tmp_path / "rows.csv"
    table.write_text("x,y\n0,0\n0,1\n9,0\n9,1\n")
    refused = command("cluster", str(table), "-m", name, "-k", "2")
    assert refused.exit_code != 0
    assert f"{name} is {article} {role}, and a clusterer is needed" in " ".join(refused.output.split())
    with Session.create(tmp_path / "project.clew", SQUARE) as session:
        with pytest.raises(ParameterError, match=refusal):
            session.set(method=name)
        choices = _project(session).choices["method"]
    assert name not in choices
    assert "pck-means" in choices
    assert "toy-medoids" not in choices  # a session has rows, and the toy clusters a matrix


def test_the_list_of_methods_names_the_other_roles_apart(toys):
    listed = command("methods").output
    clusterers, _, others = listed.partition("metric learner")
    assert "toy-medoids" in clusterers
    assert not any(name in clusterers for name in OTHERS)
    assert all(name in others for name in OTHERS)
    assert "Divide each column" in command("methods", "toy-scaling").output


def test_a_metric_learner_learns_transforms_and_comes_back(toys, tmp_path):
    model = ToyScaling().fit(SQUARE, constraints={"must_link": [(0, 2)]})
    assert model.transform(SQUARE).tolist() == (SQUARE * [0.1, 1.0]).tolist()
    assert model.get_feature_names_out().tolist() == ["toyscaling0", "toyscaling1"]
    assert (clone(model).fit_transform(SQUARE, constraints={"must_link": [(0, 2)]}) == model.transform(SQUARE)).all()
    model.save(tmp_path / "metric.clew")
    twin = clew.load(tmp_path / "metric.clew")
    assert (twin.transform(SQUARE) == model.transform(SQUARE)).all()
    with pytest.raises(NotFittedError, match="ToyScaling instance is not fitted"):
        ToyScaling().transform(SQUARE)


def test_an_alternative_clusterer_leaves_the_given_clusters(toys, tmp_path):
    given = np.array(["left", "left", "right", "right"])
    model = ToyAlternative(random_state=0).fit(SQUARE, given=given, constraints={"must_link": [(0, 1)]})
    assert same_partition(model.labels_, [0, 1, 0, 1])
    assert model.violated_must_link_.tolist() == [[0, 1]]
    assert (clone(model).fit_predict(SQUARE, given=given) == model.labels_).all()
    model.save(tmp_path / "other.clew")
    assert (clew.load(tmp_path / "other.clew").labels_ == model.labels_).all()
    for wrong in (given[:3], given[:, None], 7):
        with pytest.raises(DataError, match=r"given has shape .* but X has 4 rows"):
            ToyAlternative().fit(SQUARE, given=wrong)
    with pytest.raises(TypeError, match="given"):
        ToyAlternative().fit(SQUARE)


def test_estimators_inside_an_estimator_are_saved_with_it(toys, tmp_path):
    model = ToyAlternative(clusterer=PCKMeans(tol=0.5, init=SQUARE[:2]), random_state=0).fit(SQUARE, given=[0, 0, 1, 1])
    path = tmp_path / "other.clew"
    model.save(path)
    twin = clew.load(path)
    assert isinstance(twin.clusterer, PCKMeans)
    assert twin.clusterer.tol == 0.5
    assert twin.clusterer.init.tolist() == SQUARE[:2].tolist()
    assert not hasattr(twin.clusterer, "labels_")
    for mine, other in zip([model.clusterer_, *model.clusterers_], [twin.clusterer_, *twin.clusterers_], strict=True):
        assert (mine.predict(SQUARE) == other.predict(SQUARE)).all()
        assert mine.cluster_centers_.tolist() == other.cluster_centers_.tolist()
    model.clusterers_ = [model.clusterer_, object()]
    with pytest.raises(FileError, match="clusterers_ holds list, which cannot be saved without pickle"):
        model.save(path)
    model.clusterers_, model.clusterer_ = [model.clusterer_], np.arange(3)
    model.save(path)
    with pytest.raises(FileError, match="clusterer_ holds something other than estimator"):
        clew.load(path)


@pytest.mark.parametrize("model, options", [(ToyScaling(), {}), (ToyAlternative(), {"given": [0, 0, 1, 1]})])
def test_other_roles_check_what_they_are_given(model, options, toys):
    for X, message in (([["a"], ["b"]], "text"), ([[np.nan], [1.0]], "NaN"), (np.empty((0, 2)), "0 sample")):
        with pytest.raises(DataError, match=message):
            clone(model).fit(X, **options)
    with pytest.raises(ConstraintError, match="ignores y"):
        clone(model).fit(SQUARE, Constraints([(0, 1)], n_samples=4), **options)
    with pytest.raises(ParameterError, match="random_state"):
        clone(model).set_params(random_state=-1).fit(SQUARE, **options)
    with pytest.warns(
        UnusedKnowledgeWarning, match=r"ignores the triplets in constraints\. (No method|Use DistBoost or Mahal)"
    ):
        clone(model).fit(SQUARE, constraints=Constraints(triplets=[(0, 1, 2)], n_samples=4), **options)


@pytest.mark.filterwarnings("ignore")
def test_a_metric_learner_passes_the_checks_of_scikit_learn(toys):
    results = check_estimator(ToyScaling(), on_fail=None, on_skip=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []
