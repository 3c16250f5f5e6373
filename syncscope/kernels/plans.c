/* Plans followed in C: what `kept` and `Plan.follow` do in plans.py and `lease` in memory.py, for the calls of a training step.
 *
 * Tensors are read and made by the functions of DLPack that PyTorch's type offers: nothing here depends on how a tensor lies in
 * memory, or on a version. An operator that is called in a new way, that nobody could note down, or that is being noted down goes
 * to its function in Python; so does whatever is rare. All of it runs with the GIL held, which keeps what is static together.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

/* Of dlpack.h, an ABI: a tensor as it is seen, one with an owner, and the functions that give and take them. */
typedef struct { uint8_t code, bits; uint16_t lanes; } Dtype;
typedef struct { char *data; int32_t device[2], ndim; Dtype dtype; int64_t *shape, *stride; uint64_t offset; } View;
typedef struct Owned { uint32_t version[2]; void *owner; void (*delete)(struct Owned *); uint64_t flags; View view; } Owned;
typedef struct { uint32_t version[2]; void *older, *allocate, *give; int (*take)(Owned *, void **); int (*look)(void *, View *); } Dlpack;
enum { EXTENSION = 12 }; /* the kind of device that PyTorch calls PrivateUse1 */

typedef struct { char *address; size_t size; void *buffer; PyObject *self; uint64_t call; int first; } Block; /* self is borrowed */
typedef struct { Owned owned; PyObject *block, *home, *class; Py_ssize_t size; } Lease;
typedef struct { int at, slot; } Hole;
typedef struct { PyObject *kernel; void *handle; uint32_t rank; size_t size[3], group[3]; int holes; Hole *hole; } Launch;
typedef struct { int slot; View view; } Made; /* slot: of memory taken; else -1 - the number of a tensor given, or NOTHING */
enum { NOTHING = INT32_MIN };
typedef struct {
  int users, given, taken, launches, results; /* results: -1 for one alone, which is no tuple */
  PyObject **class; /* of each memory taken: its size in the pool, and as asked for */
  Py_ssize_t *size;
  Launch *launch;
  Made *made;
} Plan;
typedef struct { uint64_t hash; Py_ssize_t words; uint64_t *key; Plan *plan; } Entry;
typedef struct { PyObject_HEAD PyObject *label, *run; uint64_t number; } Operator; /* label: None tells observers nothing */
typedef struct { int given; PyObject **tensor; Plan *plan; } Asked; /* for the plan of a call that is in Python now */

static struct { PyObject *memory, *queue, *observers, *recorders, *forked, *tensor, *parameter, *device, *constants, *default_dtype; } py;
static struct { PyObject *_free, *_new, *in_use, *peak, *told, *launches, *refused; } word;
static const Dlpack *dlpack;
static struct { int (*set)(void *, uint32_t, size_t, const void *), (*flush)(void *);
  int (*enqueue)(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const void *, void *); } cl;
static void *queue;
static int timed, always_timed;  /* what the queue is, and whether it must be */
static long kept, flushes;       /* launches since the last flush, and how many make one due */
static Block *blocks;            /* by address */
static Py_ssize_t known, room;
static uint64_t calls;
static uint64_t *key;            /* of the call that is looked up */
static Py_ssize_t words, key_room;
static PyObject **given;         /* its tensors and their buffers */
static void **buffers;
static int tensors, tensors_room;
enum { PLACES = 1 << 14, MOST = 4096 };
static Entry table[PLACES];
static int entries;
static __thread Asked *asked;

/* Memory. */

static Py_ssize_t after(char *address) { /* the number of blocks that begin there or before */
  Py_ssize_t low = 0, high = known;
  while (low < high) {
    Py_ssize_t middle = (low + high) / 2;
    if (blocks[middle].address <= address) low = middle + 1; else high = middle;
  }
  return low;
}

static Block *block_at(char *address) {
  Py_ssize_t k = after(address);
  return k && address < blocks[k - 1].address + blocks[k - 1].size ? &blocks[k - 1] : NULL;
}

