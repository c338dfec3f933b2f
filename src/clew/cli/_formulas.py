"""Convert LaTeX formulas of docstrings to plain Unicode for the terminal."""

from __future__ import annotations

import re

_SIGNS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ",
    "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Sigma": "Σ", "Omega": "Ω", "sum": "Σ", "prod": "Π", "sqrt": "√",
    "neq": "≠", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "in": "∈", "notin": "∉", "cdot": "·", "times": "×",
    "propto": "∝", "infty": "∞", "partial": "∂", "sim": "~", "approx": "≈", "to": "→", "mid": "|", "lVert": "‖",
    "rVert": "‖", "|": "‖", "lvert": "|", "rvert": "|", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋",
    "lceil": "⌈", "rceil": "⌉", "cup": "∪", "cap": "∩", "setminus": "∖", "ldots": "…", "dots": "…", "top": "ᵀ",
    "quad": "  ", "qquad": "    ", "{": "{", "}": "}",
}  # fmt: skip
# LaTeX commands that only change the size or the typeface.
_FACES = frozenset(
    {"Big", "big", "bigg", "Bigg", "left", "right", "displaystyle", "limits", ",", ";", "!", " ", ":"}
)  # fmt: skip
_BELOW = str.maketrans("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_ABOVE = str.maketrans("0123456789+-=()in", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿ")


def plain_formula(formula: str) -> str:
    """Convert a LaTeX formula to Unicode letters and signs.

    Examples
    --------
    >>> plain_formula(r"J = \\sum_i \\lVert x_i - c_{z_i} \\rVert^2 + \\tfrac{1}{2} \\lambda")
    'J = Σᵢ ‖xᵢ - c_{z_i}‖² + 1/2 λ'
    """
    text = re.sub(r"\\[td]?frac\s?(?:\{([^{}]*)\}\{([^{}]*)\}|(\w)\s?(\w))", _fraction, formula)
    text = re.sub(r"\\(?:mathrm|mathbf|mathcal|mathbb|operatorname|text)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\([A-Za-z]+|[^A-Za-z])[ ]?", _sign, text)
    text = re.sub(r"([_^])(?:\{([^{}]*)\}|([^{}\s]))", _script, text)
    return re.sub(r"(?<=[‖⟨⌊⌈√]) | (?=[‖⟩⌋⌉][^ ]|[‖⟩⌋⌉]$)", "", text)


def _fraction(match: re.Match[str]) -> str:
    above, below = (match[1], match[2]) if match[1] is not None else (match[3], match[4])
    return "/".join(part if len(part) == 1 or part.isalnum() else f"({part})" for part in (above, below))


def _sign(match: re.Match[str]) -> str:
    name = match[1]
    if name in _FACES:
        return ""
    space = " " if match[0].endswith(" ") else ""
    return _SIGNS.get(name, name) + space


def _script(match: re.Match[str]) -> str:
    inner = match[2] if match[2] is not None else match[3]
    table = _BELOW if match[1] == "_" else _ABOVE
    if all(ord(sign) in table for sign in inner):
        return inner.translate(table)
    return f"{match[1]}{inner}" if len(inner) == 1 or inner.isalnum() else f"{match[1]}{{{inner}}}"
