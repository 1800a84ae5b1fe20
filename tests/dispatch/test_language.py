"""The small language of the dispatcher, on programs of its own, through machine code."""

from __future__ import annotations

import ctypes
import importlib.util
import struct
import sys
import textwrap

import pytest

from jitgraph.errors import InternalError
from jitgraph.native.language import compile_functions
from jitgraph.runtime import engine, linking

HEAD = "from jitgraph.native.language import *\nfrom enum import IntEnum\nclass R(IntEnum):\n    A = 1\n    B = 2\nTEN = 10\n"


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """A function from source, whose functions all have one parameter more than they use, to callables of ints."""

    def make(source: str, table=None, offsets=None):
        name = f"program_{len(list(tmp_path.iterdir()))}"
        path = tmp_path / f"{name}.py"
        path.write_text(HEAD + textwrap.dedent(source))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        text = compile_functions([module], offsets or {}, table or {})
        code = engine.compile_object(text, verify=True, opt=1, passes=("always_inliner", "sroa", "simplify_cfg"))
        address = linking.load(code, ("main",))["main"]
        return lambda *given: ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(given))(address)(*given)

    return make


def test_arithmetic_and_control_flow(compiled):
    f = compiled("""
        @exported
        def main(n: int, m: int) -> int:
            total = 0
            k = 0
            while True:
                k += 1
                if k > n:
                    break
                if k % 2 == 0 and not (k == 4 or k == 6):
                    continue
                total += square(k) * R.B - (m if k < 3 else -m)
            return total + TEN
        @inlined
        def square(x: int) -> int:
            return x * x
    """)

    def wanted(n, m):
        ks = [k for k in range(1, n + 1) if not (k % 2 == 0 and k not in (4, 6))]
        return sum(k * k * 2 - (m if k < 3 else -m) for k in ks) + 10

    assert [f(n, 3) for n in range(9)] == [wanted(n, 3) for n in range(9)]


def test_operators_are_those_of_machine_integers(compiled):
    f = compiled("""
        @exported
        def main(x: int, y: int) -> int:
            bits = ((x & y) | (x ^ 3)) << 2
            return bits + (x >> 1) + x // y + x % y + (x < y) + (x == y) * 100 - (x >= 0 and y >= 0)
    """)
    for x, y in ((7, 2), (-7, 2), (5, 5), (-9, -4)):
        q = int(x / y)
        bits = ((x & y) | (x ^ 3)) << 2
        assert f(x, y) == bits + (x >> 1) + q + (x - q * y) + (x < y) + (x == y) * 100 - (x >= 0 and y >= 0)


def test_memory_and_the_stack_of_a_call(compiled):
    f = compiled("""
        @exported
        def main(p: int) -> int:
            mine = stack(3)
            k = 0
            while k < 3:
                set_word(mine, k, word(p, k))
                k += 1
            store(p, load32(p + 8) + load8(p + 16))
            set_word(p, R.A, word(mine, 2))
            return word(mine, 0)
    """)
    memory = ctypes.create_string_buffer(struct.pack("<qiiq", 11, -5, 99, 0x1FF), 24)
    assert f(ctypes.addressof(memory)) == 11
    assert struct.unpack("<qqq", memory.raw) == (-5 + 0xFF, 0x1FF, 0x1FF)


def test_functions_of_c_are_called_through_the_table(compiled):
    make = ctypes.cast(ctypes.pythonapi.PyFloat_FromDouble, ctypes.c_void_p).value
    free = ctypes.cast(ctypes.pythonapi.Py_DecRef, ctypes.c_void_p).value
    words = (ctypes.c_int64 * 3)(make, free, 42)
    f = compiled(
        """
        @exported
        def main(rt: int, p: int) -> int:
            x = c.PyFloat_FromDouble(p)
            value = load(x + layout.value)
            c.Py_DecRef(x)
            return value + the.number - invoke32(the.answer, 0)
        """,
        {"PyFloat_FromDouble": 0, "Py_DecRef": 1, "number": 2, "answer": 3},
        {"value": object.__basicsize__},
    )
    answer = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(lambda _: -8)
    table = (ctypes.c_int64 * 4)(*words, ctypes.cast(answer, ctypes.c_void_p).value)
    number = ctypes.c_double(2.5)
    bits = struct.unpack("<q", struct.pack("<d", 2.5))[0]
    assert f(ctypes.addressof(table), ctypes.addressof(number)) == bits + 42 + 8


@pytest.mark.parametrize(
    "line", ["for k in range(3): pass", "return x.y()", "return unknown", "x, y = 1, 2", "return [x]"]
)
def test_what_is_not_of_the_language_is_refused(compiled, line):
    with pytest.raises((InternalError, KeyError), match=r"not of the language|x"):
        compiled(f"def main(x: int) -> int:\n    {line}\n")
