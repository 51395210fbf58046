"""The compiled kernels. They are optional: without a compiler the numpy twins serve, with the same results."""

import sys

from setuptools import Extension, setup

FLAGS = [] if sys.platform == "win32" else ["-O3"]

KERNELS = [
    Extension(
        "maskwright.kernels._lattice",
        ["src/maskwright/kernels/_lattice.c"],
        py_limited_api=True,
        optional=True,
        extra_compile_args=FLAGS,
    ),
]

setup(ext_modules=KERNELS, options={"bdist_wheel": {"py_limited_api": "cp311"}})
