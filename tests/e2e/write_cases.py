"""Writes by statements and functions: programs, each with the arguments it is tried on."""

# ruff: noqa: E742

import numpy as np

#: Name of the case to (function, maker of its arguments).
CASES = {}


def case(*makers):
    def register(f):
        for i, maker in enumerate(makers):
            CASES[f"{f.__name__}-{i}"] = (f, maker)
        return f

    return register


A = lambda: (np.arange(24.0).reshape(4, 6),)
F = lambda: (np.asfortranarray(np.arange(24.0).reshape(4, 6)),)
S = lambda: (np.arange(96.0).reshape(8, 12)[::2, ::2],)
I = lambda: (np.arange(24).reshape(4, 6),)
I8 = lambda: (np.arange(24, dtype=np.int8).reshape(4, 6),)
F32 = lambda: (np.arange(24, dtype=np.float32).reshape(4, 6),)
AB = lambda: (np.arange(24.0).reshape(4, 6) - 5, np.arange(24.0)[::-1].reshape(4, 6) / 3)
IB = lambda: (np.arange(24).reshape(4, 6) - 5, np.arange(24)[::-1].reshape(4, 6) // 3)
MIX = lambda: (np.arange(24.0).reshape(4, 6) - 5, np.arange(24, dtype=np.int32)[::-1].reshape(4, 6))
L = lambda: (np.arange(7.0),)
LI = lambda: (np.arange(7.0), np.array([0, 2, 2, 5, -1]))
LM = lambda: (np.arange(7.0), np.arange(7.0) % 2 == 0)
Q = lambda: (np.arange(16.0).reshape(4, 4),)
X = (A, F, S)


@case(*X, I)
def out1(x):
    o = np.empty_like(x)
    r = np.add(x, 1, out=o)
    return r is o, o


@case(*X, I)
def out_self(x):
    np.multiply(x, 2, out=x)
    np.negative(x, x)
    return np.abs(x, out=x)


@case(*X)
def out_view(x):
    np.sqrt(x[0], out=x[1])
    np.add(x[:, 0], x[:, 1], out=x[:, 2])
    np.subtract(x, 1, out=x.T.T)


@case(AB, IB, MIX)
def out_two(a, b):
    np.add(a, b, out=b, casting="unsafe")
    return a


@case(MIX)
def out_cast_err(a, b):
    np.add(a, b, out=b)


@case(AB)
def out_f32(a, b):
    o = np.empty(a.shape, np.float32)
    np.add(a, b, out=o)
    return o


@case(AB)
def out_shape_err(a, b):
    np.add(a, b, out=np.empty((3, 6)))


@case(AB)
def out_bc(a, b):
    o = np.empty((2, 4, 6))
    np.add(a, b, out=o)
    return o


@case(AB)
def out_tuple(a, b):
    np.add(a, b, out=(a,))
    q, r = np.divmod(a, b + 20, out=(a, b))
    return q is a, r is b


@case(AB)
def where_out(a, b):
    np.add(a, b, out=a, where=a > b)
    np.sqrt(a, out=a, where=a > 0)


@case(AB)
def where_out_bc(a, b):
    np.add(a, b, out=a, where=a[0] > b[0])
    np.multiply(a, 2, out=a, where=(a[:, :1] > 0))


@case(AB)
def where_out_bool(a, b):
    o = np.zeros(a.shape, bool)
    np.less(a, b, out=o, where=b > 0)
    return o


@case(AB)
def where_out_cast(a, b):
    o = np.zeros(a.shape, np.float32)
    np.add(a, b, out=o, where=a > b)
    return o


@case(AB)
def where_view(a, b):
    np.add(a[1:], 1, out=a[:-1], where=b[1:] > 3)


@case(AB)
def where_mask_overlap(a, b):
    m = a > 3
    np.logical_not(m, out=m, where=m)
    return m


@case(AB)
def where_int_mask(a, b):
    return np.add(a, b, out=a, where=b.astype(int))


@case(AB)
def dtypekw(a, b):
    return np.add(a, b, dtype=np.float32)


@case(AB)
def dtypekw2(a, b):
    return np.add(a, b, dtype=np.int64)


@case(AB)
def casting_no(a, b):
    return np.add(a, b.astype(np.float32), casting="no")


@case(AB)
def casting_safe(a, b):
    o = np.empty(a.shape, np.float32)
    np.add(a, b, out=o, casting="safe")


@case(AB)
def copyto1(a, b):
    np.copyto(a, b)
    np.copyto(a, 3)
    np.copyto(a[0], b[1], where=b[1] > 2)


@case(AB)
def copyto2(a, b):
    np.copyto(a, b, where=a > b)
    np.copyto(a, 7, where=[True, False] * 3)


@case(MIX)
def copyto3(a, b):
    np.copyto(b, a)


@case(MIX)
def copyto4(a, b):
    np.copyto(b, a, casting="unsafe")


@case(AB)
def copyto5(a, b):
    np.copyto(a[1:], a[:-1])
    np.copyto(a, a.T.copy().T[::-1])


@case(*X, I)
def put1(x):
    np.put(x, [0, 2, -1], [9, 8, 7])
    x.put([1, 1, 3], [4, 5])
    np.put(x, 3, 2)


@case(*X)
def put2(x):
    np.put(x, [0, 30, -40], [9, 8, 7], mode="wrap")
    np.put(x, [0, 30, -40], [9, 8, 7], mode="clip")


@case(LI)
def put4(x, i):
    np.put(x, i, x[::-1])
    np.put(x, i, [1.0, 2.0])


@case(*X)
def put5(x):
    np.put(x, [], [])


@case(*X, I)
def place1(x):
    np.place(x, x > 5, [1, 2, 3])


@case(*X, I)
def place2(x):
    np.place(x, x > 5, -1)
    np.place(x, x > 100, [1])


@case(*X)
def place3(x):
    np.place(x, x > 5, [])


@case(*X, I)
def putmask1(x):
    np.putmask(x, x > 5, x**2)
    np.putmask(x, x > 200, [-33, -44])


@case(*X, I)
def putmask2(x):
    np.putmask(x, x > 5, [1, 2, 3, 4, 5])


@case(*X, I)
def fill(x):
    x.fill(3)
    x[0].fill(2)
    x.T[1].fill(5)


@case(*X, I, Q)
def filldiag(x):
    np.fill_diagonal(x, -1)


@case(*X, I, Q)
def filldiag2(x):
    np.fill_diagonal(x, [1, 2, 3, 4])


@case(lambda: (np.zeros((7, 3)),), lambda: (np.zeros((3, 7)),), lambda: (np.asfortranarray(np.zeros((7, 3))),))
def filldiagw(x):
    np.fill_diagonal(x, 5, wrap=True)


@case(lambda: (np.zeros((3, 3, 3)),))
def filldiag3(x):
    np.fill_diagonal(x, 5)


@case(lambda: (np.zeros((3, 3, 4)),), L)
def filldiag4(x):
    np.fill_diagonal(x, 5)


@case(LI)
def at1(x, i):
    np.add.at(x, i, 1)
    np.add.at(x, i, [1, 2, 3, 4, 5.0])


@case(LI)
def at2(x, i):
    np.multiply.at(x, i, 2)
    np.subtract.at(x, i, x[:5])
    np.maximum.at(x, i, [9, 1, 2, 10, 3])
    np.minimum.at(x, i, 2.5)


@case(LI)
def at3(x, i):
    np.negative.at(x, i)
    np.sqrt.at(x, np.array([0, 1]))
    np.divide.at(x, i, 3)
    np.power.at(x, i, 2)


@case(AB)
def at4(a, b):
    np.add.at(a, ([0, 0, 1], [1, 1, 2]), [1, 2, 3])
    np.add.at(a, (slice(None), [0, 0]), 1)
    np.add.at(a, 0, b[0])
    np.add.at(a, (0, 1), 5)


@case(AB)
def at5(a, b):
    np.add.at(a, a > 3, 1)
    np.add.at(a, (a > 3) & (b > 3), b[0, 0])
    np.multiply.at(a, (slice(1, 3), slice(None, None, 2)), b[:2, :3])


@case(AB)
def at6(a, b):
    np.add.at(a, [0, 0], b[:2])
    np.add.at(a.T, [1, 1], b[:2, :4])


@case(IB)
def at7(a, b):
    np.add.at(a, [0, 0], 1.5)


@case(IB)
def at8(a, b):
    np.bitwise_or.at(a, [0, 0], [[1], [2]])
    np.left_shift.at(a, ([1, 1], [2, 2]), 1)
    np.floor_divide.at(a, [1, 1], 2)
    np.logical_and.at(a, [2], [1])


@case(LI)
def at9(x, i):
    np.add.at(x, [7], 1)


@case(I8)
def over1(x):
    x[0] = 300


@case(I8)
def over2(x):
    x += 300


@case(I8)
def cplx(x):
    x[0] = 1j


@case(I8)
def cplx2(x):
    x[0] = np.complex128(1j)


@case(A)
def shapeerr(x):
    x[0] = np.arange(5.0)


@case(A)
def shapeerr2(x):
    x[:2] = np.arange(18.0).reshape(3, 6)


@case(A)
def seqerr(x):
    x[0, 0] = [1, 2]


@case(A)
def seqerr2(x):
    x[0] = [[1, 2], [3]]


@case(A)
def lead1(x):
    x[0] = np.arange(6.0).reshape(1, 1, 6)
    x[1] = [[1, 2, 3, 4, 5, 6]]


@case(I)
def floatval(x):
    x[0] = 3.7
    x[1] = np.float32(2.5)
    x[2] = True


@case(I)
def nanval(x):
    x[0] = float("nan")


@case(I)
def iadd_f(x):
    x += 1.5


@case(I)
def idiv(x):
    x /= 2


@case(I)
def ops(x):
    x -= 1
    x *= 2
    x //= 3
    x %= 5
    x **= 2
    x <<= 1
    x >>= 1
    x &= 6
    x |= 8
    x ^= 3


@case(A)
def opsf(x):
    x -= 1
    x *= 2
    x /= 3
    x //= 0.5
    x %= 5
    x **= 2


@case(A)
def ops_view(x):
    x[1:3] -= 1
    x[:, ::2] *= 2
    x[::-1] /= 3
    x.T[2] //= 0.5
    x[0, 0] += 5
    x[..., 1] **= 2


@case(Q)
def matm(x):
    x @= x


@case(L)
def zerod(x):
    s = x[0:1].reshape(())
    s += 1
    t = x[2, ...]
    t += 1
    t[...] = t * 2
    u = x[3]
    u += 1
    return s, t, u


@case(AB)
def same_twice(a, b):
    c = a
    c += 1
    a *= 2
    d = a[0]
    d[:] = c[1]
    return c


def dup():
    x = np.arange(10.0)
    return (x, x)


@case(dup)
def alias1(a, b):
    a += 1
    b[0] = 5
    return a - b


def ov():
    x = np.arange(10.0)
    return (x[:6], x[3:])


@case(ov)
def alias2(a, b):
    a += 1
    b[0] = 5
    return a.sum()


@case(ov)
def alias3(a, b):
    b[:] = a[1:].sum()
    return b


def ro():
    x = np.arange(10.0)
    x.flags.writeable = False
    return (x,)


@case(ro)
def ro1(a):
    a[0] = 1


@case(ro)
def ro2(a):
    a += 1


@case(ro)
def ro3(a):
    np.add(a, 1, out=a)


@case(ro)
def ro4(a):
    v = a[1:]
    w = v.reshape(3, 3)
    w[0] = 1


@case(ro)
def ro5(a):
    a.sort()


@case(ro)
def ro7(a):
    np.copyto(a, 1)


@case(ro)
def ro8(a):
    np.putmask(a, a > 1, 1)


@case(ro)
def ro9(a):
    a.fill(1)


@case(ro)
def ro10(a):
    np.put(a, [1], [2])


@case(ro)
def ro11(a):
    np.place(a, a > 1, [2])


@case(ro)
def ro12(a):
    a.flat[0] = 1


@case(ro)
def ro13(a):
    return a[1:], a, a.reshape(2, 5), a.copy()


G = np.arange(6.0)


class O:
    pass


o = O()
o.w = np.arange(5.0)


@case(L)
def glob(x):
    G[...] = 0
    o.w[:] = 1
    G[1:] += x[1:6]
    o.w[1:] = o.w[:-1] * 2
    return G.copy(), o.w.copy()


@case(lambda: (np.array(3.0), np.arange(4.0)))
def zd(a, b):
    a += 1
    a[...] = a * 2
    b[0] = a
    return a, b


@case(lambda: (np.array(3.0),))
def zd2(a):
    a[()] = 4
    return a[()], a.reshape(1), a.T, a.ravel()


@case(lambda: (np.zeros((0, 3)),))
def emp(a):
    a[...] = 4
    a += 1
    a.reshape(-1)[...] = 3
    a.T[...] = 2
    return a.ravel(), a.reshape(3, 0)
