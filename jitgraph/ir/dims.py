"""Symbolic sizes and indices: integer polynomials over symbols and a few integer functions.

A `Dim` is a canonical sum of products over atoms; an atom is a symbol (`n`, a loop index, a size known at run time) or
one of `floordiv, mod, min, max, ne1` of dims. A constant is a plain `int`: functions here take and return `DimLike`.
Invariants:
1. A `Dim` is never constant (constants are `int`), its terms are sorted, no coefficient is zero.
2. Equal content means equal value for every binding of the symbols (the reverse does not hold: see `Facts`).
3. Evaluation is in exact Python integers; `floordiv` and `mod` round towards minus infinity as Python does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, Union

DimLike: TypeAlias = Union[int, "Dim"]
Monomial: TypeAlias = "tuple[Atom, ...]"
#: A dim without its constant.
Rest: TypeAlias = "tuple[tuple[Monomial, int], ...]"


class Atom:
    """A symbol (`op == "sym"`, `args == (name,)`) or an integer function of dims."""

    __slots__ = ("_hash", "args", "key", "op")

    def __init__(self, op: str, args: tuple[str | DimLike, ...]) -> None:
        self.op: Final = op
        self.args: Final = args
        #: Sort and identity key: the atom's text.
        self.key: Final[str] = str(args[0]) if op == "sym" else f"{op}({', '.join(str(a) for a in args)})"
        self._hash: Final = hash(self.key)

    @property
    def name(self) -> str:
        """Name of a symbol."""
        return self.key

    def dims(self) -> Iterator[Dim]:
        """The symbolic arguments of an integer function; nothing for a symbol."""
        return (a for a in self.args if isinstance(a, Dim))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.key


class Dim:
    """A non-constant integer polynomial. Build with `symbol` and the arithmetic operators."""

    __slots__ = ("_hash", "_symbols", "_text", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms: Final = terms
        self._hash: Final = hash(terms)
        self._text: str | None = None
        self._symbols: dict[str, None] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            if other == 0:
                return self
            total = dict(self.terms)
            total[()] = total.get((), 0) + other
            return _make(total)
        total = dict(self.terms)
        for mono, coef in other.terms:
            total[mono] = total.get(mono, 0) + coef
        return _make(total)

    __radd__ = __add__

    def __neg__(self) -> DimLike:
        return Dim(tuple((mono, -coef) for mono, coef in self.terms))

    def __sub__(self, other: DimLike) -> DimLike:
        return self + (-other)

    def __rsub__(self, other: DimLike) -> DimLike:
        return (-self) + other

    def __mul__(self, other: DimLike) -> DimLike:
        if isinstance(other, int):
            if other == 0:
                return 0
            return Dim(tuple((mono, coef * other) for mono, coef in self.terms)) if other != 1 else self
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                mono = tuple(sorted(left + right, key=_atom_key))
                total[mono] = total.get(mono, 0) + a * b
        return _make(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        return floordiv(self, other)

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return floordiv(other, self)

    def __mod__(self, other: DimLike) -> DimLike:
        return mod(self, other)

    def __rmod__(self, other: DimLike) -> DimLike:
        return mod(other, self)

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of the symbolic size {self} is not known here")

    @property
    def constant(self) -> int:
        """The constant term."""
        for mono, coef in self.terms:
            if not mono:
                return coef
        return 0

    def __repr__(self) -> str:
        if self._text is None:
            parts: list[str] = []
            for mono, coef in sorted(self.terms, key=_print_key):
                body = "*".join(a.key for a in mono)
                size = abs(coef)
                text = str(size) if not mono else body if size == 1 else f"{size}*{body}"
                parts.append((" - " if coef < 0 else " + ") + text if parts else ("-" if coef < 0 else "") + text)
            self._text = "".join(parts)
        return self._text


def _atom_key(atom: Atom) -> str:
    return atom.key


def _mono_key(term: tuple[Monomial, int]) -> tuple[str, ...]:
    return tuple(a.key for a in term[0])


def _print_key(term: tuple[Monomial, int]) -> tuple[int, int, tuple[str, ...]]:
    """Higher degrees first, the constant last, positive before negative."""
    return (-len(term[0]), 0, tuple(a.key for a in term[0]))


def _make(total: dict[Monomial, int]) -> DimLike:
    terms = [(mono, coef) for mono, coef in total.items() if coef]
    if not terms:
        return 0
    if len(terms) == 1:
        if not terms[0][0]:
            return terms[0][1]
        return Dim(tuple(terms))
    terms.sort(key=_mono_key)
    return Dim(tuple(terms))


def _atom(op: str, *args: DimLike) -> Dim:
    return Dim((((Atom(op, args),), 1),))


def symbol(name: str) -> Dim:
    """The dim that stands for the symbol `name` (an identifier, dots allowed)."""
    return Dim((((Atom("sym", (name,)),), 1),))


def floordiv(a: DimLike, b: DimLike) -> DimLike:
    """a // b where b is not 0. The exact part of a sum is carried out: (4*n + 2) // 2 is 2*n + 1, m*n // n is m."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    if b == -1:
        return -a
    if a == 0:
        return 0
    if a == b:
        return 1
    if isinstance(a, Dim):
        exact, rest = _divided(a, b)
        if exact:
            return _make(exact) + floordiv(_make(rest), b)
    return _atom("floordiv", a, b)


