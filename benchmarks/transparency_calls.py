"""Calls that people make, one a line: each is evaluated with fresh values, inside of a recording and outside."""

VALUES = """
import array, collections, copy, functools, io, itertools, json, math, operator, pickle, random, sys, warnings
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch import Tensor
x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
y = torch.arange(6).reshape(2, 3)
s = torch.tensor(2.5)
one = torch.tensor(1)
m = x > 0
i = torch.tensor([1, 0])
e = torch.empty(0)
c = torch.tensor([1 + 2j, 3 - 1j])
h = x.half()
b = torch.tensor([True, False])
p = nn.Parameter(torch.tensor([1.0, 2.0]))
r = torch.tensor([1.0, 2.0], requires_grad=True)
t = r * 3
a = np.arange(6.0).reshape(2, 3)
sp = torch.eye(3).to_sparse()
me = torch.empty(2, 3, device="meta")
q = torch.tensor([3, 1, 2])
"""

CREATION = """
torch.tensor(1)
torch.tensor(1.5)
torch.tensor(True)
torch.tensor(1j)
torch.tensor([])
torch.tensor([[]])
torch.tensor([1, 2.0])
torch.tensor([True, 2])
torch.tensor([[1, 2], [3, 4]])
torch.tensor([[1, 2], [3]])
torch.tensor((1, (2, 3)))
torch.tensor(((1,), (2,)))
torch.tensor([x[0, 0], x[0, 1]])
torch.tensor([x[0], x[1]])
torch.tensor([s, s])
torch.tensor([s, 1])
torch.tensor([1, s])
torch.tensor([[s], [s]])
torch.tensor([one, one])
torch.tensor((s, s))
torch.tensor([b[0], b[1]])
torch.tensor([c[0]])
torch.tensor([p[0], p[1]])
torch.tensor([t[0]])
torch.tensor([e])
torch.tensor([e, e])
torch.tensor([me])
torch.tensor(x)
torch.tensor(s)
torch.tensor(p)
torch.tensor(m)
torch.tensor(a)
torch.tensor([a, a])
torch.tensor([a[0], a[1]])
torch.tensor([np.float32(1), np.float64(2)])
torch.tensor(np.float32(1))
torch.tensor(np.array([s.item()]))
torch.tensor([a[0, 0], s])
torch.tensor([[x[0], x[1]], [x[1], x[0]]])
torch.tensor([range(3), range(3)])
torch.tensor(range(3))
torch.tensor(array.array("f", [1, 2]))
torch.tensor("text")
torch.tensor(["text"])
torch.tensor(None)
torch.tensor([None])
torch.tensor({1: 2})
torch.tensor({1, 2})
torch.tensor(b"bytes")
torch.tensor(bytearray(b"bytes"))
torch.tensor(memoryview(b"bytes"))
torch.tensor([x, 1])
torch.tensor([1, x])
torch.tensor(collections.deque([1, 2]))
torch.tensor(collections.UserList([s, s]))
torch.tensor([float("nan"), float("inf")])
torch.tensor(10**30)
torch.tensor([10**30])
torch.tensor([1, 2], dtype=torch.float16)
torch.tensor([s, s], dtype=torch.int64)
torch.tensor([1.0], requires_grad=True)
torch.tensor([1], requires_grad=True)
torch.tensor(data=[1])
torch.tensor()
torch.tensor([1], dtype="x")
torch.Tensor([s, s])
torch.Tensor([x[0], x[1]])
torch.Tensor([1, 2])
torch.Tensor(s)
torch.Tensor(x)
torch.Tensor(one)
torch.Tensor([one, one])
torch.Tensor(a)
torch.Tensor()
torch.FloatTensor([s, s])
torch.FloatTensor([x[0, 0], 1.0])
torch.FloatTensor([x[0], x[1]])
torch.LongTensor([one, one])
torch.LongTensor([one, 2])
torch.LongTensor(x)
torch.BoolTensor([b[0], b[1]])
torch.as_tensor([s, s])
torch.as_tensor([x[0], x[1]])
torch.as_tensor(a)
torch.as_tensor(x) is x
torch.as_tensor([a, a])
torch.as_tensor([1, s])
torch.asarray([s, s])
torch.asarray([x[0], x[1]])
torch.asarray(a)
torch.asarray(x)
torch.asarray(3)
torch.asarray(s, copy=True)
torch.asarray(array.array("i", [1, 2]))
x.new_tensor([s, s])
x.new_tensor([x[0], x[1]])
x.new_tensor([1, 2])
x.new_tensor(x)
x.new_tensor(a)
x.new_tensor([[s, 1], [2, s]])
x.new([s, s])
x.new(2, 3).shape
x.new_zeros(one, 3)
x.new_full((2,), s)
x.new_full((2,), 2)
torch.full((2, 2), s)
torch.full((2, 2), one)
torch.zeros(one)
torch.zeros(one, 2)
torch.zeros([one, 2])
torch.zeros((one, one))
torch.zeros(torch.Size([1, 2]))
torch.zeros(y)
torch.zeros(q)
torch.zeros([q, 1])
torch.zeros(s)
torch.ones(2, one)
torch.arange(s)
torch.arange(one, 5, one)
torch.linspace(s, 5, 4)
torch.eye(one + 2)
torch.empty(one, 3).shape
torch.randperm(one + 4)
torch.from_numpy(a)
torch.from_numpy(x)
torch.frombuffer(b"12345678", dtype=torch.uint8)
torch.complex(x, x)
torch.scalar_tensor(s)
torch.scalar_tensor(2)
torch.stack([s, s])
torch.stack([x[0], x[1]])
torch.cat([x, x])
torch.cat(x)
torch.cat((x,))
torch.stack(x)
torch.vstack([x, x])
torch.hstack(tuple(x))
torch.atleast_1d(s)
torch.meshgrid(x[0], x[1], indexing="ij")
torch.broadcast_tensors(x, s)
torch.cartesian_prod(i, i)
torch.block_diag(x, x)
torch.Size(x.shape)
torch.Size(q)
torch.Size([one, 2])
torch.rand(one, generator=torch.Generator().manual_seed(0))
nn.Parameter(x)
nn.Parameter([1.0])
nn.Buffer(x)
nn.utils.rnn.pad_sequence([x[0], x[0, :2]])
nn.utils.rnn.pack_sequence([x[0], x[0, :2]])
torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0])
torch.sparse_coo_tensor(torch.stack([i, i]), [s, s])
torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
torch.nested.nested_tensor([x[0], x[0, :2]]).is_nested
torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
"""

