"""Index expressions, statements and functions, compared with NumPy one by one in `test_indexing`."""

from __future__ import annotations

#: What is read; the names are those of `arguments` in `test_indexing`.
READS = """
x2[i, ..., I]; x3[lo:, i, ..., I]; x3[i, ..., I, J]; x3[I, ..., k, J]; x3[None, ..., I]; x1[..., m1, ...]; x1[:0][I]; x2[:0][I, J]; x2[:, :0][I]
x1[i]; x1[j]; x1[ni]; x1[nu]; x1[z]; x1[zu]; x1[big]; x1[-big]; x1[b]; x1[nb]; x1[mt]; x1[f]; x1[F]; x1[None];
x1[None, i]; x1[...]; x1[()]; x1[..., i]; x1[i, ...]; x1[None, ..., None]; x2[i]; x2[i, j]; x2[i][j]; x2[:, i];
x2[..., i]; x2[i, ..., j]; x2[i, None, j]; x2[ni, nu]; x2[z, zu]; x2[z, :]; x2[i, j, k]; x2[..., ...];
x2[i, :, None]; x2[None, :, None, i]; x2[lo:hi]; x2[lo:big]; x2[neg:]; x2[:neg]; x2[-big:big]; x2[hi:lo];
x2[hi:lo:-1]; x2[::-1]; x2[::-2]; x2[big::-1]; x2[neg::-1]; x2[:neg:-1]; x2[lo:hi, lo:hi]; x2[lo:, :hi:2];
x1[::st]; x1[lo::st]; x1[lo:hi:st]; x1[::-st]; x1[::neg]; x1[hi::neg]; x1[big:lo:neg]; x1[:lo:neg]; x1[z:];
x1[:zu]; x1[ni:]; x1[nu:]; x1[lo:f]; x1[::z]; x1[::(lo - 1)]; x1[I]; x1[J]; x1[I2]; x1[IF]; x1[IN]; x1[I8];
x1[U64]; x1[IE]; x1[I1]; x1[IT]; x1[[0, 2]]; x1[[]]; x1[[[0, 1], [2, 3]]]; x1[[0, i]]; x1[[i, j]]; x1[(1,)];
x1[(i,)]; x1[[True, False, True, False, False, False, True]]; x1[[[]]]; x1[np.array([[0, 1]])]; x1[range(3)];
x1[I[0]]; x1[I + 1]; x1[I, None]; x1[None, I]; x1[..., I]; x1[I, ...]; x1[I, I]; x1[(I,)]; x1[I[::2]];
x1[I2.T]; x1[I2[::-1]]; x1[I2[:, ::-1]]; x1[IF[:, 1:]]; x2[I]; x2[I2]; x2[IF]; x2[:, I]; x2[:, I2]; x2[:, IF];
x2[..., I]; x2[I, J]; x2[I, i]; x2[i, I]; x2[I, i:]; x2[I2, J2]; x2[IC, IR]; x2[IC, I]; x2[I, None];
x2[None, I]; x2[:, None, I]; x2[I, None, :]; x2[I, None, J]; x2[I, ..., J]; x2[lo:hi, I]; x2[::-1, I];
x2[I, ::-1]; x2[I, ::2]; x2[I2, I]; x2[[0, 1], [1, 2]]; x2[([0, 1], [1, 2])]; x2[[0, 1]]; x2[[[0, 1], [1, 2]]];
x2[[]]; x2[[], I1]; x2[[], :]; x2[:, []]; x2[[], []]; x2[I, [0, i, 2]]; x2[IE]; x2[:, IE]; x2[IE, IE];
x2[I, [0, 1]]; x2[I, J, I]; x2[[0, 99]]; x2[:, [0, 4]]; x3[I]; x3[:, I]; x3[:, :, J]; x3[I, J]; x3[I, :, J];
x3[:, I, J]; x3[I, J, J]; x3[i, :, J]; x3[I, :, i]; x3[I, i]; x3[i, I]; x3[:, i, J]; x3[i, I, :];
x3[..., I, J]; x3[I, ..., J]; x3[I2, :, J2]; x3[IF, :, J2]; x3[:, IF]; x3[:, IC, IR]; x3[IC, :, IR];
x3[I, None, J]; x3[I, J, None]; x3[None, I, J]; x3[None, I, :, J]; x3[lo:, I, ::-1]; x3[::2, :, J];
x3[I[:2], lo:, k]; x3[k, lo:, J]; x3[I, :, 0:0]; x3[:, I, None, J]; x3[0, I, None, J]; x3[I1]; x3[I1, :, I1];
x3[:, I1]; x3[:, :, I1]; x3[I, 0]; x3[I, -1, ::-1]; x3[::-1, ::-1, J]; x3[::-1, IF]; x3[IT]; x3[:, IT];
x3[..., IT]; x3[IT, I8[:2]]; x3[b, I]; x3[I, b]; x3[:, I, b]; x3[b]; x3[False]; x3[:, True]; x3[True, True];
x3[False, I]; x4[I, :, J]; x4[:, I, :, k]; x4[:, I, J]; x4[I, :, :, k]; x4[k, :, J]; x4[:, k, :, I8];
x4[:, :, IF, 0]; x4[:, I, ..., [0, 1, 1]]; x4[I, J]; x4[..., I8, [1, 0, 1]]; x4[:, I2]; x4[:, IF];
x4[I2, :, IF]; x4[IC, :, IR]; x1[m1]; x1[~m1]; x1[m1 & (x1 > 3)]; x1[x1 > 2]; x1[m5]; x1[None, m1];
x1[m1, None]; x1[..., m1]; x1[m1, ...]; x1[mt, m1]; x1[m1 == False]; x2[m2]; x2[mf]; x2[m5]; x2[:, m4];
x2[m5, :]; x2[m5, m4]; x2[m5, 0]; x2[m5, i]; x2[m5, I]; x2[i, m4]; x2[lo:hi, m4]; x2[m5, lo:hi]; x2[m5, ::-1];
x2[m4]; x2[m2.T]; x2.T[m2.T]; x2[None, m2]; x2[..., m4]; x2[m5, None]; x2[mz]; x2[mz, mz[:4]]; x2[m2, None];
x2[m2[..., None]]; x2[:, m2]; x2[x2 > 7]; x2[x2[:, 0] > 5]; x2[:, x2[0] > 1]; x2[mt]; x2[mt, i]; x2[i, mt];
x2[m5 & ~m5]; x3[m3d]; x3[m2]; x3[:, m43]; x3[m5]; x3[:, m4]; x3[:, :, m3]; x3[m5, :, m3]; x3[m5, m4];
x3[m2, 0]; x3[m2, i]; x3[m2, J2[0, 0]]; x3[m2, ::-1]; x3[0, m43]; x3[m5, I, :]; x3[m5, :, J]; x3[I, :, m3];
x3[m5, ..., i]; x3[..., m3]; x3[m2[:, :3]]; x3[:, m4, ::2]; x3[m5][:, m4]; x3[m5, m4[:3]];
"""

