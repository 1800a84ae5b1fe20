"""Views and writes through them: programs, each with the arguments it is tried on."""

# ruff: noqa: N802, RET504, RUF059

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
N = lambda: (np.arange(24.0).reshape(4, 6)[::-1, ::-1],)
T = lambda: (np.arange(24.0).reshape(4, 6), np.arange(24.0)[::-1].reshape(4, 6).copy())
L = lambda: (np.arange(7.0),)
Q = lambda: (np.arange(16.0).reshape(4, 4),)
ALL = (A, F, S, N)


@case(*ALL)
def reshape_write(x):
    f = x.reshape(-1)
    f[::2] = 0
    return f


@case(*ALL)
def reshape_aug(x):
    f = x.reshape(-1)
    f += 1
    f[3] *= 2
    return f


@case(*ALL)
def reshape_slice(x):
    f = x.reshape(2, 2, -1)
    f[:, 1] = 5
    return x.sum()


@case(*ALL)
def reshape_of_slice(x):
    f = x[1:].reshape(-1)
    f[1] = 9
    return f


@case(*ALL)
def reshape_F(x):
    f = x.reshape(-1, order="F")
    f[1] = 9
    return f


@case(*ALL)
def reshape_A(x):
    f = x.reshape((3, 8), order="A")
    f[1] = 9
    return f


@case(*ALL)
def ravel_C(x):
    f = x.ravel()
    f[1] = 9
    return f


@case(*ALL)
def ravel_F(x):
    f = x.ravel("F")
    f[1] = 9
    return f


@case(*ALL)
def ravel_K(x):
    f = x.ravel("K")
    f[1] = 9
    return f


@case(*ALL)
def ravel_A(x):
    f = x.ravel("A")
    f[1] = 9
    return f


@case(*ALL)
def flat_set(x):
    x.flat[3] = 7
    x.flat[::5] = 1
    x.flat = x.flat[1]
    return x.flat[2]


@case(*ALL)
def flat_set2(x):
    x.flat[[1, 2, 3]] = [7, 8, 9]
    x.flat[2:20] = [1.0, 2.0]


@case(*ALL)
def flat_iter(x):
    s = 0.0
    for v in x.flat:
        s = s + v
    return s


@case(*ALL)
def T_reshape(x):
    f = x.T.reshape(-1)
    f[1] = 9
    return f


@case(*ALL)
def reshape_T_reshape(x):
    f = x.reshape(-1).reshape(6, 4).T[::2]
    f[...] = 3
    f += f[::-1]
    return f


@case(*ALL)
def copyarg(x):
    y = np.reshape(x, (-1,), copy=True)
    y[0] = 55
    return y


@case(*ALL)
def copyfalse(x):
    y = np.reshape(x, (-1,), copy=False)
    y[0] = 55
    return y


@case(*ALL)
def overlap1(x):
    x[1:] = x[:-1]


@case(*ALL)
def overlap2(x):
    x[:, 1:] = x[:, :-1]


@case(*ALL)
def overlap3(x):
    x += x[::-1]


@case(*ALL)
def overlap4(x):
    x[:, 1:] += x[:, :-1]


@case(Q)
def overlap5(x):
    x += x.T


@case(Q)
def overlap6(x):
    x[:] = x.T


@case(*ALL)
def overlap7(x):
    np.add(x[:-1], 1, out=x[1:])


@case(T)
def swap(a, b):
    a[:], b[:] = b, a


@case(T)
def swap2(a, b):
    a[:], b[:] = b.copy(), a.copy()


@case(*ALL)
def swaprows(x):
    x[0], x[1] = x[1], x[0]


@case(*ALL)
def swaprows2(x):
    x[[0, 1]] = x[[1, 0]]


@case(*ALL)
def flatoverlap(x):
    f = x.reshape(-1)
    f[1:] = f[:-1]
    return f


@case(*ALL)
def flatoverlap2(x):
    f = x.reshape(-1)
    f[1:] += f[:-1]
    f[::-1] -= f
    return f


@case(*ALL)
def diag(x):
    d = x.diagonal()
    return d


@case(*ALL)
def diagw(x):
    d = x.diagonal()
    d[0] = 1


@case(*ALL)
def broadcastw(x):
    b = np.broadcast_to(x, (2, 4, 6))
    b[0] = 1


@case(*ALL)
def broadcastr(x):
    return np.broadcast_to(x, (2, 4, 6))


@case(*ALL)
def swapax(x):
    y = x.swapaxes(0, 1)
    y[1:] = 2
    z = np.moveaxis(x, 0, -1)
    z[0] += 1
    w = np.rollaxis(x, 1)
    w[2] -= 1
    return y, z, w


@case(*ALL)
def sq(x):
    y = x[:, None].squeeze()
    y[1] = 0
    z = np.expand_dims(x, (0, 2))
    z[0, 1] = 3
    return y, z


@case(*ALL)
def atl(x):
    y = np.atleast_3d(x)
    y[0] = 0
    z = np.atleast_1d(x[0, 0])
    w = np.atleast_2d(x[1])
    w[0, 0] = 8
    return y, z, w


