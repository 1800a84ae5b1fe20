"""Arrays that a loop fills: what they hold before it is never read, so they need no first value.

    out = np.empty(n)
    for i in range(n): out[i] = ...

Law: the array goes into a `for` from 0 to the size of its first axis, in steps of 1, and nowhere else; a turn does
nothing with it but write all of row `i`, or of row `n - 1 - i`, and reads nothing of what it is then. Then each element
is written before the loop ends, and an error on the way gives up the array.
"""

from __future__ import annotations

from jitgraph.ir.dims import symbol
from jitgraph.ir.graph import Op, Value
from jitgraph.ir.types import AxisMap, IndexMap


def is_overwritten(loop: Op, k: int) -> bool:
    """Whether the first value of what `loop` carries as number `k` is never read (see the law above)."""
    init = loop.operands[k]
    if loop.name != "for" or init.producer is None or init.producer.name != "full" or len(init.uses) != 1:
        return False
    lower, upper, step = (loop.attrs[name] for name in ("lower", "upper", "step"))
    if not init.type.ndim or lower != 0 or step != 1 or upper != init.type.shape[0]:
        return False
    body = loop.regions[0]
    write = _only_write(body.args[k], body.terminator.operands[k])
    if write is None:
        return False
    index, shape = symbol(loop.attrs["index"]), init.type.shape
    rest = tuple([AxisMap(0, 1, axis) for axis in range(len(shape) - 1)])
    return write.attrs["map"] in [
        IndexMap(shape[1:], (AxisMap(row, 1, None), *rest)) for row in (index, upper - 1 - index)
    ]


def _only_write(array: Value, end: Value) -> Op | None:
    """The `write` that makes `end` of `array`, if nothing else uses the two; it may stand in a kernel."""
    if len(array.uses) != 1 or len(end.uses) != 1 or end.producer is None:
        return None
    ((user, at),) = array.uses
    if user is not end.producer:
        return None
    if user.name == "write":
        return user if at == 1 else None
    if user.name == "kernel":
        region = user.regions[0]
        return _only_write(region.args[at], region.terminator.operands[end.index])
    return None
