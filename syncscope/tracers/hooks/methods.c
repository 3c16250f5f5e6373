/* Hears calls of functions that are written in C, torch's among them, and changes nothing that Python can see.
 *
 * Such a function is called through a pointer: a method through `ml_meth` of its PyMethodDef, a function through `vectorcall` of
 * its object (empty where it takes a tuple, as torch's do; its `ml_meth` is part of its hash), an operator through a slot of its type.
 * One store puts a function of ours there, another takes it back, as with the dispatch tables of OpenCL. The object stays: who compares it, pickles it, looks it up in a table of torch's compilers, or asks a subclass
 * for it finds what was there; classes get no attributes, C slots no Python functions, and tracebacks no frames.
 *
 * `before(self, args, kwargs)` is called first (self is None where a function has none, kwargs where there are none). What it
 * raises, the call raises. It gives back None: nothing to add; (answer,): instead of the call; (args, kwargs, after): call it
 * with other arguments if args is not None, then after(result), with None where the call raised.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define HOOKS 256 /* functions that can be heard at a time */
typedef PyObject *(*Function)(void *, void *, void *, void *); /* by any convention: what it does not take is not looked at */
typedef int (*Assign)(PyObject *, PyObject *, PyObject *);

static struct hook {
  PyObject *before; /* none: free */
  Function original;
  int flags;        /* METH_..., or of a slot how it is called */
  void **place;     /* where the pointer stands; of a slot there are several */
  PyObject *owner;  /* the function that the place is in, or the type whose slot it is */
  int slot;         /* of that type and of all that inherit from it; -1: none */
} hooks[HOOKS];

enum { CALLED = METH_FASTCALL | METH_KEYWORDS | 1 << 20 }; /* flags of a function that is heard where it is called */
static PyObject *empty;

/* The arguments as a tuple and a dictionary, both new, from whatever the convention passes. */
static int unpacked(int flags, void *b, void *c, void *d, PyObject **args, PyObject **kwargs) {
  *kwargs = Py_None;
  switch (flags & (METH_VARARGS | METH_FASTCALL | METH_NOARGS | METH_O)) {
    case METH_NOARGS: *args = empty; break;
    case METH_O: *args = PyTuple_Pack(1, (PyObject *)b); Py_INCREF(Py_None); return *args ? 0 : -1;
    case METH_FASTCALL: {
      Py_ssize_t n = PyVectorcall_NARGS((size_t)c), i;
      PyObject *const *given = b, *names = flags & METH_KEYWORDS ? d : NULL;
      if (!(*args = PyTuple_New(n))) return -1;
      for (i = 0; i < n; i++) { Py_INCREF(given[i]); PyTuple_SET_ITEM(*args, i, given[i]); }
      if (names && PyTuple_GET_SIZE(names)) {
        if (!(*kwargs = PyDict_New())) { Py_DECREF(*args); return -1; }
        for (i = 0; i < PyTuple_GET_SIZE(names); i++)
          if (PyDict_SetItem(*kwargs, PyTuple_GET_ITEM(names, i), given[n + i])) {
            Py_DECREF(*args); Py_DECREF(*kwargs); return -1;
          }
        return 0;
      }
      Py_INCREF(Py_None);
      return 0;
    }
    default: *args = b ? b : empty; if (flags & METH_KEYWORDS && c) *kwargs = c;
  }
  Py_INCREF(*args);
  Py_INCREF(*kwargs);
  return 0;
}

/* Calls Python of ours. torch.compile traces whatever runs on a thread on which it traces: `eval_frame`, its set_eval_frame, has it
 * look away meanwhile. */
static PyObject *eval_frame;
static PyObject *ours_called(PyObject *callable, PyObject *a, PyObject *b, PyObject *c) {
  PyObject *looking = eval_frame ? PyObject_CallFunctionObjArgs(eval_frame, Py_None, NULL) : NULL;
  if (eval_frame && !looking) return NULL;
  PyObject *answer = PyObject_CallFunctionObjArgs(callable, a, b, c, NULL);
  if (looking && looking != Py_None && eval_frame) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(PyObject_CallFunctionObjArgs(eval_frame, looking, NULL));
    PyErr_Restore(type, value, traceback);
  }
  Py_XDECREF(looking);
  return answer;
}

