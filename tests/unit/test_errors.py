"""Errors: their words, their exit codes, and that nothing of a library's exception gets into them."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import Any

import pytest

import release_pipeline
from release_pipeline import errors
from release_pipeline.apps.door import Refused
from release_pipeline.errors import (
    DataRefused,
    PolicyInvalid,
    ReleasePipelineError,
    SourceError,
    StoreBusy,
    StoreError,
    WrongUsage,
)
from release_pipeline.store.registry import RegistryChanged

SOURCES = sorted(Path(release_pipeline.__file__).parent.rglob("*.py"))
OURS = {
    kind.__name__ for kind in (*vars(errors).values(), StoreBusy, StoreError, RegistryChanged, Refused) if isinstance(kind, type)
}
OWN_WORDS = {"errno", "strerror", "verify_message", "what", "remedy", "where"}  # hold no data: the system's words and our own


@pytest.mark.parametrize(
    ("kind", "more", "exit_code"),
    [
        (ReleasePipelineError, {}, 1),
        (SourceError, {}, 1),
        (WrongUsage, {}, 2),
        (DataRefused, {"findings": ("column a: 1 record.", "column b: 2 records.")}, 1),
        (PolicyInvalid, {"problems": ("p.yaml:1:1: it is empty.",)}, 1),
    ],
)
def test_every_error_has_an_exit_code(kind: type[ReleasePipelineError], more: dict[str, Any], exit_code: int) -> None:
    """1 for refused or failed, 2 for wrong usage only; findings and problems are kept beside the sentence, not in it."""
    error = kind("it broke.", where="here", remedy="Mend it.", **more)
    assert (error.exit_code, str(error)) == (exit_code, "here: it broke. Mend it.")
    for name, details in more.items():
        assert getattr(error, name) == details
    other = pickle.loads(pickle.dumps(error))  # noqa: S301  as it comes out of another process
    assert (type(other), str(other), other.details, vars(other)) == (kind, str(error), error.details, vars(error))


@pytest.mark.slow
def test_no_text_of_another_exception_gets_into_an_error() -> None:
    """Libraries quote cells in their exceptions: their text is never formatted, and an error of ours is raised `from None`."""
    for file in SOURCES:
        _check_handlers(file)


def _check_handlers(file: Path) -> None:
    handlers = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ExceptHandler))
    for handler in handlers:
        if isinstance(handler.type, ast.Name) and handler.type.id in OURS:
            continue  # it catches an error of ours, whose words are our own
        for node in ast.walk(handler):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                cut = isinstance(node.cause, ast.Constant) and node.cause.value is None
                assert cut, f"{file}:{node.lineno}: raise it from None, or its text is in the traceback"
                for part in (*node.exc.args, *(keyword.value for keyword in node.exc.keywords)):
                    assert not _tells(part, handler.name), f"{file}:{node.lineno}: the text of an exception gets out"
            if isinstance(node, ast.FormattedValue) and _is_text_of(node.value, handler.name):
                pytest.fail(f"{file}:{node.lineno}: the text of an exception is formatted")


def _tells(part: ast.expr, name: str | None) -> bool:
    """Whether `part` uses exception `name` beyond our own and the system's words, its type, and what `_describe` makes of it."""
    own = {id(node.value) for node in ast.walk(part) if isinstance(node, ast.Attribute) and node.attr in OWN_WORDS}
    for node in ast.walk(part):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("type", "_describe"):
            own |= {id(argument) for argument in node.args}
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in own for node in ast.walk(part))


def _is_text_of(value: ast.expr, name: str | None) -> bool:
    """Whether `value` is the exception itself, or str() or repr() of it."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("str", "repr") and value.args:
        value = value.args[0]
    return isinstance(value, ast.Name) and value.id == name