ARRAYS = """
np.asarray(x)
np.array(x)
np.array(x, dtype=np.float64)
np.array([x[0], x[1]], dtype=object).shape
np.array([s, s])
np.array([s.item(), 2])
np.asarray(p)
np.asarray(t)
np.asarray(me)
np.asarray(c)
np.asarray(torch.conj(c))
np.asarray(torch._neg_view(x))
np.asarray(sp)
np.zeros(q)
np.zeros(one)
np.zeros((one, 2))
np.zeros([one, one])
np.zeros(torch.tensor([2, 3]))
np.zeros(s)
np.ones(torch.tensor([2.0, 3.0]))
np.empty(y).shape
np.arange(one)
np.arange(s)
np.full(one, s)
np.reshape(a, q)
np.reshape(a, (one + 1, 3))
np.reshape(a, torch.tensor([3, 2]))
np.sum(x)
np.mean(x)
np.max(x)
np.add(x, a)
np.add(a, x)
np.exp(x)
np.exp(t)
np.stack([x, x])
np.concatenate([x, x])
np.dot(a, x.T)
np.random.permutation(one)
a + x
x + a
a * x
a @ x.T
a == x
a[i]
a[m]
a[one]
a[b]
a[y[0]]
a[x]
a[i.numpy()]
a.take(one)
np.take(a, i)
np.where(m, x, 0)
np.isnan(x)
np.allclose(x, a)
np.shape(x)
np.ndim(x)
np.size(x)
np.iterable(x)
np.iterable(s)
np.float32(s)
np.float64(one)
np.int64(one)
np.int64(s)
np.asarray(list(x[0]))
np.from_dlpack(x)
np.from_dlpack(t)
torch.from_dlpack(x)
torch.from_dlpack(a)
torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
x.__dlpack_device__()
type(x.__dlpack__()).__name__
type(t.detach().__dlpack__()).__name__
t.__dlpack__()
x.__array__()
x.__array__(np.float64)
x.__array_priority__
hasattr(x, "__cuda_array_interface__")
x.__cuda_array_interface__
x.numpy()
t.numpy()
t.numpy(force=True)
p.numpy()
me.numpy()
sp.numpy()
x.numpy(True, 1)
x.tolist()
s.tolist()
e.tolist()
m.tolist()
c.tolist()
h.tolist()
me.tolist()
memoryview(x.numpy()).shape
bytes(x[0].byte().tolist())
array.array("f", x[0])
array.array("f", x[0].tolist())
bytearray(torch.tensor([1, 2, 3], dtype=torch.uint8))
bytes(torch.tensor([1, 2, 3], dtype=torch.uint8))
bytes(torch.tensor([1, 2, 3]))
bytes(one)
"".join(str(int(v)) for v in q)
json.dumps(x.tolist())
json.dumps(s)
"""

