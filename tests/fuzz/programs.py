"""Random NumPy programs as Python source, with arguments to call them with; a seed gives the same program each time.

Statements are drawn one at a time and tried in NumPy on the arguments: those that NumPy refuses are mostly dropped, so
that shapes fit, and the last one may be kept. Not drawn, because docs/numerics.md promises nothing: float sums over
zero strides, casts of floats to integers out of range.
"""

from __future__ import annotations

import copy
import linecache
import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.strategies import array

_FLOATS = ("float32", "float64")
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_LAYOUTS = ("C", "C", "C", "F", "permuted", "strided", "padded", "negative", "broadcast")
_SIZES = (0, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33)
_SIZE_NAMES = "nmk"
#: No expression or statement may make an array greater than this.
_LARGEST = 20_000

Sizes = dict[str, int]


@dataclass(frozen=True, slots=True)
class Argument:
    """How to make an argument.

    Attributes:
        kind: "array", "scalar" (a NumPy scalar), "int", "float", "bool", "same" (as argument `of`) or "view" (of it).
        axes: names of sizes, or "1".
        view: subscript of a "view".
    """

    kind: str
    dtype: str = "float64"
    axes: tuple[str, ...] = ()
    layout: str = "C"
    seed: int = 0
    special: float = 0.0
    of: int = 0
    view: str = ""


@dataclass(slots=True)
class Fuzzed:
    """A program: `lines` are the body of a function of `arguments`.

    Attributes:
        calls: the sizes of each call.
        exact_sums: False if something of it adds over zero strides.
    """

    seed: int
    arguments: list[Argument]
    lines: list[str]
    calls: list[Sizes]
    returned: str = ""
    exact_sums: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        names = ", ".join(f"a{k}" for k in range(len(self.arguments)))
        body = textwrap.indent("\n".join([*self.lines, f"return {self.returned or 'None'}"]), "    ")
        return f"def program({names}):\n{body}\n"

    def function(self) -> Callable[..., Any]:
        """The compiled Python function; its source is found by `inspect`."""
        return function_of(self.source, f"<fuzz-{self.seed}-{abs(hash(self.source)) % 10**9}>")

    def make(self, call: int) -> list[Any]:
        """Fresh arguments, equal each time."""
        return make_arguments(self.arguments, self.calls[call], call)


def function_of(source: str, filename: str) -> Callable[..., Any]:
    """The function `program` of a source text that tracebacks and `inspect` can find."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, filename, "exec"), space)
    made: Callable[..., Any] = space["program"]
    return made


def make_arguments(arguments: list[Argument], sizes: Sizes, call: int) -> list[Any]:
    made: list[Any] = []
    for a in arguments:
        rng = np.random.default_rng([a.seed, call])
        if a.kind == "array":
            shape = tuple(1 if name == "1" else sizes[name] for name in a.axes)
            layout = a.layout if shape else "C"
            if layout == "broadcast" and 0 in shape:
                layout = "C"
            x = array(rng, np.dtype(a.dtype), layout, shape, (-4.0, 4.0) if a.dtype in _FLOATS else None, a.special)
            if a.dtype in _INTEGERS and a.special == 0:
                x = x if not x.flags.writeable else np.remainder(x, np.asarray(13, a.dtype), out=x)
            made.append(np.asarray(x, np.dtype(a.dtype)))
        elif a.kind == "scalar":
            made.append(np.dtype(a.dtype).type(rng.integers(0, 5) * (1.5 if a.dtype in _FLOATS else 1)))
        elif a.kind == "int":
            made.append(int(rng.integers(-3, 6)))
        elif a.kind == "float":
            made.append(float(rng.choice([0.0, 1.0, -1.5, 0.25, 2.0, 3.75])))
        elif a.kind == "bool":
            made.append(bool(rng.integers(0, 2)))
        elif a.kind == "same":
            made.append(made[a.of])
        else:
            made.append(eval(f"x{a.view}", {"x": made[a.of], "np": np}))
    return made


def zero_strides(x: Any) -> bool:
    return isinstance(x, np.ndarray) and any(s == 0 and d > 1 for s, d in zip(x.strides, x.shape, strict=True))


class Refused(Exception):  # noqa: N818
    """A statement is not to be kept."""


def _sum_guard(name: str, function: Any) -> Any:
    def guarded(x: Any, *args: Any, **kwargs: Any) -> Any:
        if zero_strides(x) and x.dtype.kind == "f":
            raise Refused(name)
        return function(x, *args, **kwargs)

    return guarded


class _Checked:
    """`np` while statements are tried: refuses what is not promised."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        return _sum_guard(name, found) if name in ("sum", "mean", "var", "std") else found


