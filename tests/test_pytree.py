"""Containers to leaves and back."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitgraph.pytree import flatten, has_choice, paths, register, unflatten


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = "layer"


@dataclass(frozen=True)
class Frozen:
    a: Any
    hidden: Any = field(default=3, init=False)


class Pair:
    def __init__(self, left: Any, right: Any, tag: str) -> None:
        self.left, self.right, self.tag = left, right, tag


register(Pair, lambda p: ([p.left, p.right], p.tag), lambda tag, items: Pair(*items, tag))

TREES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Layer, inner, inner)
        | st.builds(Frozen, inner)
    ),
    max_leaves=12,
)


@given(TREES)
def test_round_trip(tree: Any) -> None:
    leaves, structure = flatten(tree)
    assert structure.count == len(leaves)
    again = unflatten(structure, leaves)
    assert again == tree
    assert type(again) is type(tree)
    assert flatten(again)[1] == structure
    assert hash(flatten(again)[1]) == hash(structure)
    assert len(paths(structure, "x")) == len(leaves)


def test_leaves_stand_in_order() -> None:
    tree = {"b": (1, [2, None]), "a": Point(3, Layer(4, 5)), "c": Pair(6, 7, "t")}
    leaves, structure = flatten(tree)
    assert leaves == [1, 2, 3, 4, 5, "layer", 6, 7]
    assert paths(structure, "p") == [
        "p['b'][0]", "p['b'][1][0]", "p['a'][0]", "p['a'][1].w", "p['a'][1].b", "p['a'][1].name", "p['c'][0]",
        "p['c'][1]",
    ]  # fmt: skip
    mapped = unflatten(structure, [x * 2 for x in leaves])
    assert mapped["b"] == (2, [4, None])
    assert mapped["a"] == Point(6, Layer(8, 10, "layerlayer"))
    assert (mapped["c"].left, mapped["c"].tag) == (12, "t")
    assert list(mapped) == ["b", "a", "c"]


def test_structures_differ() -> None:
    trees = [
        1,
        [1],
        (1,),
        {"a": 1},
        {"b": 1},
        Point(1, 2),
        (1, 2),
        [1, None],
        [None, 1],
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        Layer(1, 2),
        Pair(1, 2, "s"),
        Pair(1, 2, "t"),
        *(
            {key: 1}
            for key in (1, True, 1.0, 0.0, -0.0, (1, 2), (True, 2), (1, 2.0), frozenset([1]), frozenset([True]))
        ),
        OrderedDict({1: 1}),
        OrderedDict({True: 1}),
    ]
    structures = [flatten(t)[1] for t in trees]
    assert len(set(structures)) == len(trees)


def test_subclasses_are_leaves() -> None:
    class Special(list):
        pass

    leaves, structure = flatten([Special([1]), OrderedDict(a=1)])
    assert structure.count == 2
    assert type(leaves[0]) is Special


def test_a_dataclass_with_more_attributes_is_a_leaf() -> None:
    layer = Layer(1, 2)
    layer.extra = 3
    assert flatten(layer)[0] == [layer]


def test_wrong_number_of_leaves() -> None:
    with pytest.raises(ValueError, match=r"\[\*, \*\] has 2 leaves, got 1"):
        unflatten(flatten([1, 2])[1], [1])
    with pytest.raises(ValueError, match="registered already"):
        register(Pair, lambda p: ([], None), lambda meta, items: None)


class _Either:
    def __init__(self, which, *options):
        self.which, self.options = which, options


register(_Either, lambda x: ([x.which, *x.options], None), lambda meta, parts: _Either(*parts), chooses=True)


def test_a_node_may_stand_for_one_of_its_children():
    leaves, tree = flatten([_Either("traced", (1, 2), {"a": 3}, 4), 5])
    assert leaves == ["traced", 1, 2, 3, 4, 5]
    assert has_choice(tree)
    assert not has_choice(flatten([1, (2,)])[1])
    assert unflatten(tree, [0, *leaves[1:]]) == [(1, 2), 5]
    assert unflatten(tree, [1, None, None, 3, None, 5]) == [{"a": 3}, 5]
    again = unflatten(tree, leaves)[0]
    assert type(again) is _Either
    assert again.options == ((1, 2), {"a": 3}, 4)