def _divided(a: Dim, b: DimLike) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """The terms of `a` that `b`, a number or a single term, divides, divided, and the others."""
    if isinstance(b, Dim) and len(b.terms) > 1:
        return {}, dict(a.terms)
    divisor, factor = ((), b) if isinstance(b, int) else b.terms[0]
    exact: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, coef in a.terms:
        left = list(mono)
        for atom in divisor:
            if atom in left:
                left.remove(atom)
        if coef % factor == 0 and len(left) == len(mono) - len(divisor):
            exact[tuple(left)] = coef // factor
        else:
            rest[mono] = coef
    return exact, rest


def mod(a: DimLike, b: DimLike) -> DimLike:
    """a % b, with the sign of b as in Python."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b in (1, -1) or a in (0, b):
        return 0
    if isinstance(b, int) and isinstance(a, Dim):
        rest = _make({mono: coef % b for mono, coef in a.terms})
        if rest != a:
            return mod(rest, b)
    elif isinstance(a, Dim):
        exact, others = _divided(a, b)
        if exact:
            return mod(_make(others), b)
    return _atom("mod", a, b)


def _extreme(op: str, pick: Callable[[Iterable[int]], int], items: tuple[DimLike, ...]) -> DimLike:
    constants = [d for d in items if isinstance(d, int)]
    symbolic: dict[Dim, None] = {}
    for d in items:
        if isinstance(d, Dim):
            inner = _single_atom(d)
            for e in inner.args if inner is not None and inner.op == op else (d,):
                if isinstance(e, Dim):
                    symbolic[e] = None
                elif isinstance(e, int):
                    constants.append(e)
    if not symbolic:
        return pick(constants)
    parts: list[DimLike] = sorted(symbolic, key=repr)
    if constants:
        parts.append(pick(constants))
    return parts[0] if len(parts) == 1 else _atom(op, *parts)


def dim_min(*items: DimLike) -> DimLike:
    return _extreme("min", min, items)


def dim_max(*items: DimLike) -> DimLike:
    return _extreme("max", max, items)


def ne1(a: DimLike) -> DimLike:
    """1 unless a == 1, then 0: the stride factor of an axis that may broadcast at run time."""
    return int(a != 1) if isinstance(a, int) else _atom("ne1", a)


def _single_atom(d: Dim) -> Atom | None:
    if len(d.terms) == 1 and d.terms[0][1] == 1 and len(d.terms[0][0]) == 1:
        return d.terms[0][0][0]
    return None


def parts_of(d: DimLike, op: str) -> tuple[DimLike, ...]:
    """The arguments of a dim that is one `min` or `max`; () of any other."""
    atom = _single_atom(d) if isinstance(d, Dim) else None
    return tuple(a for a in atom.args if not isinstance(a, str)) if atom is not None and atom.op == op else ()


def as_symbol(d: DimLike) -> str | None:
    """The symbol's name if `d` is just one symbol."""
    atom = _single_atom(d) if isinstance(d, Dim) else None
    return atom.name if atom is not None and atom.op == "sym" else None


_NO_SYMBOLS: dict[str, None] = {}


def symbols(d: DimLike) -> dict[str, None]:
    """Names of all symbols in `d`, in a fixed order; not to be changed."""
    if isinstance(d, int):
        return _NO_SYMBOLS
    found = d._symbols
    if found is None:
        found = {}
        for mono, _ in d.terms:
            for atom in mono:
                if atom.op == "sym":
                    found[atom.key] = None
                else:
                    for inner in atom.dims():
                        found.update(symbols(inner))
        d._symbols = found
    return found