static PyObject *asked(struct hook *hook, PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *before = hook->before;
  Py_INCREF(before); /* it may be taken back meanwhile */
  PyObject *answer = ours_called(before, self ? self : Py_None, args, kwargs);
  Py_DECREF(before);
  return answer;
}

/* Tells `after` of the result; what the call raised stays raised. Returns 0 where `after` itself raised. */
static int told(PyObject *after, PyObject *result) {
  if (after == Py_None) return 1;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *done = ours_called(after, result ? result : Py_None, NULL, NULL);
  if (!done && !type) return 0;
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
  return 1;
}

static PyObject *heard(struct hook *hook, void *a, void *b, void *c, void *d) {
  Function original = hook->original;
  if (!hook->before) return original(a, b, c, d);
  PyObject *args, *kwargs;
  int called = hook->flags == CALLED; /* a is the function itself */
  if (unpacked(hook->flags, b, c, d, &args, &kwargs)) return NULL;
  PyObject *answer = asked(hook, called ? NULL : a, args, kwargs), *result = NULL;
  Py_DECREF(args);
  Py_DECREF(kwargs);
  if (!answer) return NULL;
  if (answer == Py_None) {
    result = original(a, b, c, d);
  } else if (PyTuple_GET_SIZE(answer) == 1) {
    result = PyTuple_GET_ITEM(answer, 0);
    Py_INCREF(result);
  } else {
    if (PyTuple_GET_ITEM(answer, 0) != Py_None) {
      b = PyTuple_GET_ITEM(answer, 0);
      c = PyTuple_GET_ITEM(answer, 1) == Py_None ? NULL : PyTuple_GET_ITEM(answer, 1);
      result = called ? Py_TYPE((PyObject *)a)->tp_call(a, b, c) : original(a, b, c, d);
    } else {
      result = original(a, b, c, d);
    }
    if (!told(PyTuple_GET_ITEM(answer, 2), result)) Py_CLEAR(result);
  }
  Py_DECREF(answer);
  return result;
}

/* One function of ours for each hook: what is called does not say through which table. */
#define OURS(n) static PyObject *ours_##n(void *a, void *b, void *c, void *d) { return heard(&hooks[0x##n], a, b, c, d); }
#define NAME(n) ours_##n,
#define ROW(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) \
  X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define ALL(X) ROW(X, 0) ROW(X, 1) ROW(X, 2) ROW(X, 3) ROW(X, 4) ROW(X, 5) ROW(X, 6) ROW(X, 7) \
  ROW(X, 8) ROW(X, 9) ROW(X, a) ROW(X, b) ROW(X, c) ROW(X, d) ROW(X, e) ROW(X, f)
ALL(OURS)
static const Function ours[HOOKS] = {ALL(NAME)};

/* `x[i] = value` and `del x[i]` give an int back: one type's assignments are heard at a time. */
static struct hook *assigned;
static int assign(PyObject *self, PyObject *key, PyObject *value) {
  struct hook *hook = assigned;
  Assign original = (Assign)hook->original;
  if (!hook->before || !value) return original(self, key, value);
  PyObject *args = PyTuple_Pack(2, key, value);
  PyObject *answer = args ? asked(hook, self, args, Py_None) : NULL;
  Py_XDECREF(args);
  if (!answer) return -1;
  int result = original(self, key, value);
  if (answer != Py_None && !told(PyTuple_GET_ITEM(answer, 2), result ? NULL : Py_True)) result = -1;
  Py_DECREF(answer);
  return result;
}

static PyObject *made(PyObject *before, Function original, int flags, void **place, PyObject *owner, int slot) {
  for (int i = 0; i < HOOKS; i++)
    if (!hooks[i].before) {
      hooks[i] = (struct hook){Py_NewRef(before), original, flags, place, Py_NewRef(owner), slot};
      return PyLong_FromLong(i);
    }
  PyErr_SetString(PyExc_RuntimeError, "more functions are to be heard than there is room for");
  return NULL;
}