@case(*ALL)
def fl(x):
    y = np.flip(x)
    y[0] = 0
    z = np.flip(x, 1)
    z[1] = 1
    f = np.flipud(x)
    f[0, 0] = 4
    g = np.fliplr(x)
    g[0, 0] = 6
    return y, z, f, g


@case(*ALL)
def rot(x):
    y = np.rot90(x)
    y[0] = 0
    z = np.rot90(x, 2)
    z[1] = 1
    w = np.rot90(x, 3)
    w[2] = 5
    v = np.rot90(x, 4)
    v[0, 0] = 9
    return y, z, w, v


@case(*ALL)
def splits(x):
    a, b = np.split(x, 2)
    a += 1
    c, d, e = np.hsplit(x, 3)
    d[...] = b.sum()
    f = np.array_split(x, 3)
    f[2] -= 1
    g = np.vsplit(x, 2)
    g[0][0] = 3
    return a, b, c, d, e, f, g


@case(*ALL)
def splits2(x):
    a = np.split(x, [1, 3])
    a[1][...] = 0
    b = np.array_split(x, [2, 5], axis=1)
    b[0][...] = 1
    return a, b


@case(T)
def bca(a, b):
    p, q = np.broadcast_arrays(a, b[0])
    return p


@case(T)
def bca2(a, b):
    p, q = np.broadcast_arrays(a, b)
    p[0] = 1
    return q


@case(*ALL)
def winw(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)
    w[0] = 1


@case(*ALL)
def dstackless(x):
    y = x[...]
    y[0] = 2
    z = x[()]
    z[1] = 3
    w = x.view()
    w[2] = 4
    return y, z, w


@case(*ALL)
def unst(x):
    a = np.unstack(x)
    a[0][...] = 1
    return a[1]


A5 = lambda: (np.arange(20.0).reshape(4, 5),)
S5 = lambda: (np.arange(24.0).reshape(4, 6)[:, :5],)
T3 = lambda: (np.arange(120.0).reshape(4, 5, 6),)
T3F = lambda: (np.asfortranarray(np.arange(120.0).reshape(4, 5, 6)),)
T3b = lambda: (np.arange(96.0).reshape(4, 4, 6),)
ALL = (A, A5, F, S5)


@case(*ALL)
def r4(x):
    f = x[::2].reshape(-1)
    f[1] = 9
    return f


@case(*ALL)
def r5(x):
    f = x.T[::2].reshape(-1)
    f[1] = 9
    return f


@case(*ALL)
def r6(x):
    f = x.T[:, ::2].reshape(-1, order="F")
    f[1] = 9
    return f


@case(*ALL)
def r7(x):
    f = x[:, ::-1].reshape(-1)
    f[1] = 9
    return f


@case(*ALL)
def r8(x):
    f = x[::-1, ::-1].reshape(-1)
    f[1] = 9
    return f


@case(T3, T3F, T3b)
def t1(x):
    f = x[:, :, ::2].reshape(x.shape[0], -1)
    f[1] = 9
    return f


@case(T3, T3F, T3b)
def t2(x):
    f = x[:, ::2].reshape(-1, x.shape[2])
    f[1] = 9
    return f


@case(T3, T3F, T3b)
def t3(x):
    f = x[:, ::2, ::3].reshape(-1)
    f[1] = 9
    return f


@case(T3, T3F, T3b)
def t4(x):
    f = x[:, 1].reshape(-1)
    f[1] = 9
    return f


@case(T3, T3F, T3b)
def t5(x):
    f = x[:, :, 1].reshape(-1)
    f[1] = 9
    g = x[1].T.reshape(-1)
    g[0] = 3
    return f, g


@case(T3, T3F, T3b)
def t6(x):
    f = x.transpose(1, 2, 0).reshape(-1, 4, order="A")
    f[1] = 9
    return f


@case(T3, T3F, T3b)
def t7(x):
    f = np.broadcast_to(x[:1], (3,) + x.shape[1:]).reshape(-1, x.shape[2])
    return f


@case(T3, T3F, T3b)
def t8(x):
    f = x[:, :, None, ::3].reshape(x.shape[0], -1, 2)
    f[1, 1] = 9
    return f


@case(*ALL)
def c2(x):
    f = np.reshape(x, (2, -1), copy=True)
    f[0] = 1
    return f


@case(*ALL)
def c3(x):
    f = np.reshape(x.T, (2, -1), order="F", copy=False)
    f[0] = 1
    return f


@case(*ALL)
def rs(x):
    return x.reshape(5, 5)


@case(*ALL)
def rs2(x):
    return x.reshape(-1, -1)


@case(*ALL)
def rs3(x):
    return x.reshape(x.shape[1], x.shape[0]).ravel(), x.flatten("F"), x.flatten(), x.flatten("A"), x.flatten("K")


@case(*ALL)
def rv(x):
    a = x.ravel("K")
    b = x[:, ::2].ravel("K")
    b[0] = 3
    c = x[::-1].ravel("K")
    c[0] = 5
    d = x[::-1].ravel("A")
    d[0] = 6
    return a, b, c, d