class Generator:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.locals = 0
        self.env: dict[str, Any] = {}
        self.space: dict[str, Any] = {"np": _Checked()}
        self.lines: list[str] = []

    # --- small draws

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def pick(self, *items: Any) -> Any:
        return self.r.choice(items)

    def names(self, wanted: Callable[[Any], bool]) -> list[str]:
        return [name for name, x in self.env.items() if wanted(x)]

    def array_name(self) -> str:
        found = self.names(lambda x: isinstance(x, np.ndarray))
        recent = found[-4:]
        return self.r.choice(recent if self.chance(0.4) else found) if found else "np.arange(4.0)"

    # --- arguments

    def arguments(self) -> list[Argument]:
        r, made = self.r, []
        favourite = self.pick(*_FLOATS, *_FLOATS, *_INTEGERS)
        special = self.pick(0.0, 0.0, 0.1)
        for k in range(r.randint(1, 4)):
            arrays = [j for j, a in enumerate(made) if a.kind == "array" and a.axes]
            if k and arrays and self.chance(0.2):
                of = r.choice(arrays)
                if self.chance(0.3):
                    made.append(Argument("same", of=of))
                else:
                    made.append(
                        Argument(
                            "view", of=of, view=self.pick("[1:]", "[::-1]", "[::2]", ".T", "[:-1]", "[...]", "[None]")
                        )
                    )
            elif k and self.chance(0.3):
                kind = self.pick("int", "float", "float", "scalar", "bool")
                made.append(Argument(kind, self.pick(*_FLOATS, *_INTEGERS), seed=r.randrange(2**31)))
            else:
                ndim = self.pick(0, 1, 1, 1, 2, 2, 2, 2, 3)
                axes = tuple(self.pick("n", "n", "m", "m", "k", "1") for _ in range(ndim))
                dtype = favourite if self.chance(0.7) else self.pick("bool", *_FLOATS, *_INTEGERS)
                made.append(Argument("array", dtype, axes, self.pick(*_LAYOUTS), r.randrange(2**31), special))
        return made

    # --- expressions

    def number(self) -> str:
        scalars = self.names(lambda x: isinstance(x, (int, float, np.generic)))
        if scalars and self.chance(0.5):
            return self.r.choice(scalars)
        return self.pick(
            "0", "1", "2", "3", "-1", "0.5", "2.0", "-1.5", "np.float32(1.5)", "np.int8(3)", "True", "1e3", "7"
        )

    def index(self) -> str:
        """One entry of a subscript."""
        r = self.r
        return self.pick(
            ":", ":", ":", "1:", ":-1", "::2", "::-1", "1:-1", "-2:", ":2", "1::2", "::-2", "-1", "0", "1", "None", "...",
            f"{r.randint(-3, 3)}:{r.randint(-3, 4)}", f"{r.randint(-3, 3)}:{r.randint(-3, 3)}:{self.pick(-1, -2, 2, 3)}",
        )  # fmt: skip

    def subscript(self, ndim: int = 2) -> str:
        return ", ".join(self.index() for _ in range(self.r.randint(1, max(ndim, 1))))

    def axis(self, ndim: int) -> str:
        if ndim == 0 or self.chance(0.3):
            return self.pick("None", "None", "0", "-1")
        if ndim > 1 and self.chance(0.15):
            return self.pick("(0, 1)", "(1, 0)", "(0, -1)")
        return str(self.r.randint(-ndim, ndim - 1))

    def expression(self, depth: int = 2) -> str:
        r = self.r
        if depth <= 0 or self.chance(0.12):
            if self.chance(0.25):
                return self.number()
            name = self.array_name()
            return name if self.chance(0.7) else f"{name}[{self.subscript()}]"
        e = lambda: self.expression(depth - 1)
        kind = r.random()
        if kind < 0.30:
            op = self.pick(
                "+",
                "-",
                "*",
                "+",
                "-",
                "*",
                "/",
                "//",
                "%",
                "<",
                ">",
                "<=",
                ">=",
                "==",
                "!=",
                "&",
                "|",
                "^",
                "<<",
                ">>",
                "**",
            )
            if op == "**":
                return f"({e()} ** {self.pick('2', '3', '0.5', '-1', '1', '0', '2.0', '-2')})"
            if op in ("<<", ">>"):
                return f"({e()} {op} {self.pick('1', '2', '3', e())})"
            return f"({e()} {op} {e()})"
        if kind < 0.42:
            f = self.pick(
                "abs", "negative", "sign", "square", "sqrt", "exp", "log", "sin", "cos", "tanh", "floor", "ceil", "rint", "trunc", "isnan",
                "isfinite", "signbit", "logical_not", "reciprocal", "log1p", "expm1", "invert", "positive", "isinf", "exp2", "log2", "arctan",
            )  # fmt: skip
            return f"np.{f}({e()})"
        if kind < 0.50:
            f = self.pick(
                "maximum", "minimum", "fmax", "fmin", "copysign", "arctan2", "logical_and", "logical_or", "logical_xor", "floor_divide",
                "remainder", "fmod", "add", "multiply", "subtract", "power", "hypot", "greater",
            )  # fmt: skip
            return f"np.{f}({e()}, {e()})"
        if kind < 0.64:
            x = e()
            axis = self.axis(self.ndim_of(x))
            keep = self.pick("", "", "", ", keepdims=True")
            f = self.pick(
                "sum",
                "sum",
                "sum",
                "mean",
                "max",
                "min",
                "prod",
                "any",
                "all",
                "var",
                "std",
                "argmax",
                "argmin",
                "cumsum",
                "cumprod",
            )
            if f in ("argmax", "argmin", "cumsum", "cumprod"):
                axis = axis if not axis.startswith("(") else "0"
                return f"np.{f}({x}, axis={axis})"
            return f"np.{f}({x}, axis={axis}{keep})"
        if kind < 0.80:
            return self.movement(e())
        if kind < 0.86:
            return self.pick(
                lambda: f"np.where({e()} > {e()}, {e()}, {e()})",
                lambda: f"np.clip({e()}, -1, 2)",
                lambda: f"np.clip({e()}, {e()}, 3)",
            )()
        if kind < 0.90:
            x = e()
            if self.dtype_kind(x) == "f":
                return f"({x}).astype({self.pick('np.float32', 'np.float64', 'bool')})"
            return f"np.asarray({x}).astype({self.pick('np.float32', 'np.float64', 'np.int16', 'np.uint8', 'np.int64', 'bool')})"
        if kind < 0.95:
            name = self.array_name()
            return self.pick(
                f"{name}[{name} > {self.number()}]", f"{name}[np.array([0, 1, -1])]", f"np.take({name}, np.array([[0, 1], [1, 0]]), axis=0)",
                f"{name}[{self.array_name()} > 0]", f"{name}[[1, 0]]", f"np.flatnonzero({name})", f"np.nonzero({name})[0] + 0",
                f"{name}[..., np.array([1, 0])]",
            )  # fmt: skip
        if kind < 0.98:
            name = self.array_name()
            return self.pick(
                f"len({name})",
                f"{name}.size",
                f"{name}.shape[0]",
                f"{name}.ndim",
                f"float(np.max({name}))",
                f"abs({e()})",
            )
        return f"({e()} @ {e()})"

    def movement(self, x: str) -> str:
        name = self.array_name()
        return self.pick(
            f"np.transpose({x})", f"np.asarray({x}).T", f"np.reshape({x}, -1)", f"np.ravel({x})", f"np.expand_dims({x}, 0)", f"np.flip({x})",
            f"np.flip({x}, 0)", f"np.broadcast_to({x}, {name}.shape)", f"np.concatenate([{x}, {name}])", f"np.stack([{x}, {name}])",
            f"np.concatenate(({name}, {x}), axis=-1)", f"np.squeeze({x})", f"np.reshape({x}, {name}.shape)", f"np.swapaxes({x}, 0, -1)",
            f"np.copy({x})", f"np.asarray({x}).copy()", f"np.zeros_like({x})", f"np.ones({name}.shape)", f"np.reshape({x}, (-1, 2))", f"np.full({name}.shape, {x})",
            f"np.arange({name}.shape[0])", f"np.roll({x}, 1)", f"np.atleast_2d({x})", f"np.moveaxis({x}, 0, -1)", f"np.repeat({x}, 2)",
            f"np.diff({x})", f"np.outer({x}, {name})", f"np.tile({x}, 2)", f"np.ones_like({x})", f"np.diagonal({x})", f"np.trace({x})",
            f"np.linspace(0, 1, {name}.shape[0])", f"np.asarray({x})[..., None]", f"np.asarray({x})[{self.subscript()}]",
        )  # fmt: skip

    def _value(self, text: str) -> Any:
        try:
            with np.errstate(all="ignore"):
                return eval(text, self.space, copy.copy(self.env))
        except Exception:  # noqa: BLE001 - any failure of a tried expression
            return None

    def ndim_of(self, text: str) -> int:
        return int(np.ndim(self._value(text)))

    def dtype_kind(self, text: str) -> str:
        value = self._value(text)
        return np.asarray(value).dtype.kind if value is not None else "f"

    # --- statements

    def fresh(self) -> str:
        self.locals += 1
        return f"v{self.locals}"

    def target_name(self) -> str:
        """What an assignment binds: mostly a new name."""
        bound = [name for name in self.env if name.startswith("v")]
        return self.r.choice(bound) if bound and self.chance(0.25) else self.fresh()

    def place(self) -> tuple[str, bool]:
        """What is written into, and whether it holds integers."""
        name = self.array_name()
        integer = name in self.env and self.env[name].dtype.kind in "iub"
        where = self.pick(
            f"[{self.subscript()}]", f"[{self.subscript()}]", f"[{self.subscript()}]", "[...]", "[:]", f"[{name} > {self.number()}]",
            "[np.array([0, 1, 1])]", "[-1]", "[0]", "[[0, -1]]",
        )  # fmt: skip
        if self.chance(0.15):
            where = self.pick(".T", "[::-1]", "[1:]") + where
        return name + where, integer

    def value_for(self, integer: bool) -> str:
        """What may be written; no floats into integers."""
        for _ in range(6):
            text = self.expression(self.r.randint(0, 2))
            if not integer or self.dtype_kind(text) in "iub":
                return text
        return "1"

    def simple(self) -> str:
        kind = self.r.random()
        if kind < 0.55:
            return f"{self.target_name()} = {self.expression(self.r.randint(1, 3))}"
        if kind < 0.72:
            place, integer = self.place()
            return f"{place} = {self.value_for(integer)}"
        if kind < 0.86:
            place, integer = self.place()
            return f"{place} {self.pick('+=', '-=', '*=', '+=')} {self.value_for(integer)}"
        if kind < 0.95:
            name = self.array_name()
            integer = name in self.env and self.env[name].dtype.kind in "iub"
            return f"{name} {self.pick('+=', '*=', '-=', '/=' if not integer else '+=')} {self.value_for(integer)}"
        name = self.array_name()
        integer = name in self.env and self.env[name].dtype.kind in "iub"
        f = self.pick("add", "multiply", "subtract", "maximum")
        return f"np.{f}({self.value_for(integer)}, {self.value_for(integer)}, out={name})"

    def block(self, count: int) -> list[str]:
        """Lines of a region, each tried once on a copy of what is known."""
        keep = self.env
        self.env = copy.deepcopy(self.env)
        lines = []
        for _ in range(count * 6):
            if len(lines) == count:
                break
            line = self.simple()
            if self.try_line(line):
                lines.append(line)
        self.env = keep
        return lines

    def compound(self) -> str:
        kind = self.r.random()
        if kind < 0.5:
            name = self.array_name()
            bound = self.pick(
                f"{name}.shape[0]",
                f"{name}.shape[0] - 1",
                "3",
                "10",
                f"1, {name}.shape[0]",
                "12",
                f"len({name}) - 1, 0, -1",
            )
            outer = self.env.get("i")
            start = f"{self.fresh()} = {self.pick('0', '0.0', '1', self.expression(1))}\n" if self.chance(0.6) else ""
            if start and not self.try_line(start.strip()):
                return ""
            self.env["i"] = 1
            lines = self.block(self.r.randint(1, 3))
            if self.chance(0.6):
                lines.append(
                    self.pick(
                        f"v{self.locals} = v{self.locals} + {name}[i]" if start else "pass",
                        f"{name}[i] = {name}[i - 1]",
                        f"{name}[i] *= 2",
                    )
                )
            self.env.pop("i")
            if outer is not None:
                self.env["i"] = outer
            return start + f"for i in range({bound}):\n" + textwrap.indent("\n".join(lines or ["pass"]), "    ")
        if kind < 0.85:
            condition = self.pick(
                f"np.sum({self.array_name()}) > 0",
                f"{self.number()} > {self.number()}",
                f"np.any({self.array_name()})",
                f"np.max({self.array_name()}) > 1",
            )
            text = f"if {condition}:\n" + textwrap.indent(
                "\n".join(self.block(self.r.randint(1, 2)) or ["pass"]), "    "
            )
            if self.chance(0.6):
                text += "\nelse:\n" + textwrap.indent("\n".join(self.block(self.r.randint(1, 2)) or ["pass"]), "    ")
            return text
        name, counter = self.array_name(), self.fresh()
        lines = [*self.block(self.r.randint(1, 2)), f"{counter} += 1"]
        return (
            f"{counter} = 0\nwhile {counter} < {self.pick('3', '5', f'{name}.shape[0]')} and np.sum({name}) < 1e6:\n"
            + textwrap.indent("\n".join(lines), "    ")
        )

    def try_line(self, text: str) -> bool:
        """Run a statement; False if NumPy refuses it or its values are too large to go on."""
        try:
            with np.errstate(all="ignore"):
                exec(text, self.space, self.env)
        except Exception:  # noqa: BLE001 - any failure of a tried statement
            return False
        for name, x in list(self.env.items()):
            if (
                np.size(x) > _LARGEST
                or (isinstance(x, int) and abs(x) > 2**62)
                or (isinstance(x, np.ndarray) and x.dtype.kind not in "biuf")
            ):
                del self.env[name]
                return False
        return True

    def program(self) -> Fuzzed:
        r = self.r
        arguments = self.arguments()
        used = sorted({name for a in arguments for name in a.axes if name != "1"})
        calls = [{name: r.choice(_SIZES[1:]) for name in used}]
        calls.append(calls[0])
        for _ in range(2):
            calls.append({name: r.choice(_SIZES) if self.chance(0.9) else 1 for name in used})
        if self.chance(0.5):
            calls[0] = calls[1] = dict.fromkeys(used, r.choice(_SIZES[1:]))
            calls[2] = dict.fromkeys(used, r.choice(_SIZES))
        self.env = {f"a{k}": x for k, x in enumerate(make_arguments(arguments, calls[0], 0))}
        lines: list[str] = []
        wanted = r.randint(1, 8)
        for _ in range(wanted * 8):
            if len(lines) >= wanted:
                break
            before = {name: (x.copy() if isinstance(x, np.ndarray) else x) for name, x in self.env.items()}
            text = self.compound() if self.chance(0.12) else self.simple()
            if not text:
                continue
            if self.try_line(text):
                lines += text.split("\n")
            elif len(lines) > 2 and self.chance(0.004):
                lines += text.split("\n")  # an error to compare
                break
            else:
                for name in [name for name in self.env if name not in before]:
                    del self.env[name]
                for name, x in before.items():  # a failed statement may have written
                    now = self.env.get(name)
                    if (
                        isinstance(x, np.ndarray)
                        and isinstance(now, np.ndarray)
                        and now.shape == x.shape
                        and now.flags.writeable
                    ):
                        now[...] = x
                    else:
                        self.env[name] = x
        found = [name for name in self.env if name.startswith("v")]
        shown = r.sample(found, min(len(found), r.randint(1, 4)))
        if self.chance(0.3):
            shown.append("a0")
        if self.chance(0.3):
            shown.append(f"a0[{self.subscript()}]")
            try:
                eval(shown[-1], self.space, self.env)
            except Exception:  # noqa: BLE001
                shown.pop()
        returned = ", ".join(shown) + ("," if len(shown) == 1 and self.chance(0.5) else "")
        return Fuzzed(self.seed, arguments, lines, calls, returned)


def draw(seed: int) -> Fuzzed:
    """The program of a seed."""
    return Generator(seed).program()