/* What a function was called with as a vector, it takes as a tuple and a dictionary. */
static PyObject *as_tuple(void *function, void *vector, void *count, void *names) {
  PyObject *args, *kwargs;
  if (unpacked(METH_FASTCALL | METH_KEYWORDS, vector, count, names, &args, &kwargs)) return NULL;
  PyObject *result = Py_TYPE((PyObject *)function)->tp_call(function, args, kwargs == Py_None ? NULL : kwargs);
  Py_DECREF(args);
  Py_DECREF(kwargs);
  return result;
}

/* hear(function, before): the number of a hook, which is not in place yet; None where the function is not written in C. */
static PyObject *hear(PyObject *module, PyObject *given) {
  PyObject *function, *before;
  if (!PyArg_ParseTuple(given, "OO", &function, &before)) return NULL;
  if (Py_IS_TYPE(function, &PyMethodDescr_Type)) {
    PyMethodDef *method = ((PyMethodDescrObject *)function)->d_method;
    return made(before, (Function)(void *)method->ml_meth, method->ml_flags, (void **)&method->ml_meth, function, -1);
  }
  if (!PyCFunction_Check(function)) Py_RETURN_NONE;
  PyMethodDef *method = ((PyCFunctionObject *)function)->m_ml;
  if (method->ml_flags & METH_VARARGS && !((PyCFunctionObject *)function)->vectorcall)
    return made(before, as_tuple, CALLED, (void **)&((PyCFunctionObject *)function)->vectorcall, function, -1);
  return made(before, (Function)(void *)method->ml_meth, method->ml_flags, (void **)&method->ml_meth, function, -1);
}

enum { ITEM, SET, MAKE };
static void **slot_of(PyTypeObject *type, int slot) {
  PyMappingMethods *mapping = type->tp_as_mapping;
  if (slot == MAKE) return (void **)&type->tp_new;
  if (!mapping) return NULL;
  return slot == ITEM ? (void **)&mapping->mp_subscript : (void **)&mapping->mp_ass_subscript;
}

/* hear_slot(type, slot, wrapper, before): x[i] (0), x[i] = y (1) or the making of an object (2), of a type and all that inherit
 * from it; `wrapper` is that of the slot which the type has as an attribute, or None. */
static PyObject *hear_slot(PyObject *module, PyObject *given) {
  PyObject *type, *wrapper, *before;
  int slot;
  if (!PyArg_ParseTuple(given, "O!iOO", &PyType_Type, &type, &slot, &wrapper, &before)) return NULL;
  int flags = slot == ITEM ? METH_O : METH_VARARGS | METH_KEYWORDS;
  void **place = Py_IS_TYPE(wrapper, &PyWrapperDescr_Type) ? &((PyWrapperDescrObject *)wrapper)->d_wrapped : NULL;
  return made(before, (Function)*slot_of((PyTypeObject *)type, slot), flags, place, type, slot);
}

/* Appends a type and all that inherit from it to a list; 0 where that failed. */
static PyObject *subclasses; /* type.__subclasses__, whatever the metaclass makes of it */
static int listed(PyObject *found, PyObject *type) {
  if (PyList_Append(found, type)) return 0;
  PyObject *children = PyObject_CallOneArg(subclasses, type);
  int well = children != NULL;
  for (Py_ssize_t i = 0; well && i < PyList_GET_SIZE(children); i++) well = listed(found, PyList_GET_ITEM(children, i));
  Py_XDECREF(children);
  return well;
}

static void *mine(struct hook *hook) { return hook->slot == SET ? (void *)assign : (void *)ours[hook - hooks]; }
static void moved(PyObject *types, struct hook *hook, void *from, void *to) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++) {
    void **place = slot_of((PyTypeObject *)PyList_GET_ITEM(types, i), hook->slot);
    if (place && *place == from) *place = to;
  }
  if (hook->place && *hook->place == from) *hook->place = to;
}

