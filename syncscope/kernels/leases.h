/* Memory of the device as plans.c takes it, and as PyTorch gives it back: what `lease` does in memory.py, and DLPack. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Of dlpack.h, an ABI: a tensor as it is seen, one with an owner, and the functions that give and take them. */
typedef struct { uint8_t code, bits; uint16_t lanes; } Dtype;
typedef struct { char *data; int32_t device[2], ndim; Dtype dtype; int64_t *shape, *stride; uint64_t offset; } View;
typedef struct Owned { uint32_t version[2]; void *owner; void (*delete)(struct Owned *); uint64_t flags; View view; } Owned;
typedef struct { uint32_t version[2]; void *older, *allocate, *give; int (*take)(Owned *, void **); int (*look)(void *, View *); } Dlpack;
enum { EXTENSION = 12 }; /* the kind of device that PyTorch calls PrivateUse1 */
typedef struct { char *address; size_t size; void *buffer; PyObject *self; uint64_t call; int first; } Block; /* self is borrowed */
typedef struct { Owned owned; PyObject *block, *home, *class; Py_ssize_t size; } Lease;

static struct { PyObject *memory, *queue, *observers, *recorders, *forked, *backlog, *tensor, *parameter, *device, *constants, *default_dtype; } py;
static struct { PyObject *_free, *_new, *in_use, *peak, *told, *launches, *refused, *block, *size, *home; } word;
static const Dlpack *dlpack;
static Block *blocks;            /* by address */
static Py_ssize_t known, room;
static uint64_t calls, dropped = 1; /* how often memory went back to the driver, and one */

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

static int raise_now(void *exception) {
  PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
  Py_DECREF(exception);
  return -1;
}

/* What is raised where nobody can take it, such as a KeyboardInterrupt: whoever runs Python next does. */
static void raise_later(void) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && trace) PyException_SetTraceback(value, trace);
  if (value && Py_AddPendingCall(raise_now, Py_NewRef(value))) Py_DECREF(value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

/* Memory is back in the pool that it came from. No Python runs but `told`'s: a signal's handler would raise there in vain. */
static void came_back(PyObject *block, PyObject *home, PyObject *class, Py_ssize_t size) {
  add_to(py.memory, word.in_use, -size);
  if (tell(block, -size)) raise_later();
  PyObject *blocks_of = PyObject_GetItem(home, class); /* a defaultdict makes it */
  if (!blocks_of || PyList_Append(blocks_of, block)) PyErr_Print();
  Py_XDECREF(blocks_of);
}

/* May come at any time, on a thread that Python does not know. */
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
  came_back(lease->block, lease->home, lease->class, lease->size);
  Py_DECREF(lease->block);
  Py_DECREF(lease->home);
  Py_DECREF(lease->class);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  free(lease);
}

/* Lease.__del__ of memory.py. One that an exception left half made has no block, which is set last. */
static PyObject *lease_is_gone(PyObject *none, PyObject *lease) {
  PyObject *block = PyObject_GetAttr(lease, word.block), *home = block ? PyObject_GetAttr(lease, word.home) : NULL;
  PyObject *class = block ? PyObject_GetAttr(block, word.size) : NULL, *size = block ? PyObject_GetAttr(lease, word.size) : NULL;
  if (home && class && size) came_back(block, home, class, PyLong_AsSsize_t(size));
  Py_XDECREF(block);
  Py_XDECREF(home);
  Py_XDECREF(class);
  Py_XDECREF(size);
  PyErr_Clear();
  Py_RETURN_NONE;
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
  char *address = at ? PyLong_AsVoidPtr(at) : NULL;
  Py_XDECREF(at);
  Block *known_as = address ? block_at(address) : NULL;
  Lease *lease = known_as ? calloc(1, sizeof(Lease)) : NULL;
  if (!lease) {
    if (known_as) PyErr_NoMemory();
    else if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "memory that nobody told plans.c of");
    Py_DECREF(home);
    Py_XDECREF(block);
    return NULL;
  }
  lease->owned.version[0] = 1;
  lease->owned.delete = give_back;
  lease->owned.view.data = address;
  *buffer = known_as->buffer;
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

/* What memory.py tells of it. */

static PyObject *know(PyObject *module, PyObject *arguments) {
  unsigned long long address, buffer;
  Py_ssize_t size;
  PyObject *self;
  if (!PyArg_ParseTuple(arguments, "KnKO", &address, &size, &buffer, &self)) return NULL;
  if (known == room) {
    Block *more = realloc(blocks, sizeof *blocks * (2 * room + 256));
    if (!more) return PyErr_NoMemory();
    blocks = more;
    room = 2 * room + 256;
  }
  Py_ssize_t k = after((char *)address);
  memmove(blocks + k + 1, blocks + k, sizeof *blocks * (known++ - k));
  blocks[k] = (Block){(char *)address, size, (void *)buffer, self, 0, 0};
  Py_RETURN_NONE;
}

static void drain(void); /* in launches.h */

static PyObject *drop(PyObject *module, PyObject *address) {
  drain();
  dropped++;
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
