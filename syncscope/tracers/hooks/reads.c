/* The way of a read through `reads.py`, in C: what `method`, `function`, `always`, `begin` and `tell` do there, word for word.
 *
 * In a training step this code is never warm: the same Python takes three times as long there as in a loop of its own, and every
 * microsecond is one in which nobody asks the device for anything. Who listens, what torch is, and whatever is rare is looked up in
 * the names of reads.py, or left to its functions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <time.h>
#include "variables.h"

#define WORDS(X) X(inside) X(thread) X(waits) X(is_cpu) X(is_meta) X(nbytes) X(guards) X(reads) X(modules) X(pretend) X(mute) \
  X(unmute) X(module_type) X(plain) X(overridden)
#define LASTING(X) X(backward) X(named) X(listeners) X(local) X(on_device) X(kinds) X(kind_of) X(spots) X(spot) X(Seen) X(Record) \
  X(path_from) X(paths)
#define FIELD(n) *n,
static struct { PyObject WORDS(FIELD) *last; } word;
static struct { PyObject LASTING(FIELD) *last; } of;                  /* what these names of reads.py always mean */
static PyObject *names;                                               /* of reads.py */
static PyObject *of_reads(PyObject *name) { return PyDict_GetItem(names, name); } /* borrowed: what one means now */
enum { USER, LIBRARY, BETWEEN, CARRIER };                                    /* as in places.py */
enum { METHOD, FUNCTION, ALWAYS };                                    /* where the tensor stands in a call */

static long long now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

/* The truth of an attribute; -1 where it cannot be asked. */
static int is(PyObject *owner, PyObject *name) {
  PyObject *value = PyObject_GetAttr(owner, name);
  int truth = value ? PyObject_IsTrue(value) : -1;
  Py_XDECREF(value);
  return truth;
}

/* Whether reading this waits: torch's own tensors are asked here. */
static int on_device(PyObject *tensor) {
  PyObject *plain = of_reads(word.plain), *type = (PyObject *)Py_TYPE(tensor); /* a tensor's own and a parameter's */
  if (PyTuple_GET_SIZE(plain) == 2 && (type == PyTuple_GET_ITEM(plain, 0) || type == PyTuple_GET_ITEM(plain, 1))) {
    PyObject *overridden = PyObject_CallOneArg(of_reads(word.overridden), tensor);
    int no = overridden ? PyObject_IsTrue(overridden) : -1;
    Py_XDECREF(overridden);
    if (no) return no < 0 ? -1 : 0;
    int cpu = is(tensor, word.is_cpu);
    if (!cpu) {
      int meta = is(tensor, word.is_meta);
      return meta < 0 ? -1 : !meta;
    }
    if (cpu < 0) return -1;
    PyObject *pretend = PyObject_GetAttr(of.listeners, word.pretend);
    if (!pretend) return -1;
    Py_DECREF(pretend);
    if (pretend == Py_None) return 0;
  }
  PyObject *answer = PyObject_CallOneArg(of.on_device, tensor);
  int truth = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return truth;
}

static int kind_of(PyCodeObject *code) {
  PyObject *kind = PyDict_GetItem(of.kinds, code->co_filename);
  if (kind) return (int)PyLong_AsLong(kind);
  kind = PyObject_CallOneArg(of.kind_of, (PyObject *)code);
  int found = kind ? (int)PyLong_AsLong(kind) : -1;
  Py_XDECREF(kind);
  return found;
}

static PyObject *spot(PyFrameObject *frame, PyCodeObject *code) {
  PyObject *key = Py_BuildValue("NN", PyLong_FromVoidPtr(code), PyLong_FromLong(PyFrame_GetLasti(frame)));
  PyObject *found = key ? PyDict_GetItem(of.spots, key) : NULL;
  Py_XDECREF(key);
  return found ? Py_NewRef(found) : key ? PyObject_CallOneArg(of.spot, (PyObject *)frame) : NULL;
}

/* A tuple of a NamedTuple's own type, which takes over what it is given. */
static PyObject *tuple_of(PyObject *type, Py_ssize_t n, PyObject **items) {
  PyObject *made = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, n);
  for (Py_ssize_t i = 0; i < n; i++) {
    if (made) PyTuple_SET_ITEM(made, i, items[i]); else Py_XDECREF(items[i]);
  }
  return made;
}

