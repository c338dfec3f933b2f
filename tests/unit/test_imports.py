"""`import clew` loads no optional part, and every public name resolves to the right object."""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import clew
import clew.kernels
from clew import _registry
from clew._families import FAMILIES

PACKAGE = Path(clew.__file__).parent
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("[a-z]*/__init__.py"))
OPTIONAL = [
    "clew.cli", "clew.session", "clew.web", "typer", "rich", "matplotlib", "pandas", "polars", "pyarrow", "ortools",
    "torch", "dask",
]  # fmt: skip


def in_a_fresh_process(code):
    """What a script prints as JSON, run by itself with warnings as errors."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def loaded_by(statement, names=OPTIONAL):
    code = f"import json, sys\n{statement}\nprint(json.dumps([name for name in {names!r} if name in sys.modules]))"
    return set(in_a_fresh_process(code))


def test_import_loads_no_optional_part():
    # What the import loads is still there after the check.
    assert loaded_by("import clew; clew.Constraints([(0, 1)], n_samples=3).check(2)") == set()


def test_estimators_load_no_more_than_scikit_learn_does():
    code = f"""
import json, sys
import sklearn.cluster

def loaded():
    return [name for name in {OPTIONAL!r} if name in sys.modules]

before = loaded()
import clew
[getattr(clew, name) for name in clew.__all__ if name != "Session"]
clew.PCKMeans(2).fit([[0.0], [1.0], [9.0]])
print(json.dumps([before, loaded()]))
"""
    before, after = in_a_fresh_process(code)
    assert after == before


def test_import_alone_is_light():
    assert loaded_by("import clew", ["numpy", "scipy", "sklearn", "narwhals"]) == set()


def test_import_has_no_side_effects():
    # scikit-learn comes first: what it changes itself is not ours.
    code = """
import json, locale, logging, os, random, signal, sys, warnings
import numpy as np
import sklearn.cluster

def state():
    handlers = [len(logging.getLogger(name).handlers) for name in (None, "clew")]
    return repr([
        np.geterr(), np.get_printoptions(), np.random.get_state(), random.getstate(), warnings.filters, handlers,
        logging.getLogger().level, signal.getsignal(signal.SIGINT), locale.getlocale(), os.getcwd(), sorted(os.environ),
        sys.getrecursionlimit(), sys.path, sklearn.get_config(),
    ])

before = state()
import clew
imported = state()
[getattr(clew, name) for name in clew.__all__]
print(json.dumps([imported == before, state() == before]))
"""
    assert in_a_fresh_process(code) == [True, True]


def test_public_names_are_listed_once_and_resolve():
    assert clew.__all__ == sorted(set(clew.__all__))
    for name in clew.__all__:
        assert getattr(clew, name) is not None
    assert dir(clew) == sorted(clew.__all__)


def test_public_names_are_the_estimators_and_the_documented_rest():
    estimators = {cls.__name__ for cls in _registry.all_estimators()}
    assert set(clew.__all__) == estimators | {
        "Constraints",
        "MetricLearnAdapter",
        "Session",
        "__version__",
        "cluster_edges",
        "load",
    }
    for cls in _registry.all_estimators():
        assert getattr(clew, cls.__name__) is cls


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'clew' has no attribute 'KMeans'"):
        clew.KMeans  # noqa: B018


def test_type_checkers_see_the_public_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    named = {alias.name for node in imports for alias in node.names}
    whole = {node.module for node in imports if node.names[0].name == "*"}
    assert whole == {f"clew.{family}" for family in FAMILIES}
    assert {"Constraints", "Session", "__version__", "cluster_edges", "load"} <= named
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_what_a_package_exports_is_there(package):
    module = importlib.import_module(f"clew.{package}")
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []


def algorithm_files():
    """Classes with `_capabilities`, the mark of an estimator, wherever they are defined."""
    for path in sorted(PACKAGE.glob("*/_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(
                isinstance(line, ast.Assign) and "_capabilities" in map(ast.unparse, line.targets) for line in node.body
            ):
                yield f"clew.{path.parent.name}.{path.stem}", node.name


def test_every_algorithm_file_reaches_the_registry():
    found = set(algorithm_files())
    # It wraps learners of another package, and has no example without one.
    found -= {("clew.metric._metric_learn_adapter", "MetricLearnAdapter")}
    assert found == {(cls.__module__, cls.__name__) for cls in _registry.all_estimators()}
    assert len(found) >= 4


def test_families_are_the_layers_of_the_import_contract_that_hold_estimators():
    assert {module.split(".")[1] for module, _ in algorithm_files()} == set(FAMILIES)
    layers = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert set(FAMILIES) <= {name for layer in layers[0]["layers"] for name in layer.replace("|", " ").split()}


def test_a_new_method_is_named_in_one_place(tmp_path):
    """A copy of the package gets one more file and one more name in its family's `__all__`; everything finds it."""
    copy = tmp_path / "clew"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    source = (PACKAGE / "partitional" / "_pck_means.py").read_text()
    (copy / "partitional" / "_toy_means.py").write_text(source.replace("class PCKMeans(", "class ToyMeans("))
    family = copy / "partitional" / "__init__.py"
    with family.open("a") as file:
        file.write('\nfrom clew.partitional._toy_means import ToyMeans\n__all__ += ["ToyMeans"]\n')
    code = """
import json, sys
import clew
from clew import ToyMeans, _registry
labels = ToyMeans(2, random_state=0).fit([[0.0], [1.0], [9.0]]).labels_
print(json.dumps([clew.__file__, _registry.find_method("ToyMeans"), "ToyMeans" in clew.__all__, len(set(labels))]))
from clew.cli import main
sys.argv = ["clew", "methods"]
main()
"""
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    found, _, listed = run.stdout.partition("\n")
    assert json.loads(found) == [str(copy / "__init__.py"), "toy-means", True, 2], run.stderr
    assert "toy-means" in listed


KERNELS = sorted(path.stem for path in Path(clew.kernels.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_in_use_are_compiled(name):
    module = importlib.import_module(f"clew.kernels.{name}")
    assert module.__file__.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))
