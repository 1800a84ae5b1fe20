"""Facts of sizes: stronger ones stand for weaker ones, and what was not proven may be proven later."""

from jitgraph.ir.dims import Facts, symbol


def test_of_facts_that_differ_in_a_constant_the_strongest_is_kept() -> None:
    facts = Facts()
    n, m = symbol("n"), symbol("m")
    for k in range(200):
        facts.assume_nonnegative(n - m - k)
        assert facts.minimum(n - m - k) == 0
    assert facts.minimum(n - m) == 0  # what was proven first is enough
    assert facts.copy().minimum(n - m) == 199
    facts.assume_nonnegative(n - m - 5)  # weaker: nothing new
    assert facts.copy().minimum(n - m) == 199
    assert all(len(sharing) == 1 for sharing in facts._sharing.values())


def test_what_was_not_proven_is_tried_again_behind_a_new_fact() -> None:
    facts = Facts()
    n, m, k = symbol("n"), symbol("m"), symbol("k")
    for name in "nmk":
        facts.bound(name, 0)
    assert facts.minimum(n - m) is None
    assert facts.minimum(n + m) == 0
    facts.assume_nonnegative(n - k)
    assert facts.minimum(n - m) is None
    facts.assume_nonnegative(k - m)
    assert facts.minimum(k - m) == 0
    facts.assume_nonnegative(n - m - 2)
    assert facts.minimum(n - m) == 2
