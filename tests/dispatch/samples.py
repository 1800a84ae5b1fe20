"""Classes of arguments that the tests and the leak runs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Pair:
    w: Any
    b: Any


@dataclass(slots=True)
class Slotted:
    w: Any
    b: Any
