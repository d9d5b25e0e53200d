"""What recall_core shows to the world, what importing it costs, and the limits that its code keeps."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support import ROOT

import recall_core
from recall_core import errors

HEAVY = ["numpy", "onnxruntime", "tokenizers", "jieba", "rjieba", "opencc", "Stemmer", "click", "rich", "httpx"]
SOURCES = sorted((ROOT / "recall_core").rglob("*.py"))
Functions = ast.FunctionDef | ast.AsyncFunctionDef


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def in_new_interpreter(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def functions(tree: ast.AST) -> Iterator[Functions]:
    return (node for node in ast.walk(tree) if isinstance(node, Functions))


# The surface


def test_the_exported_names_are_sorted():
    def kind_and_name(exported: str) -> tuple[int, str]:  # constants, classes, the rest: the order that ruff keeps
        return (0 if exported.isupper() else 1 if exported[0].isupper() else 2, exported)

    assert list(recall_core.__all__) == sorted(recall_core.__all__, key=kind_and_name)


def test_all_names_what_is_exported():
    for exported in recall_core.__all__:
        getattr(recall_core, exported)  # a lazy name comes into being here
    visible = {found for found in dir(recall_core) if is_own(found)}
    modules = {module for module in visible if isinstance(getattr(recall_core, module), ModuleType)}
    exported_names = {found for found in recall_core.__all__ if not found.startswith("_")}
    assert visible - (modules - exported_names) - {"TYPE_CHECKING"} == exported_names


def is_own(name: str) -> bool:
    """Tell whether a public name of recall_core is more than an import from elsewhere; constants count as own."""
    if name.startswith("_"):
        return False
    value = getattr(recall_core, name)
    return name in recall_core.__all__ or getattr(value, "__module__", "recall_core").startswith("recall_core")


def test_a_lazy_name_is_listed_before_its_first_use(tmp_path):
    code = "import recall_core; print(set(recall_core.__all__) - set(dir(recall_core)))"
    assert in_new_interpreter(code, tmp_path) == "set()"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        recall_core.no_such_name  # noqa: B018


def test_every_exported_name_says_what_it_is():
    for exported in recall_core.__all__:
        value = getattr(recall_core, exported)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{exported} has no docstring"


def test_the_installed_version_is_the_one_it_tells():
    assert importlib.metadata.version("dualrecall") == recall_core.__version__


# Errors


def test_the_drawn_tree_of_errors_is_the_real_one():
    assert drawn_tree(errors.__doc__ or "") == real_tree(errors.RecallError)


def test_every_error_stands_in_the_tree():
    for exported in recall_core.__all__:
        getattr(recall_core, exported)
    assert {error.__module__ for error in subclasses(errors.RecallError)} == {errors.__name__}


def drawn_tree(drawing: str) -> dict[str, tuple[str, ...]]:
    """Return the bases of each error in a drawing, its parent there first."""
    tree: dict[str, tuple[str, ...]] = {}
    parents: list[str] = []
    for branch, error, others in re.findall(r"^([│ ]*[├└]── )?(\w+Error)(?:\(([\w, ]+)\))?(?: |$)", drawing, re.M):
        depth = len(branch) // 4
        parents[depth:] = [error]
        parent = parents[depth - 1] if depth else "Exception"
        tree[error] = (parent, *re.findall(r"\w+", others))
    return tree


def real_tree(base: type) -> dict[str, tuple[str, ...]]:
    """Return the bases of `base` and of each error of recall_core that derives from it."""
    found = [error for error in [base, *subclasses(base)] if error.__module__.startswith("recall_core.")]
    return {error.__name__: tuple(parent.__name__ for parent in error.__bases__) for error in found}


def subclasses(base: type) -> Iterator[type]:
    for child in base.__subclasses__():
        yield child
        yield from subclasses(child)


# What an import costs


def test_importing_recall_core_loads_nothing_heavy(tmp_path):
    code = f"import recall_core, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert in_new_interpreter(code, tmp_path) == "[]"


def test_opening_and_writing_loads_nothing_that_only_searching_needs(tmp_path):
    code = (
        "import sys; from recall_core import Memory; memory = Memory.open(':memory:', embedder=None); "
        "memory.add('docker', id='a'); memory.session('s').append('user', 'hello'); memory.update('a', text='deploy'); "
        "memory.records(); memory.delete('a'); memory.flush(); memory.stats(); "
        "print([name for name in ['numpy', 'onnxruntime', 'tokenizers'] if name in sys.modules])"
    )
    assert in_new_interpreter(code, tmp_path) == "[]"


def test_importing_recall_core_is_quick(tmp_path):
    code = "import time; start = time.process_time(); import recall_core; print(time.process_time() - start)"
    assert min(float(in_new_interpreter(code, tmp_path)) for _ in range(3)) < 0.3  # ten times what it takes


def test_importing_recall_core_says_and_sets_up_nothing(tmp_path):
    code = "import logging, recall_core; print(logging.root.handlers, logging.getLogger('recall_core').handlers)"
    assert in_new_interpreter(code, tmp_path) == "[] []"
    assert list(tmp_path.iterdir()) == []


def test_only_declared_requirements_are_imported():
    requirements = importlib.metadata.requires("dualrecall") or []
    declared = {normalise(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements}
    owners = importlib.metadata.packages_distributions()
    imported = {module: name(path) for path in SOURCES for module in imports(path)}
    foreign = {
        module: path for module, path in imported.items() if module not in {*sys.stdlib_module_names, "recall_core"}
    }
    undeclared = {
        module: path
        for module, path in foreign.items()
        if declared.isdisjoint(normalise(owner) for owner in owners.get(module, [module]))
    }
    assert undeclared == {}


def normalise(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def imports(path: Path) -> Iterator[str]:
    """Return the top-level packages that a file imports by their absolute names."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


# The limits of the house


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_has_at_most_400_lines(path):
    lines = path.read_text("utf-8").count("\n")
    assert lines <= 400


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_function_has_at_most_50_lines(path):
    tree = ast.parse(path.read_text("utf-8"))
    lengths = {function.name: (function.end_lineno or 0) - function.lineno + 1 for function in functions(tree)}
    assert {found: lines for found, lines in lengths.items() if lines > 50} == {}


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_class_has_at_most_12_public_methods(path):
    classes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]
    public = {node.name: {child.name for child in node.body if is_public_method(child)} for node in classes}
    assert {found: len(methods) for found, methods in public.items() if len(methods) > 12} == {}


def is_public_method(node: ast.stmt) -> bool:
    """Tell whether a statement of a class is a method for its users; a property is a value to them."""
    if not isinstance(node, Functions) or node.name.startswith("_"):
        return False
    return not any(isinstance(by, ast.Name) and by.id == "property" for by in node.decorator_list)