INDEXING = """
x[0]
x[-1]
x[5]
x[0, 1]
x[0][1]
x[0, 1, 2]
x[:]
x[...]
x[None]
x[()]
x[True]
x[False]
x[1:]
x[::-1]
x[0:2:2, 1]
x[:, 0]
x[..., 0]
x[..., None]
x[slice(0, 1)]
x[slice(one)]
x[one:]
x[:one]
x[s:]
x[one]
x[one, one]
x[s]
x[i]
x[i, i]
x[i, 0]
x[:, i]
x[[0, 1]]
x[[0, 1], [1, 2]]
x[[True, False]]
x[[[0, 1]]]
x[(0, 1)]
x[[one, 0]]
x[(one, 0)]
x[[i, i]]
x[(i, i)]
x[range(2)]
x[np.array([0, 1])]
x[np.int64(1)]
x[np.array(1)]
x[np.array([True, False])]
x[a > 2]
x[m]
x[m, None]
x[m[:, 0]]
x[b]
x[b, i[:1]]
x[m.byte()]
x[~m]
x[m & m]
x[m.T]
x[torch.ones(5, dtype=torch.bool)]
x[torch.tensor(True)]
x[torch.tensor(False)]
x[e]
x[e.long()]
x["text"]
x[1.5]
x[{}]
x[None, None, 0]
x[0, ..., 0]
x[..., ...]
x[x]
x[p]
x[q]
x[torch.tensor([5])]
s[0]
s[()]
s[None]
s[...]
e[0]
e[m]
me[0]
me[m]
me[i]
sp[0]
sp[0, 0]
t[0]
t[m[0, :2]]
p[i]
p[b]
[v for v in x]
[v for v in e]
[v for v in s]
list(x)
tuple(x)
list(zip(x, y))
dict(enumerate(x[0].tolist()))
(lambda u, v: u + v)(*x)
max(x[0])
min(x[0])
sum(x[0])
sum(x)
sorted(x[0])
any(x[0])
all(m[0])
reversed(x[0])
list(reversed(x))
[*x[0]]
set(x[0].tolist())
next(iter(x))
iter(s)
len(x)
len(s)
len(e)
1.0 in x
s in x
x[0] in x
x in x
"text" in x
None in x
x in [x]
s in [s, one]
one in [1, 2]
list(range(one))
list(range(s))
range(10)[one]
[1, 2, 3][one]
[1, 2, 3][s]
[1, 2, 3][b[0]]
[1, 2, 3][i]
[1, 2, 3][:one]
(1, 2, 3)[q[1]]
"text"[one]
{1: 2}[one]
{1: 2}.get(one)
operator.getitem(x, 0)
operator.getitem(x, m)
operator.index(one)
operator.index(s)
operator.concat(x, x)
operator.concat(x, a)
operator.iconcat(x, x)
operator.countOf(x[0], 1.0)
operator.indexOf(x[0], 3.0)
operator.contains(x, 1.0)
operator.length_hint(x)
operator.itemgetter(0)(x)
operator.itemgetter(0, 1)(x)
operator.truth(s)
operator.not_(s)
isinstance(x, collections.abc.Sequence)
isinstance(x, collections.abc.Iterable)
isinstance(x, collections.abc.Hashable)
isinstance(x, collections.abc.Container)
Tensor.__getitem__(x, 0)
Tensor.__getitem__(x, m)
x.__getitem__((0, 1))
super(Tensor, x).__getitem__(m)
list(map(float, x[0]))
list(itertools.chain(x, x))
list(itertools.islice(x, 1))
random.choice(x)
random.Random(0).sample(list(x), 1)
random.Random(0).choice(x)
torch.utils.data.default_collate([x, x])
torch.utils.data.default_collate([(x, 1), (x, 2)])
torch.utils.data.TensorDataset(x, y)[0]
list(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 1))
list(torch.utils.data.DataLoader(x, 2))
torch.utils.data.Subset(x, [0])[0]
set_item(x, 0, 1)
set_item(x, (0, 1), s)
set_item(x, m, 0)
set_item(x, m, s)
set_item(x, m, x[m])
set_item(x, m, torch.ones(1, 2))
set_item(x, m, [1, 2, 3])
set_item(x, m, a[a > 2][:3])
set_item(x, m[0], 1)
set_item(x, i, x)
set_item(x, i, 1)
set_item(x, [0, 1], [[1, 2, 3], [1, 2, 3]])
set_item(x, slice(None), y)
set_item(x, ..., 7)
set_item(x, None, 7)
set_item(x, True, 7)
set_item(x, 9, 7)
set_item(x, 0, "text")
set_item(x, "text", 0)
set_item(x, one, one)
set_item(x, (i, i), s)
set_item(x, b, x[:1])
set_item(p, 0, 1)
set_item(t, 0, 1)
set_item(r, 0, 1)
set_item(me, 0, 1)
set_item(s, (), 1)
set_item(y, m, 1.5)
set_item(x, m, c[:1])
operator.setitem(x, 0, 5)
operator.delitem(x, 0)
x.__delitem__(0)
x.__setitem__(0, 1)
x.__setitem__(m, x[m])
"""

