"""Random NumPy programs as Python source, with arguments to call them with; a seed gives the same program each time.

Statements are drawn from `grammar.GRAMMAR` one at a time and tried in NumPy on the arguments of the first call: those that
NumPy refuses are mostly dropped, so that shapes fit; the last one may be kept, as an error to compare. Not drawn, because
docs/numerics.md promises nothing: casts of floats to integers out of range.
"""

from __future__ import annotations

import hashlib
import linecache
import random
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fuzz.accidents import Refused, watched, watchers
from tests.fuzz.arguments import FLOATS, INTEGERS, LAYOUTS, SIZE_NAMES, SIZES, Argument, Sizes, fits, make_arguments
from tests.fuzz.containers import Reached, array_paths, container_paths, copied, is_bounded, is_deep, parts, slots
from tests.fuzz.grammar import (
    CLASSES,
    CONTAINERS,
    CONTAINERS_FROM,
    DEFAULT_FEATURES,
    EXITS_FROM,
    GRAMMAR,
    HELPERS,
    MORE,
    PRODUCTS_FROM,
)
from tests.fuzz.guards import Guarded

#: No expression or statement may make an array greater than this.
_LARGEST = 2_500
_HOLE = re.compile(r"<([a-z]\w*)>")
#: While statements are tried, a `return` is an assignment: what comes behind it is tried, too.
_RETURN = re.compile(r"(?m)^( *)return ")
#: What `CLASSES` define.
_NEEDS_CLASSES = re.compile(r"\b(Pair|Point|Box|swapped|bump)\(")
#: Dtypes from narrow to wide; what is written into a place may not be wider in kind.
_KINDS = "biufc"


