"""Compiles the extension modules of pageseek._core; everything else is in pyproject.toml.

Switches (set to 1): PAGESEEK_SANITIZE, PAGESEEK_DEBUG, PAGESEEK_COVERAGE, PAGESEEK_WERROR.
"""

import os
import shutil
import sys
import sysconfig
from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

chosen = [
    name for name in ("SANITIZE", "DEBUG", "COVERAGE") if os.environ.get(f"PAGESEEK_{name}") == "1"
]
gil_disabled = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
abi3 = [] if gil_disabled else [("Py_LIMITED_API", "0x030B0000")]
if sys.platform == "win32":
    cflags, ldflags = ["/std:c11", "/O2"], []
else:
    cflags, ldflags = ["-std=c11", "-O3", "-g0", "-fvisibility=hidden", "-pthread"], ["-pthread"]
    if sys.platform == "linux" and not chosen:  # what reads hostile bytes
        cflags += ["-fstack-protector-strong", "-fstack-clash-protection"]
        cflags += ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"]
        ldflags += ["-Wl,-z,relro,-z,now"]
    if "SANITIZE" in chosen:
        checks = "-fsanitize=address,undefined"
        cflags += ["-O1", "-g", "-fno-omit-frame-pointer", checks, "-fno-sanitize-recover=all"]
        cflags += ["-fno-wrapv"]  # CPython's flags have -fwrapv, which hides overflow
        ldflags += [checks]
    cflags += ["-O0", "-g3"] if "DEBUG" in chosen else []
    cflags += ["-O0", "--coverage"] if "COVERAGE" in chosen else []
    ldflags += ["--coverage"] if "COVERAGE" in chosen else []
strict = os.environ.get("PAGESEEK_WERROR") == "1" and sys.platform != "win32"
own = ["-Wall", "-Wextra", "-Wshadow", "-Werror"] if strict else []  # not for what Cython writes

build = os.path.join("build", *map(str.lower, chosen))  # each kind of build keeps its own objects
kernels, headers = sorted(glob("_core/c/*.c")), sorted(glob("_core/**/*.h", recursive=True))
include, core = ["_core"], "pageseek_core"  # the C files are compiled once, as a static library
library = {"sources": kernels, "include_dirs": include, "obj_deps": {"": headers}}
library["cflags"] = cflags + own
# Cython looks for the declarations of a package's modules below the package's name, which _core has not
declared = os.path.join(build, "pxd", "pageseek", "_core")
shutil.rmtree(declared, ignore_errors=True)
os.makedirs(declared)
for pxd in glob("_core/*.pxd"):
    shutil.copy2(pxd, declared)
modules = [
    Extension("pageseek._core." + os.path.basename(pyx)[:-4], [pyx], include_dirs=include,
              define_macros=abi3, py_limited_api=not gil_disabled, depends=kernels + headers,
              extra_compile_args=cflags, extra_link_args=ldflags)
    for pyx in sorted(glob("_core/*.pyx"))
]  # fmt: skip
setup(
    packages=[*find_packages("src"), "pageseek._core"]
    + ["pageseek." + name for name in find_packages(".", include=["bench", "bench.*"])],
    libraries=[(core, library)] if kernels else [],
    ext_modules=cythonize(
        modules,
        build_dir=build + "/cython",
        language_level=3,
        include_path=[os.path.join(build, "pxd")],
    )
    if modules
    else [],
    options={
        "build": {"build_base": build, "parallel": os.cpu_count()},
        "bdist_wheel": {} if gil_disabled else {"py_limited_api": "cp311"},
    },
)
