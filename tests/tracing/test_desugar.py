"""What statements become before exits are made flags: source in, source out."""

import ast
import textwrap

import pytest

from jitgraph.tracing.desugar import desugar

CASES = {
    "nothing to do": (
        "if a and b: x = 1",
        """
        if a and b:
            x = 1
        """,
    ),
    "a binding that is always made": (
        "if (n := f()) > 1: x = n",
        """
        if (n := f()) > 1:
            x = n
        """,
    ),
    "a binding behind `and`": (
        "if a and (n := f()) > 1: x = n",
        """
        _jg_kept1 = a
        if _jg_kept1:
            _jg_kept1 = (n := f()) > 1
        if _jg_kept1:
            x = n
        """,
    ),
    "a binding in a side of a choice, behind another operand": (
        "y = g() + ((n := 1) if a else (n := 2))",
        """
        _jg_kept1 = g()
        if a:
            _jg_kept2 = (n := 1)
        else:
            _jg_kept2 = (n := 2)
        y = _jg_kept1 + _jg_kept2
        """,
    ),
    "a loop whose test binds": (
        """
        while (v := f()) > 0:
            g(v)
        else:
            h()
        """,
        """
        _jg_ended1 = False
        while True:
            if not (v := f()) > 0:
                _jg_ended1 = True
                break
            g(v)
        if _jg_ended1:
            h()
        """,
    ),
    "literals and guards": (
        """
        match x:
            case 1 | 2:
                a = 1
            case n if n > 5:
                a = n
            case _:
                a = 0
        """,
        """
        _jg_subject1 = x
        if _jg_subject1 == 1 or _jg_subject1 == 2:
            a = 1
        else:
            n = _jg_subject1
            _jg_matched2 = n > 5
            if _jg_matched2:
                a = n
            else:
                a = 0
        """,
    ),
    "values inside of structure": (
        """
        match p:
            case (0, y):
                a = y
        """,
        """
        _jg_subject1 = p
        _jg_matched2 = False
        match _jg_subject1:
            case [_jg_part3, y]:
                _jg_matched2 = _jg_part3 == 0
        if _jg_matched2:
            a = y
        """,
    ),
    "a `finally` that leaves": (
        """
        try:
            f()
        finally:
            return 1
        """,
        """
        try:
            _jg_pending1 = None
            f()
        except BaseException as _jg_caught2:
            _jg_pending1 = _jg_caught2
        finally:
            return 1
            if _jg_pending1 is not None:
                raise _jg_pending1
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_desugar(name):
    source, expected = (textwrap.dedent(text).strip() for text in CASES[name])
    made = desugar(ast.parse(source).body)
    assert "\n".join(ast.unparse(s) for s in made) == ast.unparse(ast.parse(expected))
