"""Compiles every kernel; the metadata lives in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = Path("src/clew/kernels")
# The code by which Cython reads arrays, compiled once instead of once per kernel.
SHARED = "clew.kernels._arrays"
FLAGS = ["-O3", "-g0"]

setup(
    ext_modules=cythonize(
        [
            Extension(f"clew.kernels.{path.stem}", [str(path)], extra_compile_args=FLAGS)
            for path in sorted(KERNELS.glob("*.py"))
            if path.stem != "__init__"
        ]
        + [Extension(SHARED, [str(KERNELS / "_arrays.c")], extra_compile_args=FLAGS)],
        shared_utility_qualified_name=SHARED,
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "cpow": True,
        },
    ),
    options={"build_ext": {"parallel": True}},  # a compiler for each core
)
