"""Short stories around a jitted function, told twice, by plain Python and compiled: everything observed is equal.

A scenario is a generator `story(jit)`: it defines functions, decorates them with `jit`, calls them (with changes of the
world between the calls) and yields what it sees. `refused` ones must raise a `TraceError` that names the user's line.
"""

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitgraph as jg
from tests.e2e.programs import aliases, public_class, same

Story = Callable[[Callable[..., Any]], Iterator[Any]]


@dataclass(frozen=True)
class Raised:
    """An exception, as it is compared: its public class and its text (that of numpy's own errors differs)."""

    kind: type
    text: str


def attempt(fn: Callable[..., Any], *args: Any, text: bool = True, **kwargs: Any) -> Any:
    """What a call returns, or the exception it raises."""
    try:
        return fn(*args, **kwargs)
    except (jg.errors.TraceError, jg.errors.InternalError):
        raise
    except Exception as error:  # noqa: BLE001 - it is compared
        return Raised(
            public_class(error) if type(error).__module__ != __name__ else type(error), str(error) if text else ""
        )


def plain(fn: Any = None, **options: Any) -> Any:
    """`jit` that does nothing."""
    return (lambda f: f) if fn is None else fn


def compiled(fn: Any = None, **options: Any) -> Any:
    """`jit` with NumPy's own functions, for the same bits."""
    return jg.jit(fn, numerics="numpy", **options)


def observe(story: Story, jit: Callable[..., Any]) -> list[Any]:
    """What a story sees."""
    found = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.filterwarnings("ignore", message=".* runs in plain Python")
        for seen in story(jit):
            found.append(copy.deepcopy(seen) if isinstance(seen, list | dict) else seen)
    return found


class Scenarios(list[Any]):
    """The scenarios of one file; `tests()` makes their test."""

    def add(self, story: Story) -> Story:
        self.append((story, "", ""))
        return story

    def refused(self, text: str, line: str) -> Callable[[Story], Story]:
        """The story ends in a `TraceError` with this text, at the line of the story that contains `line`."""

        def register(story: Story) -> Story:
            self.append((story, text, line))
            return story

        return register

    def tests(self) -> Callable[..., None]:
        @pytest.mark.parametrize(("story", "text", "line"), self, ids=lambda p: getattr(p, "__name__", ""))
        def test(story: Story, text: str, line: str) -> None:
            expected = observe(story, plain)
            if text:
                with pytest.raises(jg.errors.TraceError) as caught, contextlib.suppress(StopIteration):
                    observe(story, compiled)
                message = str(caught.value)
                assert text in message
                assert line in message, message
                assert "To mend" in message, message
                return
            got = observe(story, compiled)
            same(got, expected, 0, story.__name__)
            assert aliases(got, ()) == aliases(expected, ())

        return test
