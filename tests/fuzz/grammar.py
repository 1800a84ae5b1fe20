"""What fuzzed programs are made of: one table, `GRAMMAR`, of alternatives with weights.

A hole `<name>` in a text is filled by an alternative of that name, or by a method `draw_name` of the generator, which
knows the values at hand: `<e>` an expression of less depth, `<a>` the name of an array, `<fit>` an expression that may be
written into the place drawn last, `<axis>` an axis of the expression drawn last.
"""

from __future__ import annotations

#: Features that some parts of the package may lack; `python -m tests.fuzz.run --with name,name` adds them.
FEATURES = ("complex", "float16", "swapped", "zero_sums", "where_sums", "exits", "products", "containers")
#: Those drawn unless told otherwise.
DEFAULT_FEATURES: frozenset[str] = frozenset({"complex", "float16", "swapped", "zero_sums"})

#: Programs of smaller seeds are drawn without "exits", so that seeds on record stay what they were.
EXITS_FROM = 820_000
#: Likewise complex products written over reversed arrays ("products").
PRODUCTS_FROM = 1_200_000
#: Likewise lists, tuples, dicts, named tuples and objects that hold arrays and numbers ("containers").
CONTAINERS_FROM = 2_000_000

Alternatives = tuple[tuple[float, str], ...]


def _words(text: str, weight: float = 1.0) -> Alternatives:
    return tuple((weight, word) for word in text.split())


