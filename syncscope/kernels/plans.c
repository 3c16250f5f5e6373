/* Plans followed in C: what `kept` and `Plan.follow` do in plans.py and `lease` in memory.py, for the calls of a training step.
 *
 * Tensors are read and made by the functions of DLPack that PyTorch's type offers: nothing here depends on how a tensor lies in
 * memory, or on a version. An operator that is called in a new way, that nobody could note down, or that is being noted down goes
 * to its function in Python; so does whatever is rare. All of it runs with the GIL held, which keeps what is static together.
 */
#include "leases.h"
#include "call_key.h"
#include "launches.h"
#include "guard.h"

/* slot: of memory taken; else -1 - the number of a tensor given, NOTHING, or CONSTANT */
typedef struct { int slot; View view; PyObject *constant; } Made;
enum { NOTHING = INT32_MIN, CONSTANT };
typedef struct {
  int users, given, taken, launches, results; /* results: -1 for one alone, which is no tuple */
  PyObject **class; /* of each memory taken: its size in the pool, and as asked for */
  Py_ssize_t *size;
  Launch *launch;
  Made *made;
} Plan;
typedef struct { uint64_t hash; Py_ssize_t words; uint64_t *key; Plan *plan; } Entry;
/* label: None tells observers nothing; asks: what beside the arguments decides how it is computed, None if nothing does */
typedef struct { PyObject_HEAD PyObject *label, *run, *asks; uint64_t number; } Operator;
typedef struct { int given; PyObject **tensor; Plan *plan; } Asked; /* for the plan of a call that is in Python now */
static int timed, always_timed;  /* what the queue is, and whether it must be */
enum { PLACES = 1 << 14, MOST = 4096 };
enum { AS_KNOWN = 0 }; /* as queue.py has it */
static Entry table[PLACES];
static int entries;
static __thread Asked *asked;

static Entry *entry_of(uint64_t hash, const uint64_t *of, Py_ssize_t count) { /* or the place where it belongs */
  Entry *entry = &table[hash % PLACES];
  while (entry->plan && (entry->hash != hash || entry->words != count || memcmp(entry->key, of, sizeof *of * count)))
    entry = entry == &table[PLACES - 1] ? table : entry + 1;
  return entry;
}

/* Plans. */

static void leave(Plan *plan) {
  if (--plan->users) return;
  drain(); /* the driver may not have its launches yet */
  for (int i = 0; i < plan->taken && plan->class; i++) Py_XDECREF(plan->class[i]);
  for (int i = 0; i < plan->launches && plan->launch; i++) {
    Py_XDECREF(plan->launch[i].kernel);
    free(plan->launch[i].hole);
  }
  for (int i = 0; i < abs(plan->results) && plan->made; i++) free(plan->made[i].view.shape), Py_XDECREF(plan->made[i].constant);
  free(plan->class), free(plan->size), free(plan->launch), free(plan->made), free(plan);
}

static void forget_all(void) {
  drain(); /* which lets others in, and must not below */
  for (Entry *entry = table; entry < table + PLACES; entry++) {
    if (!entry->plan) continue;
    leave(entry->plan);
    free(entry->key);
    memset(entry, 0, sizeof *entry);
  }
  entries = 0;
}