/* The user's frame among the callers of `frame` (which it takes over) and the libraries', or the line that called backward. */
static PyObject *seen_from(PyFrameObject *frame) {
  PyObject *user = NULL, *library = NULL, *inner = NULL;
  while (frame && !user) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    int kind = kind_of(code);
    PyObject *at = kind == USER || (kind == LIBRARY && !inner) || (kind == CARRIER && !library) ? spot(frame, code) : NULL;
    if (kind == USER) user = at;
    else if (at && !library) library = Py_NewRef(at);
    if (at && kind == LIBRARY) inner = at;
    else if (at && kind == CARRIER) Py_DECREF(at);
    Py_DECREF(code);
    if (PyErr_Occurred()) break;
    if (!user) Py_SETREF(frame, PyFrame_GetBack(frame));
  }
  Py_XDECREF(frame);
  if (PyErr_Occurred()) { Py_XDECREF(user); Py_XDECREF(library); Py_XDECREF(inner); return NULL; }
  PyObject *backward = of.backward;
  if (!user && PyList_GET_SIZE(backward)) {
    PyObject *called = PyList_GET_ITEM(backward, PyList_GET_SIZE(backward) - 1);
    user = Py_NewRef(PyTuple_GET_ITEM(called, 0));
    if (!inner && PyTuple_GET_ITEM(called, 2) != Py_None) inner = Py_NewRef(PyTuple_GET_ITEM(called, 2));
  }
  PyObject *seen[] = {user ? user : Py_NewRef(Py_None), library ? library : Py_NewRef(Py_None), inner ? inner : Py_NewRef(Py_None)};
  return tuple_of(of.Seen, 3, seen);
}

/* The path of the module that runs, new: known by the module's address, beside a reference that says whether it still lives. */
static PyObject *path_from(PyObject *frame) {
  PyObject *type = of_reads(word.module_type), *self;
  PyFrameObject *method = frame == Py_None || type == Py_None ? NULL : method_of((PyFrameObject *)frame, type, &self);
  if (!method) return PyUnicode_New(0, 0);
  PyObject *address = PyLong_FromVoidPtr(self), *known = address ? PyDict_GetItem(of.paths, address) : NULL;
  int lives = known && PyWeakref_GetObject(PyTuple_GET_ITEM(known, 0)) == self;
  PyObject *path = lives ? Py_NewRef(PyTuple_GET_ITEM(known, 1)) : PyObject_CallOneArg(of.path_from, frame);
  Py_XDECREF(address);
  Py_DECREF(self);
  Py_DECREF(method);
  return path;
}

/* A read that is on its way: to be called when it has ended. */
typedef struct {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject *op, *frame, *seen, *tensor, *selects, *arguments; /* the last two, or NULL: what says how many rows were kept, and of what */
  long long entered, start;
  int muted;
} Open;
static long long cost, reads; /* ns that noting reads has taken besides them, and how many */

static int tell(Open *read, long long end, PyObject *result) {
  PyObject *listeners = of.listeners, *reads = PyObject_GetAttr(listeners, word.reads), *kept;
  if (!reads || !PyTuple_GET_SIZE(reads)) { Py_XDECREF(reads); return reads ? 0 : -1; }
  int rows = read->selects && result != Py_None;
  kept = rows ? PyObject_CallFunctionObjArgs(read->selects, read->arguments, result, NULL) : Py_NewRef(Py_None);
  if (!kept) { Py_DECREF(reads); return -1; }
  int modules = is(listeners, word.modules);
  PyObject *path = modules > 0 ? path_from(read->frame) : PyUnicode_New(0, 0);
  PyObject *bytes = read->tensor == Py_None ? NULL : PyObject_GetAttr(read->tensor, word.nbytes);
  if (!bytes) { if (path) PyErr_Clear(); bytes = PyLong_FromLong(-1); }
  PyObject *thread = path ? PyObject_GetAttr(of.local, word.thread) : NULL;
  if (modules < 0 || !path || !bytes || !thread) {
    Py_DECREF(reads); Py_DECREF(kept); Py_XDECREF(path); Py_XDECREF(bytes); Py_XDECREF(thread);
    return -1;
  }
  PyObject *record = tuple_of(of.Record, 9, (PyObject *[]){Py_NewRef(read->op), Py_NewRef(read->seen), thread,
    PyLong_FromLongLong(read->start), PyLong_FromLongLong(end), bytes, PyUnicode_New(0, 0), path, kept});
  int well = record != NULL;
  for (Py_ssize_t i = 0; well && i < PyTuple_GET_SIZE(reads); i++) {
    PyObject *done = PyObject_CallOneArg(PyTuple_GET_ITEM(reads, i), record);
    well = done != NULL;
    Py_XDECREF(done);
  }
  Py_XDECREF(record);
  Py_DECREF(reads);
  return well ? 0 : -1;
}

