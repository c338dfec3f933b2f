"""`clew methods`: the registry, as a table and one by one."""

import pytest

from clew import _registry
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


def test_unknown_method_suggests_the_nearest(clew):
    result = clew("methods", "pck-mean")
    assert result.exit_code == 2
    assert 'There is no method "pck-mean". Did you mean pck-means?' in result.stderr