static PyObject *result_of(Made *made, Lease **leases, PyObject **tensor) {
  if (made->slot == NOTHING) return Py_NewRef(Py_None);
  if (made->slot == CONSTANT) return Py_NewRef(made->constant);
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
  if (n == plan->taken && !enqueue(plan->launch, plan->launches, slots)) {
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
 * number of a tensor given, None, (a number,), or a tuple of them. */
static int read_made(PyObject *x, Made *made) {
  if (x == Py_None) return made->slot = NOTHING, 1;
  if (PyLong_CheckExact(x)) return made->slot = -1 - (int)PyLong_AsLong(x), 1;
  if (PyTuple_CheckExact(x) && PyTuple_GET_SIZE(x) == 1) return made->constant = Py_NewRef(PyTuple_GET_ITEM(x, 0)), made->slot = CONSTANT, 1;
  PyObject *shape, *stride;
  if (!PyArg_ParseTuple(x, "ibbOO", &made->slot, &made->view.dtype.code, &made->view.dtype.bits, &shape, &stride)) return 0;
  int rank = made->view.ndim = (int)PyTuple_GET_SIZE(shape);
  made->view.dtype.lanes = 1;
  made->view.device[0] = EXTENSION;
  if (!(made->view.shape = malloc(sizeof(int64_t) * (2 * rank + 1)))) return PyErr_NoMemory(), 0;
  made->view.stride = made->view.shape + rank;
  for (int d = 0; d < rank; d++) {
    made->view.shape[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d));
    made->view.stride[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(stride, d));
  }
  return !PyErr_Occurred();
}

/* Whatever it has read when it fails, `leave` gives back: a kernel is there once it is owned. */
static int read_launch(PyObject *x, Launch *launch) {
  PyObject *kernel, *size, *group, *holes, *draws, *handle;
  if (!PyArg_ParseTuple(x, "OO!O!O!O", &kernel, &PyTuple_Type, &size, &PyTuple_Type, &group, &PyTuple_Type, &holes, &draws)) return 0;
  launch->kernel = Py_NewRef(kernel);
  if (!(handle = PyObject_GetAttrString(kernel, "int_ptr"))) return 0;
  launch->handle = PyLong_AsVoidPtr(handle);
  Py_DECREF(handle);
  launch->rank = (uint32_t)PyTuple_GET_SIZE(size);
  if (launch->rank > 3 || PyTuple_GET_SIZE(group) < launch->rank) return PyErr_SetString(PyExc_ValueError, "no such size"), 0;
  for (uint32_t d = 0; d < launch->rank; d++) {
    launch->size[d] = PyLong_AsSize_t(PyTuple_GET_ITEM(size, d));
    launch->group[d] = PyLong_AsSize_t(PyTuple_GET_ITEM(group, d));
  }
  launch->holes = (int)PyTuple_GET_SIZE(holes);
  if (!(launch->hole = malloc(sizeof(Hole) * (launch->holes + 1)))) return PyErr_NoMemory(), 0;
  for (int i = 0; i < launch->holes; i++)
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(holes, i), "ii", &launch->hole[i].at, &launch->hole[i].slot)) return 0;
  launch->draws_at = -1;
  if (draws != Py_None && !PyArg_ParseTuple(draws, "iK", &launch->draws_at, &launch->drawn)) return 0;
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
  if (!plan) return PyErr_NoMemory();
  plan->users = 1;
  plan->given = asked->given;
  int many = PyList_CheckExact(results) ? (int)PyList_GET_SIZE(results) : -1, fine = 1;
  plan->class = calloc(PyTuple_GET_SIZE(taken) + 1, sizeof *plan->class);
  plan->size = calloc(PyTuple_GET_SIZE(taken) + 1, sizeof *plan->size);
  plan->launch = calloc(PyTuple_GET_SIZE(launches) + 1, sizeof *plan->launch);
  plan->made = calloc(abs(many) + 1, sizeof *plan->made);
  if (!plan->class || !plan->size || !plan->launch || !plan->made) fine = 0, PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(taken) && fine; i++, plan->taken++) {
    PyObject *class;
    if ((fine = PyArg_ParseTuple(PyTuple_GET_ITEM(taken, i), "On", &class, &plan->size[i]))) plan->class[i] = Py_NewRef(class);
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

/* Launches of a captured step: list(launches) gives what again() enqueues, with all arguments as they are. */
static const char *LISTED = "syncscope.kernels.launches";

static void free_listed(PyObject *capsule) {
  leave(PyCapsule_GetPointer(capsule, LISTED));
}

static PyObject *list_launches(PyObject *module, PyObject *launches) {
  if (!PyTuple_CheckExact(launches)) return PyErr_Format(PyExc_TypeError, "launches are a tuple");
  Plan *plan = calloc(1, sizeof *plan);
  if (!plan) return PyErr_NoMemory();
  plan->users = 1;
  int fine = 1;
  if (!(plan->launch = calloc(PyTuple_GET_SIZE(launches) + 1, sizeof *plan->launch))) fine = 0, PyErr_NoMemory();
  for (Py_ssize_t i = 0; fine && i < PyTuple_GET_SIZE(launches); i++, plan->launches++)
    fine = read_launch(PyTuple_GET_ITEM(launches, i), &plan->launch[i]);
  PyObject *capsule = fine ? PyCapsule_New(plan, LISTED, free_listed) : NULL;
  if (!capsule) leave(plan);
  return capsule;
}

static PyObject *again(PyObject *module, PyObject *capsule) {
  Plan *plan = PyCapsule_GetPointer(capsule, LISTED);
  if (!plan || enqueue(plan->launch, plan->launches, NULL)) return NULL;
  Py_RETURN_NONE;
}

/* An operator's call. */

static PyObject *in_python(Operator *self, PyObject *args, PyObject *kwargs, uint64_t hash) {
  size_t size = sizeof *key * words;
  Py_ssize_t count = words;
  uint64_t *own = malloc(size);
  if (!own) return PyErr_NoMemory();
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
  drain();
  if (entries >= MOST) forget_all();
  Entry *entry = entry_of(hash, own, count);
  if (entry->plan) leave(entry->plan), free(entry->key); else entries++; /* another thread was faster */
  *entry = (Entry){hash, count, own, mine.plan};
  return result;
}

/* What beside its arguments decides how an operator is computed, a number: 0 of one that asks nothing. Python answers, and may let
 * another thread in, whose calls write their keys where ours would stand: so it is asked before. */
static int settings_of(PyObject *asks, long long *settings) {
  if (asks == Py_None) return 1;
  PyObject *answer = PyObject_CallNoArgs(asks);
  *settings = answer ? PyLong_AsLongLong(answer) : -1;
  Py_XDECREF(answer);
  return !PyErr_Occurred();
}

static PyObject *call(Operator *self, PyObject *args, PyObject *kwargs) {
  Py_ssize_t heard = PyList_GET_SIZE(py.observers), watching = self->label == Py_None ? 0 : heard;
  int astray = PyList_GET_SIZE(py.recorders) || PyList_GET_SIZE(py.forked) || PyList_GET_SIZE(py.backlog);
  astray = astray || timed != (always_timed || heard);
  long long settings = 0;
  if (!astray && !settings_of(self->asks, &settings)) return NULL; /* such as a KeyboardInterrupt */
  if (astray || !put_call(self->number, settings, args, kwargs)) {
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
    PyObject *said = PyObject_CallFunction(observer, "OLiONO", self->label, at.tv_sec * 1000000000LL + at.tv_nsec, AS_KNOWN, args, none, result);
    if (!said) Py_CLEAR(result);
    Py_XDECREF(said);
    Py_DECREF(observer);
  }
  return result;
}

static PyObject *new_operator(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static uint64_t made; /* an address would be somebody else's later: a comprehension's operators die with it */
  PyObject *label, *run, *asks = Py_None;
  if (!PyArg_ParseTuple(args, "OO|O", &label, &run, &asks)) return NULL;
  Operator *self = (Operator *)type->tp_alloc(type, 0);
  if (self) self->label = Py_NewRef(label), self->run = Py_NewRef(run), self->asks = Py_NewRef(asks), self->number = made++;
  return (PyObject *)self;
}

static int visit_operator(Operator *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->label);
  Py_VISIT(self->run);
  Py_VISIT(self->asks);
  return 0;
}