/* Adds to a number of memory.py or queue.py; the sum, or -1 with an exception. */
static long long add_to(PyObject *names, PyObject *name, long long more) {
  PyObject *before = PyDict_GetItem(names, name);
  long long sum = (before ? PyLong_AsLongLong(before) : 0) + more;
  PyObject *made = PyLong_FromLongLong(sum);
  int failed = !made || PyDict_SetItem(names, name, made);
  Py_XDECREF(made);
  return failed ? -1 : sum;
}

static int tell(PyObject *block, Py_ssize_t size) {
  PyObject *told = PyDict_GetItem(py.memory, word.told);
  if (!told || told == Py_None) return 0;
  PyObject *address = PyObject_GetAttrString(block, "address");
  PyObject *answer = address ? PyObject_CallFunction(told, "On", address, size) : NULL;
  Py_XDECREF(address);
  Py_XDECREF(answer);
  return answer ? 0 : -1;
}

/* Back to the pool that it came from. May come at any time, on a thread that Python does not know. */
static void give_back(Owned *owned) {
  Lease *lease = (Lease *)owned;
#if PY_VERSION_HEX < 0x030D0000
  if (_Py_IsFinalizing()) return;
#else
  if (Py_IsFinalizing()) return;
#endif
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  add_to(py.memory, word.in_use, -lease->size);
  tell(lease->block, -lease->size);
  PyObject *blocks_of = PyObject_GetItem(lease->home, lease->class); /* a defaultdict makes it */
  if (!blocks_of || PyList_Append(blocks_of, lease->block)) PyErr_Print();
  Py_XDECREF(blocks_of);
  Py_DECREF(lease->block);
  Py_DECREF(lease->home);
  Py_DECREF(lease->class);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  free(lease);
}

static Lease *take(Py_ssize_t size, PyObject *class, void **buffer) {
  PyObject *home = Py_NewRef(PyDict_GetItem(py.memory, word._free)), *block = NULL;
  PyObject *free_blocks = PyDict_GetItem(home, class);
  Py_ssize_t n = free_blocks ? PyList_GET_SIZE(free_blocks) : 0;
  if (n) {
    block = Py_NewRef(PyList_GET_ITEM(free_blocks, n - 1));
    if (PyList_SetSlice(free_blocks, n - 1, n, NULL)) Py_CLEAR(block);
  } else {
    block = PyObject_CallOneArg(PyDict_GetItem(py.memory, word._new), class);
  }
  PyObject *at = block ? PyObject_GetAttrString(block, "address") : NULL;
  Lease *lease = at ? calloc(1, sizeof(Lease)) : NULL;
  if (!lease) {
    Py_DECREF(home);
    Py_XDECREF(block);
    Py_XDECREF(at);
    return NULL;
  }
  lease->owned.version[0] = 1;
  lease->owned.delete = give_back;
  lease->owned.view.data = PyLong_AsVoidPtr(at);
  Py_DECREF(at);
  *buffer = block_at(lease->owned.view.data)->buffer;
  lease->block = block;
  lease->home = home;
  lease->class = Py_NewRef(class);
  lease->size = size;
  long long now = add_to(py.memory, word.in_use, size);
  PyObject *peak = PyDict_GetItem(py.memory, word.peak);
  if (peak && now > PyLong_AsLongLong(peak)) add_to(py.memory, word.peak, now - PyLong_AsLongLong(peak));
  if (tell(block, size)) {
    give_back(&lease->owned);
    return NULL;
  }
  return lease;
}

/* The key of a call: words that tell it from every call that may be planned in another way. */

static int put(uint64_t x) {
  if (words == key_room) {
    uint64_t *more = realloc(key, sizeof *key * (key_room = 2 * key_room + 256));
    if (!more) return 0;
    key = more;
  }
  key[words++] = x;
  return 1;
}