#: What is written.
WRITES = """
x1[i] = 9; x1[j] = v; x1[ni] = 5; x1[nu] = 1.5; x1[z] = 3; x1[big] = 1; x1[...] = 3; x1[()] = y1; x1[b] = 3;
x1[nb] = y1; x1[mt] = 4; x1[False] = 3; x1[None] = y1; x1[i, ...] = 3; x2[i] = y4; x2[i] = 5; x2[i, j] = v;
x2[i][j] = v; x2[:, i] = y5; x2[..., j] = y5; x2[z] = y4; x2[lo:hi] = y4; x2[lo:hi][:, i] = 2; x2[hi:lo] = 5;
x2[neg:] = y2[:2]; x2[::-1] = x2; x2[:, ::-1] = x2.copy(); x1[::st] = 7; x1[hi::neg] = 3;
x1[lo:big] = x1[lo:big][::-1]; x1[1:] = x1[:-1]; x1[:-1] = x1[1:]; x1[lo:] = x1[:-lo]; x1[I] = 5; x1[I] = y3;
x1[J] = [1, 2, 3]; x1[I2] = y23; x1[I2] = y3; x1[IF] = y23; x1[IN] = y4; x1[I8] = y3; x1[U64] = v; x1[IE] = 3;
x1[IE] = []; x1[I1] = y1[:1]; x1[ID] = y6; x1[ID] += 1; x1[ID] += y6; x1[ID] *= y6; x1[IE] += 1;
x1[[0, 2]] = 5; x1[[]] = 3; x1[[i, j]] = [1, 2]; x1[[0, 0, 0]] = y3; x1[I] = y4; x1[I] = y23; x1[[9]] = 1;
x1[[0, 99]] = 1; x1[I] = x1[J]; x1[I] = x1[I[::-1]]; x1[I] += x1[J]; x1[IP] = x1; x1[IP] = x1[::-1];
x1[I] = x1[1:4]; x1[ID] = x1[:6]; x1[1:4] = x1[I]; x2[I] = 1; x2[I] = y4; x2[I] = y2[:3]; x2[:, I] = 3;
x2[:, I] = y5[:, None]; x2[:, I] = y2[:, :3]; x2[..., I] = y3; x2[I, J] = y3; x2[I, J] += 1; x2[I, i] = y3;
x2[i, I] = y3; x2[i, I] += y3; x2[I, lo:hi] = y3[:, None]; x2[lo:hi, J] = y23; x2[IC, IR] = y23;
x2[IC, IR] = y23[:, 0:1]; x2[I, None] = y4; x2[I] = x2[J]; x2[I] += x2[J]; x2[I, J] = x2[J, J];
x2[:, I] = x2[:, J]; x2[I2, J2] = y23; x2[I, ::-1] = y4; x2[::-1, J] = y5[:, None];
x2[[0, 0], [1, 1]] = [3, 4]; x2[IC, IR] += 1; x3[I, :, J] = 2; x3[I, :, J] = y4; x3[I, J] = y3;
x3[:, I, J] = y3; x3[:, :, J] += 1; x3[I, ..., J] = y34; x3[i, I] = y3; x3[I, :, k] = y4; x3[None, I] = 4;
x3[:, I, None, J] = 1; x3[I, J] = x3[J, J]; x3[I2, :, J2] = y4; x3[:, IC, IR] = y23; x3[:, IC, IR] += y23;
x3[I[:2], lo:, k] = 3; x1[m1] = 0; x1[m1] = v; x1[m1] = y4; x1[m1] = y3; x1[m1] = [1, 2, 3, 4]; x1[m1] += 1;
x1[m1] *= 2; x1[m1] += y4; x1[x1 > 2] = 0; x1[x1 > 2] -= 1; x1[m1] = y1[m1]; x1[m1] += y1[m1];
x1[m1] = x1[m1][::-1]; x1[m1] = x1[~m1]; x1[~m1] = x1[m1][:3]; x1[m5] = 1; x1[m1 & (x1 > 1)] = -1;
x1[mt, m1] = 3; x1[m1] = y23; x1[m1] = y1[:1]; x1[m1, None] = 3; x1[m1] = x1; x1[m1] = f; x2[m2] = 0;
x2[m2] = y2[m2]; x2[m2] += y2[m2]; x2[m2] = y7; x2[m5] = 1; x2[m5] = y4; x2[m5] = y2[:3]; x2[m5] += y4;
x2[m5, 0] = 1; x2[m5, 0] = y3; x2[m5, i] += 1; x2[m5, i] = y3; x2[:, m4] = 1; x2[:, m4] = y5[:, None];
x2[:, m4] *= 2; x2[i, m4] = 1; x2[m5, m4[:3]] = 3; x2[m5, lo:hi] = y3[:, None]; x2[m5, lo:hi] = 2;
x2[m5, lo:hi] += 1; x2[m5] = x2[m5][::-1]; x2[m4] = 1; x2[m2.T] = 1; x2.T[m2.T] = 5; x2[mf] = 3; x2[mf] = y7;
x2[mz] = 5; x2[mz] = y4; x2[m2] = y4; x2[..., m4] = 2; x2[m5, I] = y3; x2[m5, None] = 1; x2[x2 > 7] = x2[0, 0];
x2[x2[:, 0] > 5] = y4; x2[lo:hi][m5[lo:hi]] = 7; x2[:, i][m5] = 3; x2[:, i][m5] = y3; x2[m5][:, 0] = 5;
x2[i][m4] += 2; x2[m2] = np.where(m2, y2, 0)[m2]; x2[mt] = 1; x2[mt, i] = 7; x2[b, i] = 7; x3[m3d] = 0;
x3[m3d] = y3d[m3d]; x3[m2] = 0; x3[m2] = y3; x3[m2] += y3; x3[:, m43] = 2; x3[:, m43] = y5[:, None];
x3[m2, 0] = 1; x3[m2, k] = y7; x3[m5, :, J] = 3; x3[m5, :, m3[:3]] = 3; x3[..., m3] = 4; x3[m5, m4[:3]] = 1;
x3[0, m43] = 1; x3[m5, ..., k] = y4; p1[p1 > 3] = 0; p1[I] = 5; p1[I] = y3; p1[m1] = y4; p1[i] = 7.9;
p1[m1] += 1; p1[I] += 2; p1[m1] = 2.7; p1[I] = v; I[I2[0]] = 3; I[I] = I; I[I] = I[::-1]; IP[IP] = IP[::-1];
IP[IP] = 0; IP[IP[:3]] += 1; IP[IP % 2 == 0] = 0; m1[m1] = False; m1[~m1] = True; m1[I] ^= True;
q2[m2] = m2[m2]; m2[m5] = True; m2[m5, lo] = False; x2[I][0] = 3; x2[i, I][0] = 4; x2[x2 > 3][0] = 3;
x1.T[I] = 2; x2.T[I2[0] * 0] = y5; x2.reshape(-1)[I] = 7; x2.ravel()[m20] = 3; x2[I, J], x1[i] = 1, 2;
x1[i], x1[k] = x1[k], x1[i]; x1[I], x1[J] = x1[J], x1[I]; x2[[i, k]] = x2[[k, i]];
x2[:, [i, k]] = x2[:, [k, i]]; x1[[i, k]] = x1[[k, i]];
"""

