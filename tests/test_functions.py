"""Every function of the table in docs/functions.md does what the table says: a call of each, compared with NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from jitgraph import errors
from jitgraph.observe import functions as table
from tests.function_samples import CALLS, METHOD_CALLS, polynomial_calls, pool

SUPPORTED = (table.COMPILED, table.INNER_LOOP, table.TRACED, table.HOST, table.AT_TRACE_TIME)
ALL = CALLS | polynomial_calls()


def arguments(call: Callable[..., Any]) -> list[Any]:
    known = pool()
    return [known[name] for name, p in inspect.signature(call).parameters.items() if p.default is p.empty]


def assert_same(got: Any, wanted: Any, where: str) -> None:
    """Same structure, dtypes, shapes, kinds; floats within a few units in the last place."""
    if isinstance(wanted, tuple | list):
        assert type(got) is type(wanted), where
        assert len(got) == len(wanted), where
        for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
            assert_same(a, b, f"{where}[{k}]")
        return
    assert type(got) is type(wanted), f"{where}: {type(got)} for {type(wanted)}"
    a, b = np.asarray(got), np.asarray(wanted)
    assert (a.dtype, a.shape) == (b.dtype, b.shape), where
    if a.dtype.kind in "fc":
        eps = np.finfo(a.dtype).eps
        np.testing.assert_allclose(a, b, rtol=16 * eps, atol=64 * eps, equal_nan=True, err_msg=where)
    else:
        np.testing.assert_array_equal(a, b, err_msg=where)


def check(name: str, calls: tuple[Callable[..., Any], ...]) -> None:
    for k, call in enumerate(calls):
        with np.errstate(all="ignore"):
            wanted = call(*arguments(call))
            got = jg.jit(call)(*arguments(call))
        assert_same(got, wanted, f"call {k} of {name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_function(name: str) -> None:
    check(name, ALL[name])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHOD_CALLS)
def test_method(name: str) -> None:
    check(f"ndarray.{name}", METHOD_CALLS[name])


def test_each_function_has_a_call_or_a_reason() -> None:
    rows = list(table.functions())
    assert [r.name for r in rows if r.how in SUPPORTED and f"np.{r.name}" not in ALL] == []
    assert [r.name for r in rows if r.how == table.NOT_SUPPORTED and not r.why] == []
    rows = list(table.methods())
    assert [r.name for r in rows if r.how in SUPPORTED and r.name not in METHOD_CALLS] == []


def test_the_table_is_up_to_date() -> None:
    text = (Path(__file__).parents[1] / "docs" / "functions.md").read_text()
    assert text == table.table(), "run: python -m jitgraph functions > docs/functions.md"


@pytest.mark.parametrize("name", ["array2string", "array_repr", "may_share_memory", "savetxt"])
def test_refused_functions_say_why(name: str) -> None:
    f = getattr(np, name)
    program = (
        (lambda x: f("out", x)) if name == "savetxt" else (lambda x: f(x, x)) if "share" in name else lambda x: f(x)
    )
    with pytest.raises(errors.TraceError) as info:
        jg.jit(program)(np.ones(3))
    assert "To mend" in str(info.value)
