"""Programs whose source must reach the tracer as it is written (pytest rewrites asserts in test files)."""


def checked(x, s):
    assert s > 0, "s is not positive"
    return x * s