static int put_tensor(PyObject *x) {
  View v;
  if (dlpack->look(x, &v)) {
    PyErr_Clear();
    return 0;
  }
  Block *block = v.data && v.device[0] == EXTENSION ? block_at(v.data) : NULL;
  if (!block) return 0;
  if (tensors == tensors_room) {
    tensors_room = 2 * tensors_room + 64;
    given = realloc(given, sizeof *given * tensors_room);
    buffers = realloc(buffers, sizeof *buffers * tensors_room);
    if (!given || !buffers) Py_FatalError("no memory");
  }
  if (block->call != calls) {
    block->call = calls;
    block->first = tensors;
  }
  given[tensors] = x;
  buffers[tensors++] = block->buffer;
  uint32_t dtype;
  memcpy(&dtype, &v.dtype, sizeof dtype);
  int fine = put('T' | (uint64_t)v.ndim << 8 | (uint64_t)dtype << 32);
  fine = fine && put(v.data - block->address) && put(block->first); /* tensors that share memory are another call */
  for (int d = 0; d < v.ndim && fine; d++) fine = put(v.shape[d]) && put(v.stride[d]);
  return fine;
}

static int put_text(PyObject *x) {
  Py_ssize_t size;
  const char *text = PyUnicode_AsUTF8AndSize(x, &size);
  if (!text || !put('S' | (uint64_t)size << 8)) return 0;
  for (Py_ssize_t i = 0; i < size; i += 8) {
    uint64_t part = 0;
    memcpy(&part, text + i, size - i < 8 ? size - i : 8);
    if (!put(part)) return 0;
  }
  return 1;
}

/* One argument; 0 where it is of a kind that only Python knows. */
static int put_value(PyObject *x) {
  PyObject *type = (PyObject *)Py_TYPE(x);
  if (type == py.tensor || type == py.parameter) return put_tensor(x);
  if (x == Py_None) return put('N');
  if (PyBool_Check(x)) return put('B' | (x == Py_True) << 8);
  if (PyLong_CheckExact(x)) {
    int over;
    long long value = PyLong_AsLongLongAndOverflow(x, &over);
    return !over && put('I') && put(value);
  }
  if (PyFloat_CheckExact(x)) {
    double value = PyFloat_AS_DOUBLE(x);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return put('F') && put(bits);
  }
  if (PyList_CheckExact(x) || PyTuple_CheckExact(x)) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(x);
    int fine = put('L' | (uint64_t)n << 8);
    for (Py_ssize_t i = 0; i < n && fine; i++) fine = put_value(PySequence_Fast_GET_ITEM(x, i));
    return fine;
  }
  if (PyUnicode_CheckExact(x)) return put_text(x);
  if (type == py.device) { /* its kind and number, exactly */
    Py_hash_t hash = PyObject_Hash(x);
    return hash != -1 && put('D') && put(hash);
  }
  if (PySequence_Contains(py.constants, type) == 1) return put('P') && put((uintptr_t)x); /* there is one of each */
  return 0;
}

static int put_call(Operator *self, PyObject *args, PyObject *kwargs) {
  words = tensors = 0;
  calls++;
  PyObject *dtype = PyObject_CallNoArgs(py.default_dtype);
  Py_XDECREF(dtype); /* dtypes live as long as the process */
  int fine = dtype && put(self->number) && put((uintptr_t)dtype);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && fine; i++) fine = put_value(PyTuple_GET_ITEM(args, i));
  PyObject *name, *value;
  for (Py_ssize_t at = 0; kwargs && fine && PyDict_Next(kwargs, &at, &name, &value);) fine = put_text(name) && put_value(value);
  return fine;
}

static uint64_t hash_of(const uint64_t *k, Py_ssize_t n) {
  uint64_t h = 0x9E3779B97F4A7C15u;
  for (Py_ssize_t i = 0; i < n; i++) h = (h ^ k[i]) * 0xD6E8FEB86659FD93u, h ^= h >> 32;
  return h;
}