/* The blocking calls of the driver until now are explained. */
static int explained(PyObject *local) {
  static _Thread_local unsigned long long *count; /* they lie where the thread's other variables do */
  if (!count) {
    PyObject *waits = PyObject_GetAttr(local, word.waits);
    if (!waits) return -1;
    count = PyMemoryView_GET_BUFFER(waits)->buf;
    Py_DECREF(waits);
  }
  count[1] = count[0];
  return 0;
}

static PyObject *ended(PyObject *self, PyObject *const *given, size_t count, PyObject *kwargs) {
  Open *read = (Open *)self;
  long long end = now();
  PyObject *local = of.local, *unmute = read->muted ? of_reads(word.unmute) : NULL;
  PyObject *done = unmute && unmute != Py_None ? PyObject_CallNoArgs(unmute) : Py_NewRef(Py_None);
  PyObject *result = PyVectorcall_NARGS(count) ? given[0] : Py_None;
  int well = done ? tell(read, end, result) : -1;
  Py_XDECREF(done);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  well |= PyObject_SetAttr(local, word.inside, Py_False) | explained(local);
  if (type) PyErr_Restore(type, value, traceback);
  cost += now() - end + read->start - read->entered;
  reads++;
  return well ? NULL : Py_NewRef(Py_None);
}

static void closed(PyObject *self) {
  Open *read = (Open *)self;
  Py_XDECREF(read->op); Py_XDECREF(read->frame); Py_XDECREF(read->seen); Py_XDECREF(read->tensor);
  Py_XDECREF(read->selects); Py_XDECREF(read->arguments);
  PyObject_Free(self);
}
static PyTypeObject OpenType = {PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "_reads.Open", .tp_basicsize = sizeof(Open),
  .tp_dealloc = closed, .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Open, call),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_doc = "A read that is on its way."};

static PyObject *begun(PyObject *op, PyObject *tensor, PyObject *selects, PyObject *arguments, long long entered) {
  PyFrameObject *frame = (PyFrameObject *)Py_XNewRef(PyEval_GetFrame());
  PyObject *local = of.local, *guards = NULL, *muted = NULL;
  while (frame) {
    PyCodeObject *code = PyFrame_GetCode(frame);
    int kind = kind_of(code);
    PyObject *other = kind == BETWEEN ? PyDict_GetItem(of.named, (PyObject *)code) : NULL;
    Py_DECREF(code);
    if (other) op = other;
    if (kind < 0) { Py_DECREF(frame); return NULL; }
    if (kind != BETWEEN) break;
    Py_SETREF(frame, PyFrame_GetBack(frame));
  }
  Open *read = PyObject_New(Open, &OpenType);
  if (!read) { Py_XDECREF(frame); return NULL; }
  read->call = ended;
  read->op = Py_NewRef(op);
  read->frame = frame ? (PyObject *)frame : Py_NewRef(Py_None);
  read->tensor = Py_NewRef(tensor);
  read->selects = Py_XNewRef(arguments ? selects : NULL);
  read->arguments = Py_XNewRef(arguments);
  read->entered = entered;
  read->muted = 0;
  if (!(read->seen = seen_from(frame ? (PyFrameObject *)Py_NewRef(frame) : NULL))) goto failed;
  if (PyObject_SetAttr(local, word.inside, Py_True)) goto failed;
  if (!(guards = PyObject_GetAttr(of.listeners, word.guards))) goto opened;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(guards); i++) {
    PyObject *allowed = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(guards, i), op, read->seen, NULL);
    if (!allowed) goto opened;
    Py_DECREF(allowed);
  }
  PyObject *mute = of_reads(word.mute);
  if (mute != Py_None) {
    if (!(muted = PyObject_CallNoArgs(mute))) goto opened;
    read->muted = PyObject_IsTrue(muted);
    Py_DECREF(muted);
  }
  Py_DECREF(guards);
  read->start = now();
  return Py_BuildValue("OON", Py_None, Py_None, read);
opened:
  Py_XDECREF(guards);
  { /* it was not to be: what was raised stays raised */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyObject_SetAttr(local, word.inside, Py_False)) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
  }
failed:
  Py_DECREF(read);
  return NULL;
}

/* What is called before a call, for `methods.hear`. */
typedef struct { PyObject_HEAD vectorcallfunc call; PyObject *op, *waits, *selects; int how; } Before;