def apply_atom(op: str, args: list[DimLike]) -> DimLike:
    """The integer function `op` (floordiv, mod, min, max, ne1) of `args`."""
    if op == "floordiv":
        return floordiv(args[0], args[1])
    if op == "mod":
        return mod(args[0], args[1])
    if op == "min":
        return dim_min(*args)
    if op == "max":
        return dim_max(*args)
    return ne1(args[0])


def substitute(d: DimLike, env: Mapping[str, DimLike]) -> DimLike:
    """`d` with symbols replaced; symbols not in `env` stay."""
    if isinstance(d, int) or not env:
        return d
    total: DimLike = 0
    for mono, coef in d.terms:
        product: DimLike = coef
        for atom in mono:
            if atom.op == "sym":
                factor = env.get(atom.name)
                factor = _symbol_of(atom) if factor is None else factor
            else:
                factor = apply_atom(atom.op, [substitute(a, env) for a in atom.args if not isinstance(a, str)])
            product = product * factor
        total = total + product
    return total


def _symbol_of(atom: Atom) -> Dim:
    return Dim((((atom,), 1),))


def evaluate(d: DimLike, env: Mapping[str, int]) -> int:
    """The value of `d` with every symbol bound in `env`.

    Raises:
        KeyError: a symbol is not bound.
    """
    if isinstance(d, int):
        return d
    total = 0
    for mono, coef in d.terms:
        for atom in mono:
            coef *= env[atom.name] if atom.op == "sym" else _evaluate_atom(atom, env)
        total += coef
    return total


def _evaluate_atom(atom: Atom, env: Mapping[str, int]) -> int:
    args = [evaluate(a, env) for a in atom.args if not isinstance(a, str)]
    if atom.op == "floordiv":  # a zero that the program never uses is taken for 1, as by compiled code
        return args[0] // (args[1] or 1)
    if atom.op == "mod":
        return args[0] % (args[1] or 1)
    if atom.op == "min":
        return min(args)
    if atom.op == "max":
        return max(args)
    return int(args[0] != 1)


def split_linear(d: DimLike, name: str) -> tuple[DimLike, DimLike] | None:
    """(c, r) with d = c * name + r and neither c nor r depending on `name`; None if `d` is not linear in it."""
    if isinstance(d, int):
        return 0, d
    coefficient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for mono, coef in d.terms:
        at = [i for i, a in enumerate(mono) if a.op == "sym" and a.name == name]
        if len(at) > 1:
            return None
        others = mono if not at else mono[: at[0]] + mono[at[0] + 1 :]
        if any(a.op != "sym" and any(name in symbols(x) for x in a.dims()) for a in others):
            return None
        target = coefficient if at else rest
        target[others] = target.get(others, 0) + coef
    return _make(coefficient), _make(rest)


#: Of `Facts` that have changed.
_STALE = (-1, -1, -1)


def _without_constant(d: Dim) -> tuple[Rest, int]:
    """The terms of a dim but for its constant, and the constant: which stands first."""
    first, coef = d.terms[0]
    return (d.terms, 0) if first else (d.terms[1:], coef)


