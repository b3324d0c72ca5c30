import functools
import importlib
import inspect
import pkgutil
import subprocess
import sys

import graphcouple as gc

HEAVY = ("numba", "matplotlib", "igraph", "networkx", "sklearn", "scipy", "pandas", "rich", "click")


def test_import_loads_nothing_heavy():
    code = "import sys, graphcouple; print(' '.join(m for m in sys.argv[1:] if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_public_name_loads():
    for name in gc.__all__:
        assert getattr(gc, name) is not None
    assert dir(gc) == gc.__all__


def test_every_public_class_and_function_has_an_example():
    # The packages of the inner layers also share helpers, which have none and are not in the reference.
    modules = [
        "extend",
        "couplings",
        "laws",
        "kernels",
        "theory",
        "metrics",
        "plotting",
        "datasets",
        "distributed",
        "scverse",
    ]
    for module in (gc, *(importlib.import_module(f"graphcouple.{name}") for name in modules)):
        parts = [getattr(module, name) for name in module.__all__]
        shown = [part for part in parts if inspect.isclass(part) or inspect.isroutine(part)]
        assert shown
        assert [part for part in shown if ">>>" not in (part.__doc__ or "")] == []


def test_names_that_moved_go_on_working():
    for module, names in gc._ELSEWHERE.items():
        home = importlib.import_module(f"graphcouple.{module}")
        for name in names:
            assert getattr(gc, name) is getattr(home, name)
            assert name not in gc.__all__


def test_version_comes_from_one_place():
    from importlib.metadata import version

    assert gc.__version__ == version("graphcouple")


def test_every_public_method_is_described_by_its_class_or_a_base():
    """Methods that do as the base's description says have none of their own."""
    missing = set()
    for info in pkgutil.walk_packages(gc.__path__, "graphcouple."):
        if info.name == "graphcouple.__main__":
            continue
        for owner in vars(importlib.import_module(info.name)).values():
            if not (inspect.isclass(owner) and owner.__module__ == info.name and owner.__name__[0] != "_"):
                continue
            # Fields may hold functions.
            fields = vars(owner).get("__annotations__", {})
            members = {name: value for name, value in vars(owner).items() if name[0] != "_" and name not in fields}
            kinds = (property, functools.cached_property, staticmethod, classmethod)
            described = {n: v for n, v in members.items() if inspect.isfunction(v) or isinstance(v, kinds)}
            missing |= {f"{info.name}.{owner.__name__}.{n}" for n in described if not inspect.getdoc(getattr(owner, n))}
    assert missing == set()
