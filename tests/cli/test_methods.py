"""`clew methods`: the registry, as a table and one by one."""

import json

import pytest

from clew import _registry
from clew.cli._formulas import plain_formula
from clew.cli._parameters import flag_of, signature_of


def test_every_method_is_listed(clew):
    result = clew("methods")
    assert result.exit_code == 0, result.output
    for name in _registry.by_method_name():
        assert name in result.stdout
    assert "hard" in result.stdout
    assert "soft" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("name, kind", sorted(_registry.by_method_name().items()))
def test_one_method_is_explained_with_its_flags(clew, name, kind):
    result = clew("methods", name)
    assert result.exit_code == 0, result.output
    assert kind.__name__ in result.stdout
    assert kind.__doc__.strip().splitlines()[0].strip() in " ".join(result.stdout.split())
    for parameter in signature_of(kind):
        assert flag_of(parameter) in result.stdout


def test_parameters_that_a_shell_cannot_give_are_no_flags(clew):
    """Functions, arrays and estimators have no words; other values of the same parameter may have some."""
    result = clew("methods", "constrained-kmedoids")
    assert "--callback" not in result.stdout
    assert "--metric" in result.stdout and "--init" in result.stdout
    deep = clew("methods", "deep-constrained-clustering").stdout
    assert "--layers" in deep and "--callback" not in deep and "--pretrained" not in deep
    assert "--clusterer" not in clew("methods", "boost-cluster").stdout
    refused = clew("cluster", "rows.csv", "-m", "constrained-kmedoids", "-k", "2", "--callback", "print")
    assert refused.exit_code == 2
    assert "--callback is neither a flag of this command nor a parameter of constrained-kmedoids" in " ".join(
        refused.stderr.split()
    )


def test_methods_for_a_table(clew, tmp_path):
    rows = "".join(f"r{i},{i % 2 * 9 + i % 7 / 9},{i % 5 / 9}\n" for i in range(40))
    (tmp_path / "data.csv").write_text("id,x,y\n" + rows)
    (tmp_path / "answers.csv").write_text("id_1,id_2,answer\nr0,r2,same\nr0,r1,different\n")
    result = clew("methods", "--for", "data.csv", "--id", "id", "-c", "answers.csv")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert text.startswith("40 rows, 2 columns; 2 dense regions")
    assert "Given: must-links and cannot-links." in text
    assert max(map(len, result.stdout.splitlines())) <= 80
    told = json.loads(clew("methods", "--for", "data.csv", "--id", "id", "--json").stdout)
    assert told["facts"]["shape"] == "round"
    assert {one["method"] for one in told["methods"]} == set(_registry.by_method_name("clusterer"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pck-means", "--for", "data.csv"), "leave out pck-means or --for"),
        (("--json",), "--json goes with --for DATA"),
        (("-c", "answers.csv"), "--constraints goes with --for DATA"),
        (("--for", "nothing.csv"), "Cannot read nothing.csv"),
    ],
)
def test_flags_that_do_not_go_together(clew, words, sentence):
    result = clew("methods", *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.split())


def test_unknown_method_suggests_the_nearest(clew):
    result = clew("methods", "pck-mean")
    assert result.exit_code == 2
    assert 'There is no method "pck-mean". Did you mean pck-means?' in result.stderr


@pytest.mark.parametrize("name", sorted(_registry.by_method_name()))
def test_formulas_are_signs_and_not_latex(clew, name):
    result = clew("methods", name)
    assert result.exit_code == 0
    assert not [line for line in result.stdout.splitlines() if "\\" in line or ":math:" in line]


@pytest.mark.parametrize(
    "latex, plain",
    [
        (r"\sum_i \lVert x_i - c_{z_i} \rVert^2", "Σᵢ ‖xᵢ - c_{z_i}‖²"),
        (r"\lambda \Big( \sum_{ML} [z_i \neq z_j] \Big)", "λ ( Σ_ML [zᵢ ≠ zⱼ] )"),
        (r"\tfrac{1}{2} + \tfrac1C + \frac{a + b}{c}", "1/2 + 1/C + (a + b)/c"),
        (r"- \mu \log \det \operatorname{diag} a", "- μ log det diag a"),
        (r"(K + \sigma^2 I)^{-1}", "(K + σ² I)⁻¹"),
    ],
)
def test_a_formula_in_plain_signs(latex, plain):
    assert plain_formula(latex) == plain