DUNDERS = """
bool(s)
bool(x)
bool(e)
bool(b[0])
bool(me)
bool(p[0])
not s
s and x
e or 1
1 if s else 2
float(s)
float(one)
float(x)
float(p[0])
float(c[0])
float(me)
int(s)
int(b[0])
int(x)
complex(s)
complex(c[0])
complex(x)
round(s)
round(s, 1)
math.floor(s)
math.ceil(s)
math.trunc(s)
math.sqrt(s)
math.sqrt(x)
math.isnan(s)
math.exp(one)
abs(x)
-x
+x
~m
~x
x + 1
1 + x
x - s
1 - x
x * x
2 * x
x / 2
2 / x
x // 2
7 // x
x % 2
7 % x
x ** 2
2 ** x
pow(x, 2)
pow(one, 2, 3)
divmod(x, 2)
divmod(7, x)
x @ x.T
x @ x
[1] @ x
x << 1
y << 1
1 << y
y >> 1
y & 1
1 & y
y | m
y ^ 1
x == x
x == None
x != 1
x == "text"
x < s
1 < x
x >= y
x < "text"
x < None
hash(x) == id(x)
x is x
x == a
[1, 2] + x
x + [1, 2]
x + "text"
"text" + x
x + None
"%s" % s
"%.2f" % s
"%d" % one
"%d" % x
f"{s}"
f"{s:.2f}"
f"{x}"
f"{x:.2f}"
f"{p}"
f"{p[0]:.1e}"
f"{t}"
f"{s!r:>20}"
format(s)
format(one, "05d")
format(x, "")
"{:.3f}".format(s)
"{}".format(x)
str(x)
repr(x)
repr(p)
repr(t)
repr(e)
repr(me)
repr(sp)
repr(c)
repr(h)
repr(b)
repr(torch.ones(100, 100))
repr([x, s])
repr({"x": x})
str(torch.Size([1, 2]))
x.__len__()
x.__bool__()
s.__bool__()
s.__float__()
s.__int__()
one.__index__()
s.__index__()
s.__complex__()
x.__contains__(1.0)
x.__repr__()
s.__format__(".1f")
x.__iter__()
x.__hash__() == id(x)
x.__dir__() == dir(x)
x.__abs__()
x.__rsub__(1)
x.__rpow__(2)
x.__rdiv__(2)
x.__iadd__(1)
x.__imul__(s)
x.__ior__(1)
y.__ior__(1)
x.__matmul__(x.T)
x.__rmatmul__(x.T)
x.__ipow__(2)
x.__reversed__()
x.__deepcopy__({})
x.__reduce_ex__(2)[0].__name__
x.__sizeof__() > 0
x.__class__
x.__doc__ is Tensor.__doc__
x.__module__
Tensor.__dict__.keys() == type(x).__dict__.keys()
sorted(dir(Tensor)) == sorted(set(dir(Tensor)))
vars(x)
vars(p)
len(vars(Tensor))
Tensor.item.__name__
Tensor.item.__doc__ == torch._C.TensorBase.item.__doc__
Tensor.item is torch._C.TensorBase.item
Tensor.item.__objclass__.__name__
Tensor.__getitem__ is torch._C.TensorBase.__getitem__
type(Tensor.__getitem__).__name__
type(Tensor.item).__name__
type(torch.nonzero).__name__
torch.nonzero.__module__
torch.nonzero.__qualname__
torch.where is torch._C._VariableFunctions.where
torch.nonzero is torch._C._VariableFunctions.nonzero
torch.unique.__name__
"item" in vars(Tensor)
"__getitem__" in vars(Tensor)
callable(Tensor.to)
copy.copy(x)
copy.deepcopy(x)
copy.deepcopy(p)
copy.deepcopy(t)
copy.deepcopy(r)
copy.deepcopy([x, x])
copy.deepcopy({"p": p})
copy.deepcopy(nn.Linear(2, 2)).state_dict().keys()
copy.deepcopy(torch.nonzero) is torch.nonzero
pickled(x)
pickled(p)
pickled(r)
pickled(t)
pickled([x, s])
pickled(e)
pickled(x.T)
pickled(c)
pickled(sp)
pickled(x.dtype)
pickled(torch.device("cpu"))
pickled(torch.Size([1]))
pickled(torch.nonzero) is torch.nonzero
pickled(torch.where) is torch.where
pickled(torch.unique) is torch.unique
pickled(Tensor.item)
pickled(Tensor.to)
pickled(functools.partial(torch.nonzero, as_tuple=True))(x)
pickled(functools.partial(torch.equal, x))(x)
pickled(nn.Linear(2, 2)).state_dict().keys()
pickled(nn.Sequential(nn.ReLU()))
saved(x)
saved(p)
saved({"p": p, "n": 1})
saved(nn.Linear(2, 1).state_dict()).keys()
saved(torch.optim.SGD([p], 0.1, momentum=0.9).state_dict())
torch.jit.annotate(int, 1)
"""