GRAMMAR: dict[str, Alternatives] = {
    # --- expressions
    "expression": (
        (24, "(<e> <op> <e>)"),
        (3, "(<e> <shift> <amount>)"),
        (3, "(<e> ** <power>)"),
        (3, "-<e>"),
        (11, "np.<unary>(<e>)"),
        (9, "np.<binary>(<e>, <e>)"),
        (2, "np.<binary>(<e>, <e>, dtype=<float>)"),
        (1, "np.<unary>(<e>, where=<mask>, out=np.zeros(<a>.shape))"),
        (11, "np.<reduce>(<e>, axis=<axis><keepdims>)"),
        (2, "np.<sums>(<e>, axis=<axis>, dtype=<float>)"),
        (2, "np.<where_reduce>(<e>, axis=<axis>, where=<mask>, initial=<n>)"),
        (4, "np.<arg_reduce>(<e>, axis=<one_axis>)"),
        (2, "np.asarray(<e>).<reduce>(<one_axis>)"),
        (2, "np.<ufunc>.<method>(<e>)"),
        (14, "<move>"),
        (3, "np.where(<mask>, <e>, <e>)"),
        (2, "np.where(<e> > <e>, <e>, <e>)"),
        (2, "np.clip(<e>, <n>, <n>)"),
        (1, "np.clip(<e>, <e>, 3)"),
        (4, "<cast>"),
        (9, "<pick>"),
        (3, "<number>"),
        (2, "(<e> @ <e>)"),
        (1, "np.dot(<e>, <e>)"),
    ),
    "op": _words("+ - * + - * / // % < > <= >= == != & | ^"),
    "shift": _words("<< >>"),
    "amount": (*_words("1 2 3"), (1, "<e>")),
    "power": _words("2 3 0.5 -1 1 0 2.0 -2"),
    "unary": _words(
        "abs negative sign square sqrt exp log sin cos tanh floor ceil rint trunc isnan isfinite signbit logical_not "
        "reciprocal log1p expm1 invert positive isinf exp2 log2 arctan log10 arcsin sinh conj"
    ),
    "binary": _words(
        "maximum minimum fmax fmin copysign arctan2 logical_and logical_or logical_xor floor_divide remainder fmod add "
        "multiply subtract power greater less_equal not_equal true_divide bitwise_and"
    ),
    "reduce": _words("sum sum sum mean max min prod any all var std"),
    "sums": _words("sum mean prod"),
    "where_reduce": _words("max min prod any all"),
    "arg_reduce": _words("argmax argmin cumsum cumprod"),
    "ufunc": _words("add multiply maximum logical_or"),
    "method": _words("reduce accumulate"),
    "keepdims": ((4, ""), (1, ", keepdims=True")),
    "float": _words("np.float32 np.float64"),
    "move": (
        *_words(
            "np.transpose(<e>) np.asarray(<e>).T np.reshape(<e>,-1) np.ravel(<e>) np.expand_dims(<e>,0) np.flip(<e>) "
            "np.flip(<e>,0) np.broadcast_to(<e>,<a>.shape) np.concatenate([<e>,<a>]) np.stack([<e>,<a>]) "
            "np.concatenate((<a>,<e>),axis=-1) np.squeeze(<e>) np.reshape(<e>,<a>.shape) np.swapaxes(<e>,0,-1) "
            "np.copy(<e>) np.asarray(<e>).copy() np.zeros_like(<e>) np.ones(<a>.shape) np.reshape(<e>,(-1,2)) "
            "np.full(<a>.shape,<e>) np.arange(<a>.shape[0]) np.roll(<e>,1) np.atleast_2d(<e>) np.moveaxis(<e>,0,-1) "
            "np.repeat(<e>,2) np.diff(<e>) np.outer(<e>,<a>) np.tile(<e>,2) np.ones_like(<e>) np.diagonal(<e>) "
            "np.trace(<e>) np.linspace(0,1,<a>.shape[0]) np.asarray(<e>)[...,None] np.asarray(<e>)[<subscript>] "
            "np.vstack([<e>,<a>]) np.hstack([<a>,<e>]) np.tril(<e>) np.split(<a>,2)[1] "
            "np.reshape(<e>,(2,-1)) np.ascontiguousarray(<e>) np.rot90(<e>) np.asarray(<e>).flatten() "
            "np.append(<e>,<a>) np.meshgrid(<a>,<a>)[0] np.atleast_1d(<e>) np.full_like(<e>,1)"
        ),
    ),
    "cast": (
        (3, "<astype>"),
    ),
    "pick": _words(
        "<a>[<a>>0] <a>[<index>] np.take(<a>,<index>,axis=0) <a>[<mask>] np.flatnonzero(<a>) np.nonzero(<a>)[0] "
        "<a>[...,<index>] <a>[<index>,<index>] <a>[<index>,:,<index>] <a>[<slice>,<index>] <a>[None,<index>,...] "
        "<a>[<index>[:,None],<index>] np.compress(<a>.ravel()>0,<a>.ravel()) np.argwhere(<a>)[:,0] <a>[<subscript>] "
        "<a>[<subscript>] <a>[<subscript>] np.sort(<e>) np.argsort(<a>,kind='stable') np.searchsorted(np.sort(<a>),<e>) "
        "np.take_along_axis(<a>,<a>.argsort(0,kind='stable'),0) <a>[<mask>,0]"
    ),
    "number": _words("len(<a>) <a>.size <a>.shape[0] <a>.ndim float(np.max(<a>)) abs(<e>) int(np.sum(<a>>0)) <a>.shape[-1]"),
    "index": _words(
        "np.array([0,1,-1]) np.array([[0,1],[1,0]]) [1,0] np.array([1,0]) np.array([0,1,1]) [0,-1] np.arange(2) "
        "np.array([True,False])"
    ),
    "mask": _words("(<a>>0) (<a><=<n>) (<a>!=<a>) np.isfinite(<a>) (<a>>0)&(<a><2)"),
    "slice": (
        *_words(": : : 1: :-1 ::2 ::-1 1:-1 -2: :2 1::2 ::-2 0:0 3: :-3"),
        (1, "<low>:<high>"),
        (1, "<low>:<high>:<step>"),
    ),
    "low": _words("-3 -2 -1 0 1 2 3"),
    "high": _words("-3 -2 -1 0 1 2 3 4"),
    "step": _words("-1 -2 2 3"),
    "entry": ((14, "<slice>"), *_words("-1 0 1 None ...")),
    "n": _words("0 1 2 -1 3 0.5 1.5 -2.0 1e3 7 2.5 np.float32(1.5) np.float64(-0.5) np.int8(3) True np.uint8(2)"),
    "where_written": (
        (3, "[<subscript>]"),
        *_words("[...] [:] [<index>] [-1] [0] [<index>,<index>] [<slice>,<index>] [<mask>] [...,<index>]"),
    ),
    # --- statements of one line
    "statement": (
        (40, "<target> = <e3>"),
        (12, "<place> = <fit>"),
        (10, "<place> <augment> <fit>"),
        (5, "<own> <augment> <fit>"),
        (2, "<own>[<slice>] = <own2>[<slice>]"),
        (2, "<own> += <own2>[::-1]"),
        (1, "<own> += <own2>.T"),
        (1, "<own>[1:], <own2>[:-1] = <own2>[:-1], <own2>[1:] + 1"),
        (3, "<target> = <own><view>"),
        (2, "np.<out_binary>(<fit_own>, <fit>, out=<own2>)"),
        (1, "np.<out_unary>(<fit_own>, out=<own2>)"),
        (1, "np.<out_binary>(<fit_own>, <fit>, out=<own2>, where=<own2> > <n>)"),
        (1, "np.<out_reduce>(<a>, axis=0, out=<own2>)"),
        (1, "<target> = np.add(<a>, <e>, out=<fresh_like>)"),
        (1, "np.copyto(<writable>, <fit>)"),
        (1, "np.copyto(<writable>, <fit>, where=<own2> > <n>)"),
        (1, "np.put(<own>, <index>, <fit>, mode='wrap')"),
        (1, "np.place(<own>, <own2> > 0, <fit>)"),
        (1, "np.putmask(<own>, <own2> > 0, <fit>)"),
        (1, "<own>.fill(<fit_scalar>)"),
        (1, "np.add.at(<writable>, np.array([0, 1, 1]), <fit> + 0)"),
        (1, "np.fill_diagonal(<own>, <fit_scalar>)"),
        (1, "<own>.sort()"),
        (1, "<target> = helper(<e>)"),
        (1, "<target> = helper(<a>, scale=<n>)"),
        (1, "update(<own>)"),
        (0.4, "assert np.all(<a> == <a>)"),
        (0.6, "<target>, <target> = <e>, <e>"),
        (0.4, "<target> = [<e>, <a>]"),
        (0.4, "<target> = {'x': <e>, 'y': <a>}"),
        (0.4, "<target> = [x * 2 for x in (<e>, <e>)]"),
        (0.4, "<target> = sum([<e>, <e>])"),
    ),
    "augment": ((3, "+="), (2, "-="), (2, "*="), (1, "<more_augment>")),
    "view": _words(
        "[1:] [:-1] [::-1] .T [::2] .reshape(-1) .ravel() [...,0] [0] [None] .reshape(2,-1) [:,None] [<subscript>] "
        ".swapaxes(0,-1) .squeeze() .diagonal() .view()"
    ),
    "out_binary": _words("add multiply subtract maximum minimum"),
    "out_unary": _words("negative square abs"),
    "out_reduce": _words("sum max cumsum"),
    # --- tests of branches and loops
    "test": _words(
        "np.sum(<a>)>0 <n>><n> np.any(<a>) np.max(<a>)>1 len(<a>)>3 <a>.shape[0]>2 <a>.ndim==2 np.all(<a>==<a>) "
        "np.sum(<a>)<np.sum(<a>) not(np.sum(<a>)>0) (np.sum(<a>)>0)and(len(<a>)>2) <a>.ravel()[:1].sum()>0 <a>.size"
    ),
    "range": (*_words("<a>.shape[0] <a>.shape[0]-1 3 10 12 len(<a>)-1,0,-1 <a>.shape[0]//2"), (1, "1, <a>.shape[0]")),
    "in_loop": (
        *_words("<a>[i]=<a>[i-1] <a>[i]*=2 <a>[i:]=<n> <a>[i,...]+=1 <a>[:i]+=1", 1),
        (1, "<a>[i] = <fit>"),
        (1, "<target> = <a>[i]"),
        (1, "<target> = <a>[i:i + 2]"),
        (1, "<target> = i * 2"),
    ),
}  # fmt: skip