class Facts:
    """What is known of symbols: constant and symbolic bounds. Proofs are sound and incomplete.

    `lower[s]` and `upper[s]` are inclusive bounds; an upper bound may itself be a dim (a loop index is at most n - 1).
    """

    def __init__(self) -> None:
        self.lower: dict[str, DimLike] = {}
        self.upper: dict[str, DimLike] = {}
        #: Dims proven or guarded to be at least zero.
        self.nonnegative: dict[Dim, None] = {}
        #: Minima of at least 0 found so far, by dim and depth, while the facts are as many as `_state` says.
        self._minima: dict[tuple[Dim, int], int] = {}
        #: Those below 0 and those not found: another fact may do better.
        self._weak: dict[tuple[Dim, int], int | None] = {}
        self._state = (0, 0, 0)
        #: The constant that the rest of a dim is never below, where `nonnegative` says so.
        self._rests: dict[Rest, int] = {}
        #: The facts in which a product stands, by its sign: of those that differ in the constant only, the strongest.
        self._sharing: dict[tuple[Monomial, bool], dict[Rest, Dim]] = {}
        #: Ranges of products found so far, by depth.
        self._ranges: dict[tuple[Monomial, int], tuple[int | None, int | None]] = {}

    def copy(self) -> Facts:
        other = Facts()
        other.lower, other.upper = dict(self.lower), dict(self.upper)
        other.nonnegative = dict(self.nonnegative)
        return other

    def bound(self, name: str, lower: DimLike | None = None, upper: DimLike | None = None) -> None:
        """Record inclusive bounds of a symbol."""
        if lower is not None:
            self.lower[name] = lower
        if upper is not None:
            self.upper[name] = upper
        self._state = _STALE

    def assume_nonnegative(self, d: DimLike) -> None:
        """Record d >= 0."""
        if isinstance(d, Dim):
            current = self._state == (len(self.lower), len(self.upper), len(self.nonnegative))
            self.nonnegative[d] = None
            name = as_symbol(d - d.constant)
            if name is not None:
                known = self.lower.get(name)
                if not isinstance(known, int) or known < -d.constant:
                    self.lower[name] = -d.constant
            self._state = (len(self.lower), len(self.upper), len(self.nonnegative)) if current else _STALE
            if current:  # what was proven still holds
                self._know(d)
                self._ranges.clear()
                self._weak.clear()

    def minimum(self, d: DimLike, depth: int = 4) -> int | None:
        """A constant that `d` is never below, or None."""
        if isinstance(d, int):
            return d
        state = (len(self.lower), len(self.upper), len(self.nonnegative))
        if state != self._state:
            self._state = state
            self._minima.clear()
            self._weak.clear()
            self._rests.clear()
            self._ranges.clear()
            self._sharing.clear()
            for known in self.nonnegative:
                self._know(known)
        key = (d, depth)
        best = self._minima.get(key)
        if best is None:
            if key in self._weak:
                return self._weak[key]
            best = self._minimum(d, depth)
            if best is not None and best >= 0:
                self._minima[key] = best
            else:
                self._weak[key] = best
        return best

    def _know(self, d: Dim) -> None:
        rest, constant = _without_constant(d)
        found = self._rests.get(rest)
        if found is None or found < -constant:
            self._rests[rest] = -constant
            for mono, coef in rest:
                self._sharing.setdefault((mono, coef > 0), {})[rest] = d

    def _minimum(self, d: Dim, depth: int) -> int | None:
        rest, constant = _without_constant(d)
        best = self._rests.get(rest)
        if best is not None:
            best += constant
            if best >= 0:
                return best
        low = self._interval_minimum(d, depth)
        if low is not None and (best is None or low > best):
            best = low
        if (best is None or best < 0) and depth:
            for name in symbols(d):
                split = split_linear(d, name)
                if split is None or not isinstance(split[0], int) or split[0] == 0:
                    continue
                bound = self.lower.get(name) if split[0] > 0 else self.upper.get(name)
                if bound is None or (isinstance(bound, Dim) and name in symbols(bound)):
                    continue
                found = self.minimum(split[0] * bound + split[1], depth - 1)
                if found is not None and (best is None or found > best):
                    best = found
                    if best >= 0:
                        return best
            for mono, coef in rest:
                modulus = self._modulus(mono, depth) if coef < 0 else None
                if modulus is not None:  # x mod m is at most m - 1
                    found = self.minimum(d + Dim(((mono, -coef),)) + coef * (modulus - 1), depth - 1)
                    if found is not None and (best is None or found > best):
                        best = found
                        if best >= 0:
                            return best
            own = dict(d.terms)
            # Of the facts those that cancel something: else what is subtracted makes it smaller.
            sharing = [self._sharing.get((mono, coef > 0)) for mono, coef in rest]
            for known in dict.fromkeys(f for facts in sharing if facts for f in facts.values()):
                left = dict(own)
                for mono, coef in known.terms:
                    left[mono] = left.get(mono, 0) - coef
                found = self._least(left.items(), depth - 1)
                if found is not None and (best is None or found > best):
                    best = found
        return best

    def _modulus(self, mono: Monomial, depth: int) -> Dim | None:
        """The m of a lone `x mod m` with an m that is not a constant and at least 1."""
        if len(mono) != 1 or mono[0].op != "mod":
            return None
        modulus = mono[0].args[1]
        if not isinstance(modulus, Dim):
            return None
        low = self.minimum(modulus, depth - 1)
        return modulus if low is not None and low >= 1 else None

    def _interval_minimum(self, d: DimLike, depth: int) -> int | None:
        return d if isinstance(d, int) else self._least(d.terms, depth)

    def _least(self, terms: Iterable[tuple[Monomial, int]], depth: int) -> int | None:
        """What a sum is never below, each product for itself."""
        total = 0
        for mono, coef in terms:
            if not mono:
                total += coef
            elif coef:
                key = (mono, depth)
                known = self._ranges.get(key)
                if known is None:
                    known = self._ranges[key] = self._range(mono, depth)
                side = known[0] if coef > 0 else known[1]
                if side is None:
                    return None
                total += coef * side
        return total

    def _range(self, mono: Monomial, depth: int) -> tuple[int | None, int | None]:
        """Bounds of a product: of factors of which more than one may be negative nothing is known."""
        low, high = 1, 1
        for atom in mono:
            a_low, a_high = self._atom_range(atom, depth)
            if len(mono) == 1:
                return a_low, a_high
            if a_low is None or a_low < 0:
                return None, None
            low = low * a_low
            high = None if high is None or a_high is None else high * a_high  # type: ignore[assignment]
        return low, high

    def _atom_range(self, atom: Atom, depth: int) -> tuple[int | None, int | None]:
        if atom.op == "sym":
            low, high = self.lower.get(atom.name), self.upper.get(atom.name)
            return (low if isinstance(low, int) else None), (high if isinstance(high, int) else None)
        args = [a for a in atom.args if not isinstance(a, str)]
        if atom.op == "ne1":
            return 0, 1
        if atom.op == "mod":
            if isinstance(args[1], int):
                return (0, args[1] - 1) if args[1] > 0 else (None, None)
            low = self.minimum(args[1], min(depth - 1, 2)) if depth > 0 else None
            return (0 if low is not None and low >= 1 else None), None
        if atom.op == "floordiv" and isinstance(args[1], int) and args[1] > 0:
            low = self.minimum(args[0], min(depth - 1, 2)) if depth > 0 else None
            return (None if low is None else low // args[1]), None
        if atom.op in ("min", "max"):
            lows = [self.minimum(a, min(depth - 1, 2)) if depth > 0 else None for a in args]
            known = [v for v in lows if v is not None]
            if atom.op == "max":
                return (max(known) if known else None), None
            constants = [a for a in args if isinstance(a, int)]
            return (min(known) if len(known) == len(lows) else None), (min(constants) if constants else None)
        return None, None

    def is_le(self, a: DimLike, b: DimLike) -> bool:
        """True if a <= b is proven."""
        difference = b - a
        low = self.minimum(difference)
        return low is not None and low >= 0

    def is_lt(self, a: DimLike, b: DimLike) -> bool:
        """True if a < b is proven."""
        return self.is_le(a + 1, b)

    def is_ne(self, a: DimLike, b: DimLike) -> bool:
        """True if a != b is proven."""
        return self.is_lt(a, b) or self.is_lt(b, a)


_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w.]*)|(.))")