static Entry *entry_of(uint64_t hash, const uint64_t *k, Py_ssize_t n) { /* or the place where it belongs */
  Entry *e = &table[hash % PLACES];
  while (e->plan && (e->hash != hash || e->words != n || memcmp(e->key, k, sizeof *k * n)))
    e = e == &table[PLACES - 1] ? table : e + 1;
  return e;
}

/* Plans. */

static void leave(Plan *plan) {
  if (--plan->users) return;
  for (int i = 0; i < plan->taken; i++) Py_DECREF(plan->class[i]);
  for (int i = 0; i < plan->launches; i++) {
    Py_DECREF(plan->launch[i].kernel);
    free(plan->launch[i].hole);
  }
  for (int i = 0; i < abs(plan->results); i++) free(plan->made[i].view.shape);
  free(plan->class), free(plan->size), free(plan->launch), free(plan->made), free(plan);
}

static void forget_all(void) {
  for (Entry *e = table; e < table + PLACES; e++) {
    if (!e->plan) continue;
    leave(e->plan);
    free(e->key);
    memset(e, 0, sizeof *e);
  }
  entries = 0;
}

static int enqueue(Plan *plan, void **slots) {
  for (Launch *l = plan->launch; l < plan->launch + plan->launches; l++) {
    int error = 0;
    for (Hole *hole = l->hole; hole < l->hole + l->holes && !error; hole++)
      error = cl.set(l->handle, hole->at, sizeof(void *), &slots[hole->slot]);
    if (!error) error = cl.enqueue(queue, l->handle, l->rank, NULL, l->size, l->group, 0, NULL, NULL);
    if (error) {
      PyObject *raised = PyObject_CallFunction(PyDict_GetItem(py.queue, word.refused), "Oi", l->kernel, error);
      Py_XDECREF(raised); /* it raises */
      return -1;
    }
    if (++kept >= flushes) kept = 0, cl.flush(queue);
  }
  return add_to(py.queue, word.launches, plan->launches) < 0 ? -1 : 0;
}

static PyObject *result_of(Made *made, Lease **leases, PyObject **tensor) {
  if (made->slot == NOTHING) return Py_NewRef(Py_None);
  if (made->slot < 0) return Py_NewRef(tensor[-1 - made->slot]);
  Lease *lease = leases[made->slot];
  char *data = lease->owned.view.data;
  lease->owned.view = made->view;
  lease->owned.view.data = data;
  leases[made->slot] = NULL; /* PyTorch's from now on */
  void *result = NULL;
  return dlpack->take(&lease->owned, &result) ? NULL : result;
}

static PyObject *follow(Plan *plan, PyObject **tensor, void **slots) {
  Lease *leases[plan->taken + 1];
  PyObject *result = NULL;
  int n = 0, many = plan->results;
  while (n < plan->taken && (leases[n] = take(plan->size[n], plan->class[n], &slots[plan->given + n]))) n++;
  if (n == plan->taken && !enqueue(plan, slots)) {
    if (many < 0) {
      result = result_of(plan->made, leases, tensor);
    } else if ((result = PyTuple_New(many))) {
      for (int i = 0; i < many && result; i++) {
        PyObject *one = result_of(&plan->made[i], leases, tensor);
        if (one) PyTuple_SET_ITEM(result, i, one); else Py_CLEAR(result);
      }
    }
  }
  while (n--) if (leases[n]) give_back(&leases[n]->owned); /* the queue is in order: whoever has it next comes afterwards */
  return result;
}

/* Reads a plan that plans.py has made: ((class, size), ...), (Ready, ...), results as ("made", slot, code, bits, shape, stride), the
 * number of a tensor given, None, or a tuple of them. */
static int read_made(PyObject *x, Made *made) {
  if (x == Py_None) return made->slot = NOTHING, 1;
  if (PyLong_CheckExact(x)) return made->slot = -1 - (int)PyLong_AsLong(x), 1;
  PyObject *shape, *stride;
  if (!PyArg_ParseTuple(x, "ibbOO", &made->slot, &made->view.dtype.code, &made->view.dtype.bits, &shape, &stride)) return 0;
  int rank = made->view.ndim = (int)PyTuple_GET_SIZE(shape);
  made->view.dtype.lanes = 1;
  made->view.device[0] = EXTENSION;
  made->view.shape = malloc(sizeof(int64_t) * (2 * rank + 1));
  made->view.stride = made->view.shape + rank;
  for (int d = 0; d < rank; d++) {
    made->view.shape[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d));
    made->view.stride[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(stride, d));
  }
  return !PyErr_Occurred();
}

