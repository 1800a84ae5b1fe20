"""`records.dataclass` beside the standard library's."""

import copy
import dataclasses
import pickle

import pytest

from jitgraph.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Point:
    """Frozen, with all kinds of fields."""

    x: int
    y: int = 2
    others: list = field(default_factory=list, compare=False)
    kind: str = field(default="p", init=False)


@dataclass(slots=True)
class Node:
    value: int
    next: "Node | None" = None


@dataclass(slots=True, eq=False)
class Named(Node):
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or str(self.value)


def test_fields_and_defaults() -> None:
    a, b = Point(1), Point(1, 2, [3])
    assert (a.x, a.y, a.others, a.kind) == (1, 2, [], "p")
    assert a == b
    assert hash(a) == hash(b)
    assert a != Point(2)
    assert a != (1, 2)
    assert a.others is not Point(1).others
    assert repr(b) == "Point(x=1, y=2, others=[3], kind='p')"
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "others", "kind"]
    assert Point.__match_args__ == ("x", "y", "others")
    with pytest.raises(TypeError, match="missing 1 required"):
        Point()  # type: ignore[call-arg]


def test_frozen_and_slots() -> None:
    a = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        a.x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del a.x
    assert not hasattr(a, "__dict__")
    with pytest.raises(AttributeError):
        Node(1).other = 2  # type: ignore[attr-defined]


def test_copies() -> None:
    a = Point(1, others=[[2]])
    deep = copy.deepcopy(a)
    assert deep == a
    assert deep.others is not a.others
    assert pickle.loads(pickle.dumps(a)) == a
    assert dataclasses.replace(a, x=4) == Point(4)
    assert copy.copy(Node(3)) == Node(3)


def test_inheritance_and_hashes() -> None:
    named = Named(5)
    assert (named.value, named.next, named.name) == (5, None, "5")
    assert Named.__slots__ == ("name",)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Node(1))
    node = Node(1)
    node.next = node
    assert repr(node) == "Node(value=1, next=...)"


def test_methods_are_compiled_at_their_first_call() -> None:
    @dataclass(slots=True, frozen=True)
    class Base:
        a: int
        b: str = "b"

    @dataclass(slots=True, frozen=True)
    class Sub(Base):
        c: float = 0.5

    waiting = Base.__dict__["__init__"], Base.__dict__["__eq__"], Base.__dict__["__hash__"]
    assert Sub(1, c=2.0) == Sub(1, "b", 2.0) != Base(1)
    assert Base.__dict__["__init__"] is not waiting[0] is not None
    assert Base.__dict__["__hash__"] is waiting[2], "nobody asked"
    assert hash(Base(1)) == hash(Base(1, "b"))
    assert Base.__dict__["__hash__"] is not waiting[2]
    assert [f.__qualname__.rpartition(".")[2] for f in (Base.__init__, Base.__hash__)] == ["__init__", "__hash__"]
    waiting[0](made := object.__new__(Base), 7)
    assert made == Base(7), "one that another thread has begun to call still works"
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        Base()