def parse_dim(text: str) -> DimLike:
    """The dim that prints as `text`.

    Raises:
        ValueError: `text` is no dim.
    """
    tokens = [m.group(0).strip() for m in _TOKEN.finditer(text) if m.group(0).strip()]
    at = 0

    def peek() -> str:
        return tokens[at] if at < len(tokens) else ""

    def take() -> str:
        nonlocal at
        at += 1
        return tokens[at - 1] if at <= len(tokens) else ""

    def factor() -> DimLike:
        token = take()
        if token.isdigit():
            return int(token)
        if token == "-":
            return -factor()
        if token == "(":
            inner = total()
            if take() != ")":
                raise ValueError(f"no closing bracket in the size {text!r}")
            return inner
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise ValueError(f"{text!r} is no size")
        if peek() != "(":
            return symbol(token)
        take()
        args = [total()]
        while peek() == ",":
            take()
            args.append(total())
        if take() != ")" or token not in ("floordiv", "mod", "min", "max", "ne1"):
            raise ValueError(f"{text!r} is no size")
        return apply_atom(token, args)

    def product() -> DimLike:
        value = factor()
        while peek() == "*":
            take()
            value = value * factor()
        return value

    def total() -> DimLike:
        value = product()
        while peek() in ("+", "-"):
            value = value + product() if take() == "+" else value - product()
        return value

    value = total()
    if at != len(tokens):
        raise ValueError(f"{text!r} is no size")
    return value


def is_factor(a: DimLike, b: DimLike) -> bool:
    """Whether `a` is a factor of `b` that is seen at once (of two numbers: the smaller one), as runs of axes grow."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    if isinstance(b, int):
        return False
    if isinstance(a, int):
        return all(coefficient % a == 0 for _, coefficient in b.terms) if a else False
    if len(a.terms) > 1:
        return False
    (mono, factor), *_ = a.terms
    return all(
        coefficient % factor == 0 and all(m.count(atom) >= mono.count(atom) for atom in mono)
        for m, coefficient in b.terms
    )