static int read_launch(PyObject *x, Launch *l) {
  PyObject *size, *group, *holes, *handle;
  if (!PyArg_ParseTuple(x, "OO!O!O!", &l->kernel, &PyTuple_Type, &size, &PyTuple_Type, &group, &PyTuple_Type, &holes)) return 0;
  Py_INCREF(l->kernel);
  if (!(handle = PyObject_GetAttrString(l->kernel, "int_ptr"))) return 0;
  l->handle = PyLong_AsVoidPtr(handle);
  Py_DECREF(handle);
  l->rank = (uint32_t)PyTuple_GET_SIZE(size);
  for (uint32_t d = 0; d < l->rank && d < 3; d++) {
    l->size[d] = PyLong_AsSize_t(PyTuple_GET_ITEM(size, d));
    l->group[d] = PyLong_AsSize_t(PyTuple_GET_ITEM(group, d));
  }
  l->holes = (int)PyTuple_GET_SIZE(holes);
  l->hole = malloc(sizeof(Hole) * (l->holes + 1));
  for (int i = 0; i < l->holes; i++)
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(holes, i), "ii", &l->hole[i].at, &l->hole[i].slot)) return 0;
  return !PyErr_Occurred();
}

/* offer(tensors, taken, launches, results): whether C follows it from now on. */
static PyObject *offer(PyObject *module, PyObject *arguments) {
  PyObject *of, *taken, *launches, *results;
  if (!PyArg_ParseTuple(arguments, "O!O!O!O", &PyList_Type, &of, &PyTuple_Type, &taken, &PyTuple_Type, &launches, &results)) return NULL;
  if (!asked || asked->plan || asked->given != PyList_GET_SIZE(of)) Py_RETURN_FALSE;
  for (int i = 0; i < asked->given; i++)
    if (asked->tensor[i] != PyList_GET_ITEM(of, i)) Py_RETURN_FALSE;
  Plan *plan = calloc(1, sizeof *plan);
  plan->users = 1;
  plan->given = asked->given;
  int many = PyList_CheckExact(results) ? (int)PyList_GET_SIZE(results) : -1, fine = 1;
  plan->class = calloc(PyTuple_GET_SIZE(taken) + 1, sizeof *plan->class);
  plan->size = calloc(PyTuple_GET_SIZE(taken) + 1, sizeof *plan->size);
  plan->launch = calloc(PyTuple_GET_SIZE(launches) + 1, sizeof *plan->launch);
  plan->made = calloc(abs(many) + 1, sizeof *plan->made);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(taken) && fine; i++, plan->taken++) {
    fine = PyArg_ParseTuple(PyTuple_GET_ITEM(taken, i), "On", &plan->class[i], &plan->size[i]);
    Py_XINCREF(plan->class[i]);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(launches) && fine; i++, plan->launches++)
    fine = read_launch(PyTuple_GET_ITEM(launches, i), &plan->launch[i]);
  plan->results = many;
  for (int i = 0; i < abs(many) && fine; i++) fine = read_made(many < 0 ? results : PyList_GET_ITEM(results, i), &plan->made[i]);
  if (!fine) {
    leave(plan);
    return NULL;
  }
  asked->plan = plan;
  Py_RETURN_TRUE;
}

/* An operator's call. */