static int clear_operator(Operator *self) {
  Py_CLEAR(self->label);
  Py_CLEAR(self->run);
  Py_CLEAR(self->asks);
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
  {Py_tp_doc, "Operator(label, run, asks=None): an operator's function; the one in Python makes its plans"}, {0}};
static PyType_Spec spec = {"syncscope.kernels._plans.Operator", sizeof(Operator), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

static PyObject *use(PyObject *module, PyObject *arguments) {
  unsigned long long handle;
  drain();
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
  unsigned long long set, enqueue, flush, random;
  if (!PyArg_ParseTuple(arguments, "OOOOOO(KKK)lK", &capsule, &py.memory, &py.queue, &py.tensor, &py.parameter, &py.constants, &set,
                        &enqueue, &flush, &flushes, &random)) return NULL;
  drain();
  generator = (Random *)random;
  if (!(dlpack = PyCapsule_GetPointer(capsule, "dlpack_exchange_api"))) return NULL;
  if (dlpack->version[0] != 1 || !dlpack->look) return PyErr_Format(PyExc_ImportError, "another DLPack");
  cl.set = (void *)set, cl.enqueue = (void *)enqueue, cl.flush = (void *)flush;
  py.observers = PyDict_GetItemString(py.queue, "observers");
  py.recorders = PyDict_GetItemString(py.queue, "recorders");
  py.forked = PyDict_GetItemString(py.queue, "forked");
  py.backlog = PyDict_GetItemString(py.queue, "backlog");
  PyObject *torch = PyImport_ImportModule("torch");
  py.default_dtype = torch ? PyObject_GetAttrString(torch, "get_default_dtype") : NULL;
  py.device = torch ? PyObject_GetAttrString(torch, "device") : NULL;
  if (!py.observers || !py.recorders || !py.forked || !py.backlog || !py.default_dtype || !py.device) return NULL;
  Py_INCREF(capsule), Py_INCREF(py.memory), Py_INCREF(py.queue), Py_INCREF(py.tensor), Py_INCREF(py.parameter), Py_INCREF(py.constants);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  {"begin", begin, METH_VARARGS, "begin(DLPack's functions, names of memory.py and queue.py, Tensor, Parameter, types of constants, "
                                 "OpenCL's functions, launches until a flush, where the generator stands)"},
  {"use", use, METH_VARARGS, "use(queue, timed, always timed): where launches go from now on"},
  {"know", know, METH_VARARGS, "know(address, size, buffer, block): memory that tensors may be in"},
  {"drop", drop, METH_O, "drop(address): no more"},
  {"block", block, METH_O, "block(address): the block around an address, or None"},
  {"offer", offer, METH_VARARGS, "offer(tensors, taken, launches, results): whether C follows this plan from now on"},
  {"list", list_launches, METH_O, "list(launches): what again() enqueues"},
  {"again", again, METH_O, "again(what list() gave): all of them, on the queue in use"},
  {"submit", submit, METH_O, "submit(on): whether launches go to the driver by a thread of their own"},
  {"guard", guard, METH_VARARGS, "guard(entry, type, names): answers what PyTorch asks about the device"},
  {"settle", settle, METH_NOARGS, "settle(): until the driver has all launches; raises what it refused"},
  {"forget", forget, METH_NOARGS, "forget(): all plans"},
  {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_plans", 0, -1, functions};
PyMODINIT_FUNC PyInit__plans(void) {
  PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
#define WORD(n) word.n = PyUnicode_InternFromString(#n);
  WORD(_free) WORD(_new) WORD(in_use) WORD(peak) WORD(told) WORD(launches) WORD(refused)
  WORD(block) WORD(size) WORD(home)
  static PyMethodDef back = {"__del__", lease_is_gone, METH_O, "of a Lease of memory.py"};
  PyObject *function = PyCFunction_New(&back, NULL), *method = function ? PyInstanceMethod_New(function) : NULL;
  Py_XDECREF(function);
  if (!module || !type || !method || PyModule_AddObject(module, "Operator", type) || PyModule_AddObject(module, "lease_is_gone", method)) return NULL;
  return module;
}