@dataclass(slots=True)
class Fuzzed:
    """A program: `lines` are the body of a function of `arguments`.

    Attributes:
        calls: the sizes of each call.
    """

    seed: int
    arguments: list[Argument]
    lines: list[str]
    calls: list[Sizes]
    returned: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        names = ", ".join(f"a{k}" for k in range(len(self.arguments)))
        body = textwrap.indent("\n".join([*self.lines, f"return {self.returned or 'None'}"]), "    ")
        helpers = CLASSES + "\n\n" if _NEEDS_CLASSES.search(body) else ""
        helpers += HELPERS + "\n\n" if "helper(" in body or "update(" in body else ""
        return f"{helpers}def program({names}):\n{body}\n"

    def function(self) -> Callable[..., Any]:
        """The compiled Python function; its source is found by `inspect`."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:8]
        return function_of(self.source, f"<fuzz-{self.seed}-{digest}>")

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


class Generator:
    """Draws one program."""

    def __init__(self, seed: int, features: frozenset[str] = DEFAULT_FEATURES) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.features = features
        self.locals = 0
        self.env: dict[str, Any] = {}
        self.space: dict[str, Any] = {"np": Guarded(features), "watchers": watchers(features)}
        exec(watched(HELPERS), self.space)
        self.containers = "containers" in features
        if self.containers:
            exec(watched(CLASSES), self.space)
        self.depth = 2
        self.depth_of_blocks = 0
        #: The array written by the statement being drawn, its dtype, and the expression drawn last.
        self.own, self.kind, self.last = "", "c", "0"
        #: In a block of a loop no name may grow from turn to turn.
        self.in_loop = 0
        self.exits = "exits" in features
        #: How many values each `return` gives; whether there is one before the last.
        self.returned_count, self.returns = self.r.choice((1, 1, 2)) if self.exits else 0, False
        floats = [*FLOATS, *(["float16"] if "float16" in features else [])]
        self.dtypes = {np.dtype(d) for d in (*floats, *INTEGERS, "bool")}
        if "complex" in features:
            self.dtypes |= {np.dtype(np.complex64), np.dtype(np.complex128)}

    # --- filling holes

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def pick(self, *items: Any) -> Any:
        return self.r.choice(items)

    def fill(self, text: str) -> str:
        """The text with every hole filled, from left to right."""
        return _HOLE.sub(lambda hole: self.draw(hole.group(1)), text)

    def draw(self, name: str) -> str:
        method = getattr(self, f"draw_{name}", None)
        if method is not None:
            return str(method())
        alternatives = GRAMMAR.get(name, ()) + (MORE.get(name, ()) if self.exits else ())
        if self.containers and (name not in ("statement", "test") or self.chance(0.6)):
            alternatives = CONTAINERS.get(name, alternatives)
        return self.fill(self.r.choices([t for _, t in alternatives], [w for w, _ in alternatives])[0])

    def draw_e(self) -> str:
        """An expression that NumPy takes, of a dtype that is drawn at all."""
        if self.depth <= 0 or self.chance(0.12):
            self.last = self.leaf()
            return self.last
        self.depth -= 1
        try:
            for _ in range(4):
                text = self.draw("expression")
                if self.value(text) is not None:
                    break
            else:
                text = self.leaf()
        finally:
            self.depth += 1
        self.last = text
        return text

    def leaf(self) -> str:
        if self.chance(0.25):
            return self.draw("n")
        scalars = [
            n for n, x in self.env.items() if n[0] in "avi" and isinstance(x, int | float | complex | np.generic)
        ]
        if scalars and self.chance(0.25):
            return str(self.r.choice(scalars))
        name = self.draw_a()
        text = name if self.chance(0.7) else f"{name}[{self.draw('subscript')}]"
        return text if self.value(text) is not None else name

    def draw_e3(self) -> str:
        self.depth = self.r.randint(1, 3)
        text = self.draw_e()
        self.depth = 2
        return text

    def draw_a(self) -> str:
        """The name of an array."""
        found = [name for name, x in self.env.items() if isinstance(x, np.ndarray)]
        if self.containers and self.chance(0.5):
            found = array_paths(self.env) or found
        recent = found[-4:]
        return str(self.r.choice(recent if self.chance(0.4) else found)) if found else "np.arange(4.0)"

    def draw_c(self) -> str:
        """A container: a name, or a place in another one."""
        found = container_paths(self.env)
        return str(self.r.choice(found)) if found else "no_container"

    def draw_slot(self) -> str:
        """A place in a list, dict or object."""
        found = slots(self.env)
        return str(self.r.choice(found)) if found else "no_container.x"

    def draw_bound(self) -> str:
        """What an assignment binds to a container: often a name that has one."""
        bound = [name for name in self.env if name.startswith("c")]
        if bound and self.chance(0.6):
            return str(self.r.choice(bound))
        self.locals += 1
        return f"c{self.locals}"

    def draw_subscript(self) -> str:
        return ", ".join(self.draw("entry") for _ in range(self.pick(1, 1, 2, 2, 3)))

    def draw_axis(self) -> str:
        ndim = np.ndim(self.value(self.last))
        if ndim == 0 or self.chance(0.3):
            return str(self.pick("None", "None", "0", "-1"))
        if ndim > 1 and self.chance(0.15):
            return str(self.pick("(0, 1)", "(1, 0)", "(0, -1)", "(-1,)", "()"))
        return str(self.r.randint(-ndim, ndim - 1))

    def draw_one_axis(self) -> str:
        ndim = np.ndim(self.value(self.last))
        return str(self.r.randint(-ndim, ndim - 1)) if ndim and self.chance(0.85) else "None"

    def draw_astype(self) -> str:
        text = self.draw_e()
        value = self.value(text)
        kind = np.asarray(value).dtype.kind if value is not None else "f"
        if kind == "c":
            return f"np.asarray({text}).astype({self.pick('np.complex64', 'np.complex128')})"
        names = ["np.float32", "np.float64", "bool", "float"]
        if kind != "f":
            names += ["np.int16", "np.uint8", "np.int64", "np.uint32", "int"]
        return f"np.asarray({text}).astype({self.r.choice(names)})"

    def at(self, path: str) -> Any:
        """What a name or a place in a container holds."""
        if path.isidentifier():
            return self.env.get(path)
        return eval(path, self.space, self.env) if self.containers else None

    # --- what is written

    def draw_own(self) -> str:
        """An array to write into; `<fit>` fits it from here on."""
        self.own = self.draw_a()
        x = self.at(self.own)
        self.kind = x.dtype.kind if isinstance(x, np.ndarray) else "c"
        return self.own

    def draw_writable(self) -> str:
        """As `draw_own`, but no read-only array: `ufunc.at` and `copyto` do not always refuse those in NumPy."""
        for _ in range(4):
            x = self.at(self.draw_own())
            if isinstance(x, np.ndarray) and x.flags.writeable:
                return self.own
        self.own, self.kind = "np.zeros(4)", "f"
        return self.own

    def draw_own2(self) -> str:
        """That array again, or another one of the same kind."""
        same = [n for n, x in self.env.items() if isinstance(x, np.ndarray) and x.dtype.kind == self.kind]
        return str(self.r.choice(same)) if same and self.chance(0.3) else self.own

    def draw_fit_own(self) -> str:
        """An expression that fits an array, chosen here, to be written with `<own2>`."""
        self.draw_own()
        return self.draw_fit()

    def draw_place(self) -> str:
        name = self.draw_own()
        where = self.fill(f"[{name} > <n>]") if self.chance(0.08) else self.draw("where_written")
        if self.chance(0.25):
            where = self.draw("view") + where
        return name + where

    def draw_fit(self) -> str:
        """What may be written into the array drawn last: no floats into integers."""
        for _ in range(6):
            self.depth = self.r.randint(0, 2)
            text = self.draw_e()
            self.depth = 2
            value = self.value(text)
            if value is not None and _KINDS.index(np.asarray(value).dtype.kind) <= _KINDS.index(self.kind):
                return text
        return "1"

    def draw_fit_scalar(self) -> str:
        for _ in range(6):
            text = self.draw("n")
            if _KINDS.index(np.asarray(self.value(text)).dtype.kind) <= _KINDS.index(self.kind):
                return text
        return "True"

    def draw_more_augment(self) -> str:
        if self.kind in "iu":
            return str(self.pick("//=", "%=", "&=", "|=", "^="))
        return str(self.pick("|=", "&=", "^=")) if self.kind == "b" else str(self.pick("/=", "**="))

    def draw_fresh_like(self) -> str:
        return f"np.zeros({self.draw_a()}.shape)"

    def draw_target(self) -> str:
        """What an assignment binds: mostly a new name."""
        bound = [name for name in self.env if name.startswith("v")]
        if bound and self.chance(0.25):
            return str(self.r.choice(bound))
        self.locals += 1
        return f"v{self.locals}"

    # --- trying

    def value(self, text: str) -> Any:
        """What an expression gives, None if NumPy refuses it or it is not to be drawn."""
        try:
            with np.errstate(all="ignore"):
                value = eval(text, self.space, self.env)
        except Exception:  # noqa: BLE001 - any failure of a tried expression
            return None
        return value if self.is_drawn(value) else None

    def is_drawn(self, x: Any) -> bool:
        if isinstance(x, list | tuple):
            return all(self.is_drawn(i) for i in x)
        if isinstance(x, dict):
            return all(self.is_drawn(i) for i in x.values())
        if self.containers and isinstance(x, tuple(self.space[name] for name in ("Point", "Box"))):
            return all(self.is_drawn(i) for i in vars(x).values())
        if isinstance(x, int) and abs(x) > 2**62:
            return False
        if isinstance(x, np.ndarray | np.generic):
            native = x.dtype.newbyteorder("=")
            return native in self.dtypes and x.size <= _LARGEST and x.ndim <= 6
        return isinstance(x, int | float | complex)

    def try_statement(self, text: str) -> bool:
        """Run a statement; False, and everything as before, if NumPy refuses it or it is not to be drawn."""
        before = Reached(self.env)
        try:
            with np.errstate(all="ignore"):
                exec(watched(_RETURN.sub(r"\1returned_ = ", text)), self.space, self.env)
            self.env.pop("returned_", None)
        except Exception:  # noqa: BLE001 - any failure of a tried statement
            before.restore(self.env)
            return False
        changed = [x for name, x in self.env.items() if name.startswith(("v", "a", "c"))]
        fine = (not self.containers or not is_deep(changed)) and all(map(self.is_drawn, changed))
        if fine and self.in_loop:
            fine = all(_size(self.env[n]) <= _size(x) for n, x in before.names.items() if is_bounded(x))
        if not fine:
            before.restore(self.env)
        return fine

    # --- statements of several lines

    def block(self, count: int, extra: str = "") -> str:
        """Indented lines of a region, each tried once on a copy of what is known."""
        keep = self.env
        self.env = copied(keep)
        lines: list[str] = []
        for _ in range(count * 6):
            if len(lines) >= count:
                break
            deeper = self.chance(0.15 if self.exits and self.depth_of_blocks < 3 else 0.06)
            self.depth_of_blocks += 1
            text = self.compound() if deeper else self.draw("in_loop" if extra and self.chance(0.3) else "statement")
            self.depth_of_blocks -= 1
            if text and self.try_statement(text):
                lines += text.split("\n")
        self.env = keep
        return textwrap.indent("\n".join(lines or ["pass"]), "    ")

    def compound(self) -> str:
        if self.containers:
            before = Reached(self.env)
            kinds = (*_COMPOUND, Generator.container_loop, Generator.appending_loop)
            text = str(self.r.choices(kinds, (*_COMPOUND_WEIGHTS, 12, 12))[0](self))
            before.restore(self.env)  # of what was tried first; the whole is tried next
            return text
        return str(self.r.choices(_COMPOUND, _COMPOUND_WEIGHTS)[0](self))

    def range_loop(self) -> str:
        name, bound = self.draw_a(), self.draw("range")
        start = ""
        if self.chance(0.6):
            start = f"{self.draw_target()} = {self.pick('0', '0.0', '1', self.draw_e())}\n"
            if not self.try_statement(start.strip()):
                return ""
        lines = self._loop_block({"i": 1})
        if start and self.chance(0.4):
            total = start.split(" ", maxsplit=1)[0]
            lines += f"\n    {total} = {total} + {name}[i]"
        return start + f"for i in range({bound}):\n{lines}{self._exit()}{self._otherwise()}"

    def _loop_block(self, bound: dict[str, Any]) -> str:
        outer = {name: self.env[name] for name in bound if name in self.env}
        self.env.update(bound)
        self.in_loop += 1
        lines = self.block(self.r.randint(1, 3), "i" if "i" in bound else "")
        self.in_loop -= 1
        for name in bound:
            del self.env[name]
        self.env.update(outer)
        return lines

    def _otherwise(self) -> str:
        """Perhaps the `else` of a loop."""
        return self.fill("\nelse:\n    <statement>") if self.exits and self.chance(0.2) else ""

    def _exit(self) -> str:
        """Perhaps a way out of a loop."""
        if self.chance(0.6 if self.exits else 0.75):
            return ""
        if self.exits and self.chance(0.25):
            return f"\n    if {self.draw('test')}:\n        {self._return()}"
        return self.fill(
            self.pick("\n    if <test>:\n        break", "\n    if <test>:\n        continue\n    <statement>")
        )

    def array_loop(self) -> str:
        name, other = self.draw_a(), self.draw_a()
        x, y = self.at(name), self.at(other)
        if (
            not isinstance(x, np.ndarray)
            or not isinstance(y, np.ndarray)
            or not x.shape
            or not y.shape
            or not len(x)
            or not len(y)
        ):
            return ""
        head, bound = self.pick(
            (f"for r in {name}:", {"r": x[0]}),
            (f"for i, r in enumerate({name}):", {"i": 0, "r": x[0]}),
            (f"for r, q in zip({name}, {other}):", {"r": x[0], "q": y[0]}),
            (f"for r in {name}[::-1]:", {"r": x[0]}),
        )
        start = f"{self.draw_target()} = {self.pick('0', '0.0')}\n"
        if not self.try_statement(start.strip()):
            return ""
        total = start.split(" ", maxsplit=1)[0]
        lines = self._loop_block(bound)
        return f"{start}{head}\n{lines}\n    {total} = {total} + {self.pick('r', 'np.sum(r)', 'r * 2')}{self._exit()}{self._otherwise()}"

    def container_loop(self) -> str:
        """Over the items of a container."""
        name = self.draw_c()
        x = self.at(name)
        inner = parts(x)
        if not inner or not isinstance(x, list | tuple | dict):
            return ""
        if isinstance(x, dict):
            return f"for k, r in {name}.items():\n{self._loop_block({'k': 'x', 'r': inner[0]})}"
        return f"for r in {name}:\n{self._loop_block({'r': inner[0]})}"

    def appending_loop(self) -> str:
        """A list that a loop fills, and what is made of it."""
        self.locals += 1
        name, over = f"c{self.locals}", self.draw_a()
        x = self.at(over)
        if not isinstance(x, np.ndarray) or not x.shape or not len(x):
            return ""
        item = self.pick("{0}[i] * 2", "np.sum({0}[i])", "{0}[i:i + 1]", "{0}[i]", "({0}[i], i)").format(over)
        lines = self._loop_block({"i": 0})
        count = self.pick("3", f"len({over})", f"{over}.shape[0] - 1")
        made = f"v{self.locals}"
        after = self.pick("", f"\n{made} = np.array({name})", f"\n{made} = sum({name}, 0.0)", f"\n{name}.reverse()")
        return f"{name} = []\nfor i in range({count}):\n{lines}\n    {name}.append({item}){after}"

    def while_loop(self) -> str:
        name, self.locals = self.draw_a(), self.locals + 1
        counter = f"w{self.locals}"  # no name that statements assign
        lines = self._loop_block({counter: 1})
        more = self.pick(f" and np.sum({name}) < 1e6", "", f" and not np.any({name} > 50)")
        bound = self.pick("3", "5", f"{name}.shape[0]")
        if self.exits:
            counted = f"{counter} = 0\nwhile {counter} < {bound}{more}:\n    {counter} += 1\n{lines}"
            return counted + self._exit() + self._otherwise()
        return f"{counter} = 0\nwhile {counter} < {bound}{more}:\n{lines}\n    {counter} += 1"

    def branch(self) -> str:
        text = f"if {self.draw('test')}:\n{self.block(self.r.randint(1, 2))}"
        if self.chance(0.15):
            text += f"\nelif {self.draw('test')}:\n{self.block(1)}"
        if self.chance(0.6):
            text += f"\nelse:\n{self.block(self.r.randint(1, 2))}"
        return text

    def _return(self) -> str:
        """A `return` of as many values as the last one gives; sometimes of what it does not."""
        self.returns = True
        if self.chance(0.1):
            return self.fill("return <a>, <e>")
        return "return " + ", ".join(
            self.draw("a") if self.chance(0.6) else self.draw("e") for _ in range(self.returned_count)
        )

    def early_return(self) -> str:
        if self.exits and self.chance(0.8):
            return f"if {self.draw('test')}:\n    {self._return()}"
        if self.in_loop or self.chance(0.5):
            return self.fill("if <test>:\n    raise ValueError('no')")
        return self.fill("if <test>:\n    return <a>, <e>")

    def handled(self) -> str:
        error = self.pick("IndexError", "ValueError", "ZeroDivisionError", "(TypeError, ValueError)")
        risky = self.pick(
            "<target> = <a>[7]",
            "<target> = <a> + <a>",
            "<target> = 1 / int(np.sum(<a> > 0))",
            "<target> = np.reshape(<a>, (3, 3))",
        )
        return self.fill(f"try:\n    {risky}\nexcept {error}:\n    <target> = <e>")

    # --- the whole

    def arguments(self) -> list[Argument]:
        r = self.r
        made: list[Argument] = []
        more = (
            *(["float16"] if "float16" in self.features else []),
            *(["complex64", "complex128"] if "complex" in self.features else []),
        )
        favourite = self.pick(*FLOATS, *FLOATS, *INTEGERS, *more, *more)
        special = self.pick(0.0, 0.0, 0.1)
        for k in range(r.randint(1, 4)):
            arrays = [j for j, a in enumerate(made) if a.kind == "array" and a.axes]
            if k and arrays and self.chance(0.2):
                view = self.pick("[1:]", "[::-1]", "[::2]", ".T", "[:-1]", "[...]", "[None]", ".reshape(-1)", ".view()")
                of = r.choice(arrays)
                made.append(Argument("same", of=of) if self.chance(0.3) else Argument("view", of=of, view=view))
                continue
            kind = r.choices(("array", "scalar", "int", "float", "bool"), (80, 7, 6, 4, 2))[0] if k else "array"
            dtype = favourite if self.chance(0.55) else self.pick(*FLOATS, *INTEGERS, "bool", *more)
            if kind == "array" and "swapped" in self.features and self.chance(0.05):
                dtype = np.dtype(dtype).newbyteorder(">").str
            ndim = r.choices((0, 1, 2, 3), (3, 40, 42, 15))[0]
            axes = tuple("1" if self.chance(0.06) else r.choice(SIZE_NAMES[: max(ndim, 1)]) for _ in range(ndim))
            made.append(
                Argument(kind, dtype, axes, r.choice(LAYOUTS), r.randrange(2**31), special if kind == "array" else 0.0)
            )
        return made

    def sizes(self, arguments: list[Argument]) -> list[Sizes]:
        """Sizes of four calls; the second is like the first."""
        r = self.r
        used = sorted({name for a in arguments for name in a.axes if name != "1"})

        def drawn(sizes: tuple[int, ...], equal: bool) -> Sizes:
            for _ in range(20):
                one = r.choice(sizes)
                made = {name: one if equal else (r.choice(sizes) if self.chance(0.95) else 1) for name in used}
                if fits(arguments, made):
                    return made
            return dict.fromkeys(used, 3)

        equal = self.chance(0.5)
        first = drawn(SIZES[1:], equal)
        return [first, first, drawn(SIZES, equal), drawn(SIZES, equal=False)]

    def program(self) -> Fuzzed:
        arguments = self.arguments()
        calls = self.sizes(arguments)
        self.env = {f"a{k}": x for k, x in enumerate(make_arguments(arguments, calls[0], 0))}
        lines: list[str] = []
        wanted = self.r.randint(3, 10) if self.containers else self.r.randint(1, 8)
        for _ in range(self.r.randint(1, 2) if self.containers else 0):
            text = self.fill("<bound> = <display>")
            lines += [text] if self.try_statement(text) else []
        for _ in range(wanted * 8):
            if len(lines) >= wanted:
                break
            text = self.compound() if self.chance(0.22 if self.exits else 0.12) else self.draw("statement")
            if not text:
                continue
            if self.try_statement(text):
                lines += text.split("\n")
            elif len(lines) > 2 and self.chance(0.004) and _compiles(text):
                lines += text.split("\n")  # an error to compare
                break
        made = Fuzzed(self.seed, arguments, lines, calls, self.returned())
        made.calls = calls[:1]
        for sizes in calls[1:]:  # the data of a call depend on its number
            made.calls.append(sizes)
            if self.is_refused(made, len(made.calls) - 1):
                made.calls.pop()
        return made

    def is_refused(self, program: Fuzzed, call: int) -> bool:
        """Whether a call meets what is not drawn; the first call did not when the program was drawn."""
        space = {"np": self.space["np"], "watchers": self.space["watchers"]}
        exec(watched(program.source), space)
        try:
            with np.errstate(all="ignore"):
                space["program"](*program.make(call))
        except Refused:
            return True
        except Exception:  # noqa: BLE001 - an error to compare
            return False
        return False

    def returned(self) -> str:
        found = [name for name in self.env if name[0] in "vwc"]
        if self.returns and self.chance(0.7):
            return ", ".join(self.r.choice(found or ["a0"]) for _ in range(self.returned_count))
        shown = self.r.sample(found, min(len(found), self.r.randint(1, 4)))
        if self.chance(0.3):
            shown.append("a0")
        if self.chance(0.3):
            view = f"a0[{self.draw('subscript')}]"
            if self.value(view) is not None:
                shown.append(view)
        form = self.pick("{}", "{}", "{}", "{},", "[{}]", "dict")
        if form == "dict":
            return "{" + ", ".join(f"'k{k}': {x}" for k, x in enumerate(shown)) + "}"
        return str(form.format(", ".join(shown))) if shown else ""


_COMPOUND: tuple[Callable[[Generator], str], ...] = (
    Generator.range_loop, Generator.array_loop, Generator.while_loop, Generator.branch, Generator.early_return, Generator.handled,
)  # fmt: skip
_COMPOUND_WEIGHTS = (38, 10, 12, 32, 5, 4)


def _size(x: Any) -> int:
    """Number of elements, of all leaves of a container."""
    inner = parts(x)
    return sum(map(_size, inner)) if inner is not None else int(np.size(x))


def _compiles(text: str) -> bool:
    try:
        compile(text, "", "exec")
    except SyntaxError:
        return False
    return True


def draw(seed: int, features: frozenset[str] = DEFAULT_FEATURES) -> Fuzzed:
    """The program of a seed."""
    if seed >= EXITS_FROM:
        features |= {"exits"}
    if seed >= PRODUCTS_FROM:
        features |= {"products"}
    if seed >= CONTAINERS_FROM:
        features |= {"containers"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Generator(seed, features).program()