static PyObject *in_python(Operator *self, PyObject *args, PyObject *kwargs, uint64_t hash) {
  size_t size = sizeof *key * words;
  Py_ssize_t n = words;
  uint64_t *own = malloc(size);
  PyObject *tensor[tensors + 1];
  memcpy(own, key, size);
  memcpy(tensor, given, sizeof *given * tensors);
  Asked mine = {tensors, tensor, NULL}, *before = asked;
  asked = &mine;
  PyObject *result = PyObject_Call(self->run, args, kwargs);
  asked = before;
  if (!mine.plan) {
    free(own);
    return result;
  }
  if (entries >= MOST) forget_all();
  Entry *e = entry_of(hash, own, n);
  if (e->plan) leave(e->plan), free(e->key); else entries++; /* another thread was faster */
  *e = (Entry){hash, n, own, mine.plan};
  return result;
}

static PyObject *call(Operator *self, PyObject *args, PyObject *kwargs) {
  Py_ssize_t heard = PyList_GET_SIZE(py.observers), watching = self->label == Py_None ? 0 : heard;
  int astray = PyList_GET_SIZE(py.recorders) || PyList_GET_SIZE(py.forked) || timed != (always_timed || heard);
  if (astray || !put_call(self, args, kwargs)) {
    PyErr_Clear();
    Asked *before = asked;
    asked = NULL; /* what is noted down now is not the plan of whoever called */
    PyObject *result = PyObject_Call(self->run, args, kwargs);
    asked = before;
    return result;
  }
  uint64_t hash = hash_of(key, words);
  Plan *plan = entry_of(hash, key, words)->plan;
  if (!plan) return in_python(self, args, kwargs, hash);
  struct timespec at = {0};
  if (watching) clock_gettime(CLOCK_MONOTONIC, &at);
  PyObject *tensor[plan->given + 1];
  void *slots[plan->given + plan->taken + 1];
  memcpy(tensor, given, sizeof *given * plan->given);
  memcpy(slots, buffers, sizeof *buffers * plan->given);
  plan->users++; /* another thread may have all forgotten meanwhile */
  PyObject *result = follow(plan, tensor, slots);
  leave(plan);
  for (Py_ssize_t i = 0; watching && result && i < PyList_GET_SIZE(py.observers); i++) {
    PyObject *observer = Py_NewRef(PyList_GET_ITEM(py.observers, i)), *none = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    PyObject *said = PyObject_CallFunction(observer, "OLOONO", self->label, at.tv_sec * 1000000000LL + at.tv_nsec, Py_False, args, none, result);
    if (!said) Py_CLEAR(result);
    Py_XDECREF(said);
    Py_DECREF(observer);
  }
  return result;
}

static PyObject *new_operator(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static uint64_t made; /* an address would be somebody else's later: a comprehension's operators die with it */
  PyObject *label, *run;
  if (!PyArg_ParseTuple(args, "OO", &label, &run)) return NULL;
  Operator *self = (Operator *)type->tp_alloc(type, 0);
  if (self) self->label = Py_NewRef(label), self->run = Py_NewRef(run), self->number = made++;
  return (PyObject *)self;
}

static int visit_operator(Operator *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->label);
  Py_VISIT(self->run);
  return 0;
}

static int clear_operator(Operator *self) {
  Py_CLEAR(self->label);
  Py_CLEAR(self->run);
  return 0;
}

static void free_operator(Operator *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear_operator(self);
  type->tp_free(self);
  Py_DECREF(type);
}
static PyType_Slot slots[] = {{Py_tp_new, new_operator}, {Py_tp_call, call}, {Py_tp_traverse, visit_operator},
  {Py_tp_clear, clear_operator}, {Py_tp_dealloc, free_operator},
  {Py_tp_doc, "Operator(label, run): an operator's function; the one in Python makes its plans"}, {0}};