METHODS = """
s.item()
x.item()
e.item()
one.item()
b[0].item()
c[0].item()
h[0, 0].item()
p[0].item()
t[0].item()
me.item()
sp.item()
s.item(1)
Tensor.item(s)
Tensor.item(3)
Tensor.item()
x.cpu()
x.cpu() is x
s.cpu() is s
p.cpu() is p
r.cpu() is r
t.cpu() is t
type(p.cpu())
t.cpu().requires_grad
r.cpu().is_leaf
gradient(lambda v: v.cpu())
gradient(lambda v: v.cpu() * v)
gradient(lambda v: v.to("cpu"))
gradient(lambda v: v.cpu().double())
gradient(lambda v: v.cuda() if False else v)
gradient(lambda v: v[v > 0])
gradient(lambda v: v.masked_select(v > 0))
gradient(lambda v: v.clone().index_put_((torch.tensor([0]),), torch.tensor(1.0)))
leaf_after(lambda v: v.cpu())
optimized(lambda v: v.cpu())
optimized(lambda v: v.to("cpu"))
x.cpu(memory_format=torch.contiguous_format)
x.cpu(1)
x.cpu("text")
x.to("cpu")
x.to("cpu") is x
x.to(torch.device("cpu"))
x.to(torch.float64)
x.to("cpu", torch.float64)
x.to(y)
x.to(device="cpu", dtype=torch.int64)
x.to(other=y)
x.to("meta").shape
x.to("nowhere")
x.to()
x.to(1.5)
x.to("cpu", "cpu")
x.to(dtype="x")
x.to(None)
x.to(copy=True)
x.to("cpu", copy=True) is x
x.cuda("text")
x.cuda(1.5)
x.cuda(None, None, None, None)
x.double()
x.long()
x.type()
x.type(torch.int64)
x.type("torch.DoubleTensor")
x.type_as(y)
x.is_cpu
x.is_cuda
x.device
x.get_device()
x.is_pinned()
x.nonzero()
x.nonzero(as_tuple=True)
torch.nonzero(x)
torch.nonzero(x, as_tuple=True)
torch.nonzero(x, out=torch.empty(0, dtype=torch.int64))
torch.nonzero(input=x)
torch.nonzero()
torch.nonzero(1)
torch.nonzero(a)
torch.nonzero(me)
torch.argwhere(x)
torch.where(m)
torch.where(m, x, 0)
torch.where(m, 0, x)
torch.where(m, x, a)
torch.where(condition=m)
torch.where(m, x)
torch.where(1)
x.where(m, s)
torch.unique(x)
torch.unique(x, return_inverse=True, return_counts=True)
torch.unique(x, dim=0)
torch.unique(x, dim=7)
torch.unique(me)
x.unique()
x.unique(sorted=False)
x.unique(return_counts=True)
torch.unique_consecutive(y)
x.unique_consecutive(dim=1)
torch.masked_select(x, m)
x.masked_select(m)
x.masked_select(mask=m)
x.masked_fill(m, s)
x.masked_fill(m, x)
x.masked_scatter(m, x)
torch.bincount(q)
q.bincount(minlength=5)
torch.bincount(x)
torch.equal(x, x)
torch.equal(x, s)
torch.equal(x, 1)
x.equal(x)
torch.allclose(x, x)
torch.allclose(x, y)
x.allclose(x, equal_nan=True)
torch.is_nonzero(s)
torch.is_nonzero(x)
s.is_nonzero()
torch.isclose(x, x)
torch.repeat_interleave(x, 2)
torch.repeat_interleave(x, i, dim=0)
torch.repeat_interleave(i)
x.repeat_interleave(torch.tensor([1, 2]), 0, output_size=3)
F.one_hot(i)
F.one_hot(i, 4)
F.one_hot(i, num_classes=1)
F.one_hot(x)
sp.coalesce()
sp.to_dense()
sp.values()
x.to_sparse()
x.histc()
torch.histogram(x, 3)
torch.linalg.inv(torch.eye(2))
torch.linalg.inv(torch.zeros(2, 2))
torch.linalg.cholesky(-torch.eye(2))
torch.multinomial(x.abs(), 1, generator=torch.Generator().manual_seed(0)).shape
torch.multinomial(x, 1)
torch.distributions.Normal(s, s).log_prob(s)
torch.distributions.Normal(s, -s)
torch.distributions.Categorical(probs=x.abs()).entropy()
nn.utils.clip_grad_norm_([p], 1.0)
nn.utils.clip_grad_norm_([grad_of(p)], 1.0, error_if_nonfinite=True)
nn.utils.rnn.pack_padded_sequence(x[None], torch.tensor([2]), batch_first=True).data
F.cross_entropy(x, i)
F.cross_entropy(x, i, ignore_index=1)
F.nll_loss(x, q)
F.embedding(i, x)
F.embedding(torch.tensor([9]), x)
F.interpolate(x[None, None], scale_factor=s.item()).shape
F.ctc_loss(torch.zeros(2, 1, 3), torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
torch.autograd.grad(t.sum(), r)
torch.autograd.grad(t, r)
torch.autograd.grad(t.sum(), x)
torch.autograd.backward(t.sum())
t.backward()
t.sum().backward()
x.sum().backward()
backward_error()
torch.autograd.gradcheck(lambda v: v[v > 0], torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))
torch.autograd.functional.jacobian(lambda v: v * v, x[0])
torch.autograd.functional.hessian(lambda v: (v * v).sum(), x[0])
torch.func.grad(lambda v: v.sum())(x)
torch.func.vmap(lambda v: v * 2)(x)
torch.func.vmap(lambda v: v.item())(x[0])
torch.func.vmap(lambda v: torch.nonzero(v))(x)
torch.func.vmap(lambda v: torch.where(v > 0, v, 0))(x)
torch.func.vmap(lambda v: v[v > 0])(x)
torch.func.jvp(lambda v: v * v, (x,), (x,))
torch.func.vjp(lambda v: v * v, x)[0]
torch.func.jacfwd(lambda v: v * v)(x[0])
torch.func.jacrev(lambda v: v * v)(x[0])
torch.func.hessian(lambda v: (v**3).sum())(x[0])
torch.func.linearize(lambda v: v * v, x)[0]
torch.func.functional_call(nn.Linear(2, 1), {"weight": torch.ones(1, 2), "bias": torch.ones(1)}, torch.ones(1, 2))
torch.func.functionalize(lambda v: v.clone().add_(1))(x)
list(torch.overrides.get_overridable_functions()) != []
torch.overrides.is_tensor_method_or_property(Tensor.item)
torch.overrides.resolve_name(torch.nonzero)
torch.overrides.resolve_name(Tensor.item)
torch.overrides.resolve_name(Tensor.__getitem__)
torch.nonzero in torch.overrides.get_testing_overrides()
Tensor.item in torch.overrides.get_testing_overrides()
Tensor.__getitem__ in torch.overrides.get_testing_overrides()
torch.set_printoptions()
torch.get_default_dtype()
torch.get_default_device()
torch.tensor(1.0).device
torch.device("cpu")
torch.device("cpu", 0)
torch.device(torch.device("cpu"))
torch.device("meta")
torch.device("nowhere")
torch.device(1.5)
torch.device()
{torch.device("cpu"): 1}[x.device]
{type(torch.device("cpu")): 1}[type(x.device)]
type(x.device) is torch.device
isinstance(x.device, torch.device)
issubclass(torch.device, object)
torch.device.__name__
repr(torch.device("cpu"))
hash(torch.device("cpu")) == hash(x.device)
in_context(torch.device("meta"), lambda: torch.ones(2).device)
in_context(torch.device("cpu"), lambda: torch.ones(2).device)
with_default("meta", lambda: torch.ones(2).device)
with_default("cpu", lambda: torch.ones(2).device)
with_default("cpu", torch.get_default_device)
torch.zeros(2, device="meta").device
torch.zeros(2, device="cpu").device
torch.zeros(2, device=torch.device("meta")).device
torch.zeros(2, device="nowhere")
torch.zeros(2, device=1.5)
torch.ones_like(x, device="meta").device
nn.Linear(2, 2, device="meta").weight.device
nn.Linear(2, 2).to("meta").weight.device
nn.Linear(2, 2).to("nowhere")
nn.Linear(2, 2).to(torch.float64).weight.dtype
nn.Linear(2, 2).to(1.5)
nn.Linear(2, 2).cpu().weight.device
nn.Linear(2, 2).double().weight.dtype
torch.Generator().device
torch.Generator("cpu").device
torch.accelerator.current_accelerator() is None or 1
torch.no_grad()(lambda: x.item())()
torch.inference_mode()(lambda: (x + 1).is_inference())()
torch.autocast("cpu", torch.bfloat16).fast_dtype
autocast_dtype()
torch.amp.GradScaler("cpu", enabled=False).scale(s)
threaded(lambda: s.item())
threaded(lambda: x[m])
torch.futures.Future().done()
traceback_of(lambda: x.item())
traceback_of(lambda: x[9])
traceback_of(lambda: torch.nonzero(1))
traceback_of(lambda: bool(x))
traceback_of(lambda: x.to("nowhere"))
traceback_of(lambda: torch.unique(x, dim=7))
traceback_of(lambda: f"{x:.2f}")
traceback_of(lambda: x.sum().backward())
traceback_of(lambda: torch.zeros(2, device="nowhere"))
context_of(lambda: x.item())
context_of(lambda: x.to(1.5))
"""
