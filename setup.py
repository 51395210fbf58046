"""The compiled kernels. They are optional: without a compiler the numpy twins serve, with the same results."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# no debugging symbols: they name the folders of whoever built it
FLAGS = [] if sys.platform == "win32" else ["-O3", "-g0"]

# no fused operations: the numpy twin rounds after each one. Vector minima: there are no NaN and no -0 here
FLOATS = [] if sys.platform == "win32" else [
    "-ffp-contract=off", "-fno-signed-zeros", "-fno-trapping-math", "-ffinite-math-only",
]  # fmt: skip


def headers(kernel: str) -> list[str]:
    """The parts that a kernel includes: what it must be compiled anew for."""
    return sorted(str(h) for h in Path("src/maskwright/kernels").glob(f"{kernel}_*.h"))


class Build(build_ext):
    """Without a path to look for libraries: it would name a folder of whoever built it, and no kernel needs one."""

    def build_extensions(self) -> None:
        if hasattr(self.compiler, "linker_so"):
            self.compiler.linker_so = without_library_paths(self.compiler.linker_so)
        super().build_extensions()


def without_library_paths(words: list[str]) -> list[str]:
    """A linker's command without `-rpath`: -Wl,-rpath,PATH; -Wl,-rpath=PATH; -Wl,-rpath -Wl,PATH."""
    kept: list[str] = []
    path_follows = False
    for word in words:
        if "rpath" not in word and not path_follows:
            kept.append(word)
        path_follows = word in ("-Wl,-rpath", "-Wl,--rpath")
    return kept


KERNELS = [
    Extension(
        "maskwright.kernels._chacha",
        ["src/maskwright/kernels/_chacha.c"],
        py_limited_api=True,
        optional=True,
        extra_compile_args=FLAGS,
    ),
    Extension(
        "maskwright.kernels._disclosure",
        ["src/maskwright/kernels/_disclosure.c"],
        py_limited_api=True,
        optional=True,
        extra_compile_args=[*FLAGS, *FLOATS],
    ),
    Extension(
        "maskwright.kernels._lattice",
        ["src/maskwright/kernels/_lattice.c"],
        depends=headers("_lattice"),
        py_limited_api=True,
        optional=True,
        extra_compile_args=FLAGS,
    ),
    Extension(
        "maskwright.kernels._local",
        ["src/maskwright/kernels/_local.c"],
        depends=headers("_local"),
        py_limited_api=True,
        optional=True,
        extra_compile_args=[*FLAGS, *FLOATS],
    ),
    Extension(
        "maskwright.kernels._partition",
        ["src/maskwright/kernels/_partition.c"],
        depends=headers("_partition"),
        py_limited_api=True,
        optional=True,
        extra_compile_args=[*FLAGS, *FLOATS],
    ),
]

setup(
    ext_modules=KERNELS, cmdclass={"build_ext": Build}, options={"bdist_wheel": {"py_limited_api": "cp311"}}
)