static PyType_Spec spec = {"syncscope.kernels._plans.Operator", sizeof(Operator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

static PyObject *know(PyObject *module, PyObject *arguments) {
  unsigned long long address, buffer;
  Py_ssize_t size;
  PyObject *self;
  if (!PyArg_ParseTuple(arguments, "KnKO", &address, &size, &buffer, &self)) return NULL;
  if (known == room) {
    Block *more = realloc(blocks, sizeof *blocks * (room = 2 * room + 256));
    if (!more) return PyErr_NoMemory();
    blocks = more;
  }
  Py_ssize_t k = after((char *)address);
  memmove(blocks + k + 1, blocks + k, sizeof *blocks * (known++ - k));
  blocks[k] = (Block){(char *)address, size, (void *)buffer, self, 0, 0};
  Py_RETURN_NONE;
}

static PyObject *drop(PyObject *module, PyObject *address) {
  Py_ssize_t k = after(PyLong_AsVoidPtr(address));
  if (k && blocks[k - 1].address == PyLong_AsVoidPtr(address)) {
    memmove(blocks + k - 1, blocks + k, sizeof *blocks * (known - k));
    known--;
  }
  Py_RETURN_NONE;
}

static PyObject *block(PyObject *module, PyObject *address) {
  Block *found = block_at(PyLong_AsVoidPtr(address));
  return Py_NewRef(found ? found->self : Py_None);
}

static PyObject *use(PyObject *module, PyObject *arguments) {
  unsigned long long handle;
  if (!PyArg_ParseTuple(arguments, "Kii", &handle, &timed, &always_timed)) return NULL;
  queue = (void *)handle;
  Py_RETURN_NONE;
}

static PyObject *forget(PyObject *module, PyObject *none) {
  forget_all();
  Py_RETURN_NONE;
}

static PyObject *begin(PyObject *module, PyObject *arguments) {
  PyObject *capsule;
  unsigned long long set, enqueue, flush;
  if (!PyArg_ParseTuple(arguments, "OOOOOO(KKK)l", &capsule, &py.memory, &py.queue, &py.tensor, &py.parameter, &py.constants, &set,
                        &enqueue, &flush, &flushes)) return NULL;
  if (!(dlpack = PyCapsule_GetPointer(capsule, "dlpack_exchange_api"))) return NULL;
  if (dlpack->version[0] != 1 || !dlpack->look) return PyErr_Format(PyExc_ImportError, "another DLPack");
  cl.set = (void *)set, cl.enqueue = (void *)enqueue, cl.flush = (void *)flush;
  py.observers = PyDict_GetItemString(py.queue, "observers");
  py.recorders = PyDict_GetItemString(py.queue, "recorders");
  py.forked = PyDict_GetItemString(py.queue, "forked");
  PyObject *torch = PyImport_ImportModule("torch");
  py.default_dtype = torch ? PyObject_GetAttrString(torch, "get_default_dtype") : NULL;
  py.device = torch ? PyObject_GetAttrString(torch, "device") : NULL;
  if (!py.observers || !py.recorders || !py.forked || !py.default_dtype || !py.device) return NULL;
  Py_INCREF(capsule), Py_INCREF(py.memory), Py_INCREF(py.queue), Py_INCREF(py.tensor), Py_INCREF(py.parameter), Py_INCREF(py.constants);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  {"begin", begin, METH_VARARGS, "begin(DLPack's functions, names of memory.py and queue.py, Tensor, Parameter, types of constants, "
                                 "OpenCL's functions, launches until a flush)"},
  {"use", use, METH_VARARGS, "use(queue, timed, always timed): where launches go from now on"},
  {"know", know, METH_VARARGS, "know(address, size, buffer, block): memory that tensors may be in"},
  {"drop", drop, METH_O, "drop(address): no more"},
  {"block", block, METH_O, "block(address): the block around an address, or None"},
  {"offer", offer, METH_VARARGS, "offer(tensors, taken, launches, results): whether C follows this plan from now on"},
  {"forget", forget, METH_NOARGS, "forget(): all plans"},
  {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_plans", 0, -1, functions};
PyMODINIT_FUNC PyInit__plans(void) {
  PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
#define WORD(n) word.n = PyUnicode_InternFromString(#n);
  WORD(_free) WORD(_new) WORD(in_use) WORD(peak) WORD(told) WORD(launches) WORD(refused)
  if (!module || !type || PyModule_AddObject(module, "Operator", type)) return NULL;
  return module;
}