#: Functions; a newline parts statements.
FUNCTIONS = """
return np.ix_(I, J)
return x2[np.ix_(I, J)]
return x2[np.ix_(m5, m4)]
return x2[np.ix_([0,1],[2,3])]
x2[np.ix_(I, J)] = 0
x2[np.ix_(m5, m4)] += 1
return np.ix_(m5, I)
return np.take(x1, I)
return np.take(x2, I)
return np.take(x2, I, axis=0)
return np.take(x2, J, 1)
return np.take(x2, i)
return np.take(x2, i, axis=1)
return np.take(x2, I2, axis=1)
return np.take(x2, IB, mode='clip')
return np.take(x2, IB, mode='wrap')
return np.take(x2, IB, axis=1, mode='wrap')
return np.take(x2, IB)
return x1.take(I)
return x2.take(J, axis=-1)
return np.take(x1, I, out=y3)
return np.take(x1, I, 0, y3, 'clip')
return np.take([1, 2, 3], I2[0] % 3)
return np.take(x2, [0, 1], axis=0)
return np.take(x1, IE)
return np.take(x3, I, axis=1)
return np.take(x1, m1)
return np.take(x1, F)
return x1.take(IB, mode='wrap')
return np.take(x1, U64)
return np.take(x2, 0, axis=0)
return np.take(x1, 3)
return np.take(x2.T, I, axis=1)
return np.take(x1, -1)
return np.take(x1, z)
return np.take(x1, I8)
return np.take(x2, I, axis=5)
return np.take(x1, 99)
return np.take(x1[:0], I)
return np.take(x1[:0], IE)
return np.take_along_axis(x2, A2, axis=1)
return np.take_along_axis(x2, A0, axis=0)
return np.take_along_axis(x1, I, 0)
return np.take_along_axis(x2, I, None)
return np.take_along_axis(x2, np.argsort(x2, axis=1), axis=1)
return np.take_along_axis(x2, np.argmax(x2, axis=1)[:, None], 1)
return np.take_along_axis(x2, I, 1)
return np.take_along_axis(x2, F, 1)
return np.take_along_axis(x3, np.argmax(x3, axis=1, keepdims=True), axis=1)
return np.take_along_axis(x2, A2, -1)
return np.take_along_axis(x2, A2)
return np.put_along_axis(x2, A2, 5, axis=1)
return np.put_along_axis(x2, A2, y2[:, :2], axis=1)
return np.put_along_axis(x2, A0, 7, 0)
return np.put_along_axis(x1, I, y3, 0)
return np.put_along_axis(x2, I, 3, None)
return np.put_along_axis(x2, np.argmax(x2, axis=1, keepdims=True), 99, axis=1)
return np.choose(c4, [x1, y7, y1])
return np.choose(c4, (x1, 5, y1))
return np.choose(c4, x2[:, 0])
return np.choose(c5, [x1, y7, y1], mode='clip')
return np.choose(c5, [x1, y7, y1], mode='wrap')
return np.choose(c5, [x1, y7, y1])
return c4.choose([x1, y7, y1])
return np.choose(i, [x1, y7, y1])
return np.choose(m1, [x1, y1])
return np.choose(1, [x1, y1])
return np.choose(c4, [1, 2, 3])
return np.choose(I2 % 2, [10, 20])
return np.compress(m1, x1)
return np.compress(m5, x2, axis=0)
return np.compress(m4, x2, axis=1)
return np.compress([1, 0, 1], x1)
return x1.compress(m1)
return np.compress(m20, x2)
return np.compress([True, False], x2, axis=0)
return np.compress(m1, x1[:3])
return np.compress(I2[0], x1)
return np.compress(m5, x2, 0, out=y2[:3])
return np.extract(m2, x2)
return np.extract(m1, x1)
return np.extract(x2 % 3, x2)
return np.extract([1, 0, 1], x1[:3])
return np.select([x1 > 4, x1 < 2], [x1, x1 * 2])
return np.select([x1 > 4, x1 < 2], [x1, x1 * 2], default=-1)
return np.select([m1], [x1])
return np.select([x1 > 4, x1 < 2], [1, 2], 7.5)
return np.select([m1, ~m1], [p1, 0.5])
return np.piecewise(x1, [x1 < 2, x1 >= 2], [-1, 1])
return np.piecewise(x1, [x1 < 2, x1 >= 2], [lambda t: -t, lambda t: t * t])
return np.piecewise(x1, [x1 < 2], [lambda t: -t, lambda t: t + 1])
return np.piecewise(x1, [x1 < 2], [3])
return np.piecewise(p1, [p1 < 2], [lambda t: t * 0.5, 9])
return np.nonzero(x1)
return np.nonzero(p1)
return np.argwhere(m2)
return np.argwhere(x1 > 3)
return np.flatnonzero(x2 > 5)
return np.where(x1 > 2)[0]
return np.argwhere(x2)
return np.count_nonzero(m2)
return np.count_nonzero(x2, axis=0)
return np.argwhere(z)
return np.nonzero(z)
return x2[np.nonzero(x2 > 3)]
x2[np.nonzero(x2 > 3)] = 0
x2[np.where(x2 > 3)] += 1
return x1[np.where(x1 > 3)]
return x1[np.flatnonzero(m1)]
return np.where(m1, x1, 0)
return np.where([True, False], 1, 2)
return np.nonzero(i)
return np.argwhere(m1).ravel()
return np.indices((2, 3))
return np.indices((2, 3), sparse=True)
return np.indices((2, 3), dtype=np.float32)
return np.indices(x2.shape)
return np.indices((i, 3))
return np.indices(x2.shape, sparse=True)
r, c = np.indices(x2.shape) | return x2[r, c] + r
return np.mgrid[0:3, 0:2]
return np.mgrid[0:1:5j]
return np.mgrid[0:3]
return np.mgrid[0:1:3j, 0:2:4j]
return np.ogrid[0:3, 0:2]
return np.ogrid[0:1:5j]
return np.mgrid[0:i, 0:3]
return np.ogrid[0:x2.shape[0], 0:x2.shape[1]]
return np.mgrid[0:x2.shape[0], 0:x2.shape[1]]
y, x = np.mgrid[:x2.shape[0], :x2.shape[1]] | return x2 + y * x
return np.mgrid[0:x1.shape[0]:2]
yy, xx = np.ogrid[-2:3, -2:2] | return x2 * (yy * yy + xx)
return np.r_[x1, x1]
return np.r_[x1, 1, 2]
return np.r_[0:3, x1]
return np.r_[i, x1]
return np.r_[0:i, x1]
return np.c_[x1, x1]
return np.c_[x1, x1 * 2, np.ones(7)]
return np.r_['0,2', x1, x1]
return np.c_[x2, x2]
return np.r_[x2, x2]
return np.r_[1:4, 0, 4]
return np.r_[0:1:5j]
return np.c_[1:4, 2:5]
return x1[np.s_[1:3]]
return x2[np.index_exp[1:3, 0]]
return np.r_[x1[:2], i, x1[2:]]
return np.r_['1', x2, x2]
return np.r_[-1:1:3j, x1]
return np.meshgrid(x1, y3)
return np.meshgrid(x1, y3, indexing='ij')
return np.meshgrid(x1, y3, sparse=True)
return np.meshgrid(x1, y3, y4, indexing='ij')
return np.meshgrid(x1)
X, Y = np.meshgrid(x1, y3) | return X * Y
return np.meshgrid(np.arange(3), x1, sparse=True, indexing='ij')
return np.meshgrid(x1, 3)
return np.meshgrid(x2, y3)
return np.tri(3)
return np.tri(3, 4, 1)
return np.tri(x2.shape[0])
return np.tri(3, dtype=bool)
return np.tri(i, k=-1)
return np.tril(x2)
return np.triu(x2)
return np.tril(x2, -1)
return np.triu(x2, i)
return np.tril(x3)
return np.triu(x1)
return np.tril(x2, k)
return np.tril_indices(3)
return np.triu_indices(4, 1)
return x2[np.tril_indices(4)]
return x2[np.triu_indices_from(x2[:4])]
return np.tril_indices(x2.shape[0])
x2[np.triu_indices(4, 1)] = 0
return np.tril_indices_from(x2)
return np.triu_indices(x2.shape[1], k=1)
return x2[:4][np.triu_indices(x2.shape[1], 1)].sum()
return np.diag_indices(3)
return x2[np.diag_indices(4)]
x2[np.diag_indices(4)] = 0
return np.diag_indices_from(x2[:4])
return np.diag_indices(x2.shape[1])
return np.diag(x1)
return np.diag(x1, k)
return np.diag([i, k])
return np.diag(y3, -1)
return np.unravel_index(i, (3, 4))
return np.unravel_index(np.argmax(x2), x2.shape)
return x2[np.unravel_index(np.argmax(x2), x2.shape)]
return np.unravel_index(x2.argmin(), (5, 4))
return np.unravel_index(I1, (3, 4), order='F')
return np.ravel_multi_index((I1, I1), (5, 4))
return np.ravel_multi_index((i, k), (5, 4))
return np.ravel_multi_index((I, J), (5, 4), mode='wrap')
return np.ravel_multi_index((I, J), (5, 4), mode='clip')
return np.ravel_multi_index((i, k), x2.shape)
return np.unravel_index(99, (3, 4))
return np.unravel_index(I, (3, 4))
return np.ravel_multi_index((I1, I1), (5, 4), order='F')
return np.ravel_multi_index([I1, I1], x2.shape)
return np.append(x1, 1)
return np.append(x1, y3)
return np.append(x2, y2, axis=0)
return np.append(x2, y4[None], axis=0)
return np.append(x2, y3)
return np.append(x1, [1, 2])
return np.append(i, x1)
return np.append([], x1)
return np.resize(x1, (3, 4))
return np.resize(x2, 5)
return np.resize(x1, 30)
return np.resize(x1, (2, 2))
return np.resize(x1, 0)
return np.resize(x1, i)
return np.resize(x1[:0], 3)
return np.repeat(x1, 2)
return np.repeat(x2, 2)
return np.repeat(x2, 2, axis=0)
return np.repeat(x2, 2, axis=1)
return np.repeat(x1, c7)
return np.repeat(x2, [1, 0, 2, 0, 1], axis=0)
return np.repeat(x2, c7[:5], axis=0)
return np.repeat(x1, i)
return x1.repeat(3)
return np.repeat(3, 4)
return np.repeat(x1, [2])
return np.repeat(x1, [1, 2])
return np.repeat(x1, -1)
return np.repeat(i, 3)
return np.repeat(x2, i, axis=1)
return np.repeat(x1, m1)
return np.repeat(x1, 0)
return np.repeat(x2, [2, 1, 0, 3], axis=1)
return x1.item(2)
return x1.item(i)
return x2.item(1, 2)
return x2.item(7)
return x1[:1].item()
return x2.item(i, k)
return x2.item((1, 2))
return x1.item()
return x1.item(99)
return p1.item(2)
return z.item()
return m1.item(0)
return x2.item(-1)
return x2.T.item(5)
return x2.repeat(2, 0)
return m1.nonzero()[0]
return c4.choose(x1, y7, y1)
"""