/* Puts all of these hooks in place, or takes them back, the last first: types that were made meanwhile have inherited ours. */
static PyObject *switched(PyObject *numbers, int on) {
  PyObject *types = NULL, *root = NULL;
  if (!PyTuple_Check(numbers)) return PyErr_Format(PyExc_TypeError, "the numbers of hooks are a tuple");
  for (Py_ssize_t n = PyTuple_GET_SIZE(numbers), i = 0; i < n; i++) {
    struct hook *hook = &hooks[PyLong_AsLong(PyTuple_GET_ITEM(numbers, on ? i : n - 1 - i))];
    if (hook->slot >= 0) {
      if (root != hook->owner) { /* several slots of a type in a row need its family once */
        Py_XSETREF(types, PyList_New(0));
        if (!types || !listed(types, root = hook->owner)) { Py_XDECREF(types); return NULL; }
      }
      if (on) hook->original = (Function)*slot_of((PyTypeObject *)hook->owner, hook->slot);
      if (on && hook->slot == SET) assigned = hook;
      moved(types, hook, on ? (void *)hook->original : mine(hook), on ? mine(hook) : (void *)hook->original);
    } else if (hook->flags == CALLED) {
      *hook->place = on ? mine(hook) : NULL;
    } else {
      if (on) hook->original = (Function)*hook->place;
      *hook->place = on ? mine(hook) : (void *)hook->original;
    }
  }
  Py_XDECREF(types);
  Py_RETURN_NONE;
}
static PyObject *put(PyObject *module, PyObject *numbers) { return switched(numbers, 1); }
static PyObject *take(PyObject *module, PyObject *numbers) { return switched(numbers, 0); }

/* forget(numbers): hooks that were taken back make room for others. `original` stays: who is in the call has yet to make it. */
static PyObject *forget(PyObject *module, PyObject *numbers) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
    struct hook *hook = &hooks[PyLong_AsLong(PyTuple_GET_ITEM(numbers, i))];
    Py_CLEAR(hook->before);
    Py_CLEAR(hook->owner);
  }
  Py_RETURN_NONE;
}

/* follow(mode, function, types, args, kwargs): a mode of torch whose work comes after the call, so that what the call raises has
 * no frame of the mode. Functions in Python are given to mode.around(function, args, kwargs); else what mode.followed(function,
 * args, kwargs, result) makes of the result is the result. */
static PyObject *follow(PyObject *module, PyObject *const *given, Py_ssize_t count) {
  if (count < 4) return PyErr_Format(PyExc_TypeError, "follow takes a mode, a function, types, args and kwargs");
  PyObject *mode = given[0], *function = given[1], *args = given[3], *kwargs = count > 4 ? given[4] : Py_None;
  if (PyFunction_Check(function)) return PyObject_CallMethod(mode, "around", "OOO", function, args, kwargs);
  PyObject *result = PyObject_Call(function, args, kwargs == Py_None ? NULL : kwargs);
  if (!result) return NULL;
  PyObject *followed = PyObject_CallMethod(mode, "followed", "OOOO", function, args, kwargs, result);
  Py_DECREF(result);
  return followed;
}
static PyMethodDef follow_method = {"__torch_function__", (PyCFunction)(void *)follow, METH_FASTCALL, NULL};

/* look_away(set_eval_frame), or None: see `eval_frame`. */
static PyObject *look_away(PyObject *module, PyObject *setter) {
  PyObject *before = eval_frame;
  eval_frame = setter == Py_None ? NULL : Py_NewRef(setter);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  {"look_away", look_away, METH_O, "look_away(set_eval_frame), or None: torch.compile is not to trace what hears"},
  {"hear", hear, METH_VARARGS, "hear(function, before): its number, None where it is not written in C"},
  {"hear_slot", hear_slot, METH_VARARGS, "hear_slot(type, slot, wrapper, before): its number"},
  {"put", put, METH_O, "put(numbers): in place"},
  {"take", take, METH_O, "take(numbers): as before"},
  {"forget", forget, METH_O, "forget(numbers): taken back for good"},
  {0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_methods", 0, -1, functions};
PyMODINIT_FUNC PyInit__methods(void) {
  if (!empty && !(empty = PyTuple_New(0))) return NULL;
  if (!subclasses && !(subclasses = PyObject_GetAttrString((PyObject *)&PyType_Type, "__subclasses__"))) return NULL;
  PyObject *module = PyModule_Create(&definition), *function = PyCFunction_New(&follow_method, NULL);
  PyObject *method = function ? PyInstanceMethod_New(function) : NULL; /* so that it is bound to the mode */
  Py_XDECREF(function);
  if (!module || !method || PyModule_AddObject(module, "follow", method)) {
    Py_XDECREF(module);
    Py_XDECREF(method);
    return NULL;
  }
  return module;
}