#: What is drawn, too, with the feature "exits".
MORE: dict[str, Alternatives] = {
    "expression": ((3, "(<e> if <test> else <e>)"),),
    "test": _words(
        "0<np.sum(<a>)<=<n> <n><=np.max(<a>)<<n> len(<a>)>2>=<a>.ndim np.any(<a>)or(len(<a>)>4) "
        "(<a>.size>3)==(np.sum(<a>)>0) <a>.ravel()[-1:].sum()<<n>"
    ),
    "range": _words(
        "0,<a>.shape[0],1+int(np.sum(<a>>0)) min(12,int(np.sum(<a>>0))) <a>.shape[0]-1,-1,-1-int(np.any(<a>)) "
        "2,len(<a>),2"
    ),
    "in_loop": (*_words("<a>[i]+=<a>[i-1] <a>[i:]=<a>[i]"), (1, "<target> = <a>[i] if <test> else <a>[0]")),
}  # fmt: skip

#: What is drawn, too, with the feature "containers": `<c>` a container, `<slot>` a place in one that can be changed.
CONTAINERS: dict[str, Alternatives] = {
    "statement": (
        (10, "<bound> = <display>"),
        (8, "<slot> = <item>"),
        (4, "<slot>, <slot> = <slot>, <slot>"),
        (3, "<slot> <augment> <e>"),
        (3, "<bound> = <c>"),
        (2, "<bound> = swapped(<c>)"),
        (2, "<bound> = bump(<c>)"),
        (2, "<target> = update(<a>)"),
        (2, "<target>, <target> = <c>"),
        (2, "<c>.append(<item>)"),
        (1, "<c>.reverse()"),
        (1, "<target> = <c>.pop()"),
        (1, "<bound> = <c>._replace(x=<item>)"),
        (1, "<bound> = dict(<c>, x=<item>)"),
        (1, "<bound> = <c>[::-1]"),
        (1, "<bound> = <c> + <c>"),
        (1, "<c>.step(<e>)"),
        (1, "<bound> = [x * 2 for x in <c>]"),
        (1, "<bound> = {k: x + 1 for k, x in <c>.items()}"),
        (1, "<target> = np.stack(<c>)"),
        (1, "<target> = sum(<c>)"),
        (1, "<target> = <c>.get('x', 0)"),
    ),
    "display": (
        *_words("[<item>,<item>] [<item>,<item>] (<item>,<item>) {'x':<item>,'y':<item>} Pair(<item>,<item>)"),
        *_words("Box(<item>,<item>) Point(<item>,<item>) [<item>] (<item>,)"),
        (1, "list(<c>)"),
        (1, "[]"),
    ),
    "item": (*_words("<a> <a>", 3), (3, "<e>"), (1, "<c>"), (1, "<n>"), (1, "<a><view>")),
    "test": _words("len(<c>)>1 <c>==<c> 'x'in(<c>)"),
}  # fmt: skip

#: Classes and functions that programs with containers use.
CLASSES = """\
from collections import namedtuple
from dataclasses import dataclass

Pair = namedtuple("Pair", "x y")


@dataclass
class Point:
    x: object
    y: object

    def step(self, by):
        self.x = self.x + by


class Box:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def step(self, by):
        self.x, self.y = self.y, self.x
        self.x += by


def swapped(q):
    x, y = q
    return [y, x]


def bump(q):
    q[0] = q[0] + 1
    return q
"""

#: Functions that programs call.
HELPERS = """\
def helper(x, scale=2):
    if np.ndim(x) == 0:
        return x * scale
    return x * scale + np.sum(x)


def update(x):
    x[...] = x * 2
    return x
"""