static PyObject *called(PyObject *self, PyObject *const *given, size_t count, PyObject *none) {
  Before *before = (Before *)self;
  long long entered = now();
  if (PyVectorcall_NARGS(count) != 3 || !PyTuple_Check(given[1]))
    return PyErr_Format(PyExc_TypeError, "self, a tuple of arguments and a dictionary of keywords, or None");
  PyObject *own = given[0], *args = given[1], *kwargs = given[2], *tensor = Py_None;
  PyObject *all = NULL; /* with the tensor, which a method has before its arguments */
  if (before->how != ALWAYS) {
    if (before->how == FUNCTION && !PyTuple_GET_SIZE(args)) Py_RETURN_NONE;
    tensor = before->how == METHOD ? own : PyTuple_GET_ITEM(args, 0);
  }
  int inside = is(of.local, word.inside);
  if (inside) return inside < 0 ? NULL : Py_NewRef(Py_None);
  if (before->how != ALWAYS) {
    int there = on_device(tensor);
    if (there <= 0) return there < 0 ? NULL : Py_NewRef(Py_None);
  }
  if (before->waits != Py_None || before->selects != Py_None) {
    all = before->how == METHOD ? PyTuple_New(1 + PyTuple_GET_SIZE(args)) : Py_NewRef(args);
    if (!all) return NULL;
    for (Py_ssize_t i = 0; before->how == METHOD && i <= PyTuple_GET_SIZE(args); i++)
      PyTuple_SET_ITEM(all, i, Py_NewRef(i ? PyTuple_GET_ITEM(args, i - 1) : own));
  }
  if (before->waits != Py_None) {
    PyObject *answer = PyObject_Call(before->waits, all, kwargs == Py_None ? NULL : kwargs);
    int waits = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (waits <= 0) { Py_DECREF(all); return waits < 0 ? NULL : Py_NewRef(Py_None); }
  }
  PyObject *answer = begun(before->op, tensor, before->selects, before->selects == Py_None ? NULL : all, entered);
  Py_XDECREF(all);
  return answer;
}

static void gone(PyObject *self) {
  Py_XDECREF(((Before *)self)->op);
  Py_XDECREF(((Before *)self)->waits);
  Py_XDECREF(((Before *)self)->selects);
  PyObject_Free(self);
}
static PyTypeObject BeforeType = {PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "_reads.Before", .tp_basicsize = sizeof(Before),
  .tp_dealloc = gone, .tp_call = PyVectorcall_Call, .tp_vectorcall_offset = offsetof(Before, call),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, .tp_doc = "What is called before a call that may read."};

/* before(op, how, waits, selects): `how` says where the tensor stands, the others are as in reads.py. */
static PyObject *before(PyObject *module, PyObject *given) {
  PyObject *op, *waits, *selects;
  int how;
  if (!PyArg_ParseTuple(given, "OiOO", &op, &how, &waits, &selects)) return NULL;
  Before *made = PyObject_New(Before, &BeforeType);
  if (made) { made->call = called; made->op = Py_NewRef(op); made->waits = Py_NewRef(waits); made->selects = Py_NewRef(selects); made->how = how; }
  return (PyObject *)made;
}

/* know(names): where everything is looked up, the names of reads.py. */
static PyObject *know(PyObject *module, PyObject *given) {
  if (!PyDict_Check(given)) return PyErr_Format(PyExc_TypeError, "the names of a module are a dictionary");
#define KEPT(n) Py_XSETREF(of.n, Py_XNewRef(PyDict_GetItemString(given, #n))); \
  if (!of.n) return PyErr_Format(PyExc_KeyError, #n);
  LASTING(KEPT)
  Py_XSETREF(names, Py_NewRef(given));
  Py_RETURN_NONE;
}

static PyObject *cost_of(PyObject *module, PyObject *none) { return Py_BuildValue("LL", cost, reads); }

static PyMethodDef functions[] = {
  {"name_in", (PyCFunction)(void *)name_in, METH_FASTCALL, "name_in(frame, value): what a function calls it, or None"},
  {"running", (PyCFunction)(void *)running, METH_FASTCALL, "running(frame, type): whose method runs, and its frame"},
  {"before", before, METH_VARARGS, "before(op, how, waits, selects): what is called before a call that may read"},
  {"cost", cost_of, METH_NOARGS, "cost(): ns that noting reads has taken besides them, and how many"},
  {"know", know, METH_O, "know(names): of reads.py"},
  {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_reads", 0, -1, functions};
PyMODINIT_FUNC PyInit__reads(void) {
#define INTERNED(n) if (!(word.n = PyUnicode_InternFromString(#n))) return NULL;
  WORDS(INTERNED)
  if (!(self_word = PyUnicode_InternFromString("self"))) return NULL;
  if (PyType_Ready(&OpenType) || PyType_Ready(&BeforeType)) return NULL;
  return PyModule_Create(&definition);
}
