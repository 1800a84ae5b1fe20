"""Writes through reshapes: what bufferize and fuse do with them, and that machine code agrees with the meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgraph.ir.parser import parse
from jitgraph.ir.printer import print_graph
from jitgraph.passes.bufferize import bufferize
from jitgraph.passes.fuse import fuse
from tests.checks import SAME, check_pass
from tests.lowered import Lowered

RNG = np.random.default_rng(7)


def check(transform: Any, text: str, expect: Any, *args: Any) -> None:
    check_pass(transform, text, expect)
    Lowered(text)(*args)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def test_the_text_is_parsed_back() -> None:
    text = """graph @f(%x: f64[n, m], %y: f64[k]) -> (argument 0) where n >= 0, n != 1, m >= 0, m != 1, k >= 0, k != 1 {
  %w = write_through %y, %x {steps = [(d0: n - 1, d1: m) -> (d0 + 1, d1), [m*n - m], (d0: k) -> (2*d0)]} : f64[n, m]
  return %w {mutates = [0]}
}
"""
    assert print_graph(parse(text)) == text


def test_the_elements_written_are_in_place() -> None:
    check(
        bufferize,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) {
          %k = kernel %x : f64[n, m] (%p: f64[n, m]) {
            %r = reshape %p {shape = [n*m]} : f64[n*m]
            %a = mul %r, %r : f64[n*m]
            %w = write_through %a, %p {steps = [[n*m], (d0: n*m) -> (d0)]} : f64[n, m]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        SAME,
        floats(3, 5),
    )


def test_every_other_element_of_the_flat_array_is_elsewhere() -> None:
    check(
        bufferize,
        """
        graph @f(%x: f64[n, 4]) -> (argument 0) {
          %k = kernel %x : f64[n, 4] (%p: f64[n, 4]) {
            %r = reshape %p {shape = [4*n]} : f64[4*n]
            %v = view %r {map = (d0: 2*n) -> (2*d0)} : f64[2*n]:strided(order=[0], breaks=[0])
            %w = write_through %v, %p {steps = [[4*n], (d0: 2*n) -> (2*d0 + 1)]} : f64[n, 4]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        SAME,
        floats(5, 4),
    )


def test_neighbours_are_stored_first() -> None:
    check(
        bufferize,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n*m >= 1 {
          %k = kernel %x : f64[n, m] (%p: f64[n, m]) {
            %r = reshape %p {shape = [n*m]} : f64[n*m]
            %v = view %r {map = (d0: n*m - 1) -> (d0)} : f64[n*m - 1]
            %a = add %v, %v : f64[n*m - 1]
            %w = write_through %a, %p {steps = [[n*m], (d0: n*m - 1) -> (d0 + 1)]} : f64[n, m]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n, m]) -> (argument 0) if n*m >= 1 {
          %k = kernel %x : f64[n*m - 1] (%p: f64[n, m]) {
            %r = reshape %p {shape = [n*m]} : f64[n*m]
            %v = view %r {map = (d0: n*m - 1) -> (d0)} : f64[n*m - 1]
            %a = add %v, %v : f64[n*m - 1]
            yield %a
          }
          %w = write_through %k, %x {steps = [[n*m], (d0: n*m - 1) -> (d0 + 1)]} : f64[n, m]
          return %w {mutates = [0]}
        }""",
        floats(3, 4),
    )


def test_reads_of_another_shape_are_stored_first() -> None:
    """Which elements a write through a reshape names is compared with reads through the same one only."""
    check(
        bufferize,
        """
        graph @f(%x: f64[n, n]) -> (argument 0) {
          %k = kernel %x : f64[n, n] (%p: f64[n, n]) {
            %t = view %p {map = (d0: n, d1: n) -> (d1, d0)} : f64[n, n]:F
            %r = reshape %t {shape = [n*n]} : f64[n*n]
            %a = add %r, %r : f64[n*n]
            %w = write_through %a, %p {steps = [[n*n], (d0: n*n) -> (d0)]} : f64[n, n]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n, n]) -> (argument 0) {
          %k = kernel %x : f64[n*n] (%p: f64[n, n]) {
            %t = view %p {map = (d0: n, d1: n) -> (d1, d0)} : f64[n, n]:F
            %r = reshape %t {shape = [n*n]} : f64[n*n]
            %a = add %r, %r : f64[n*n]
            yield %a
          }
          %w = write_through %k, %x {steps = [[n*n], (d0: n*n) -> (d0)]} : f64[n, n]
          return %w {mutates = [0]}
        }""",
        floats(4, 4),
    )


def test_an_update_is_one_kernel() -> None:
    check(
        fuse,
        """
        graph @f(%x: f64[n, m]) -> (argument 0) {
          %r = reshape %x {shape = [n*m]} : f64[n*m]
          %a = mul %r, %r : f64[n*m]
          %w = write_through %a, %x {steps = [[n*m], (d0: n*m) -> (d0)]} : f64[n, m]
          return %w {mutates = [0]}
        }""",
        """
        graph @f(%x: f64[n, m]) -> (argument 0) {
          %k = kernel %x {rows = 0} : f64[n, m] (%p: f64[n, m]) {
            %r = reshape %p {shape = [n*m]} : f64[n*m]
            %a = mul %r, %r : f64[n*m]
            %w = write_through %a, %p {steps = [[n*m], (d0: n*m) -> (d0)]} : f64[n, m]
            yield %w
          }
          return %k {mutates = [0]}
        }""",
        floats(3, 5),
    )
