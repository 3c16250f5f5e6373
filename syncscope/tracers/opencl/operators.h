/* The operators of our own device: a part of icd.c.
 *
 * An observer of kernels/queue.py, as a function of Python's: it runs after each of hundreds of operators in a step, and in
 * Python would cost more than the rest of a recording. What it takes of the interpreter is in the stable ABI, and declared
 * here: who has no compiled hook and builds it on first use may have no Python.h either. Weak, so that the hook loads
 * wherever Python's names are not to be seen.
 */
typedef struct { const char *name; P (*function)(P, P const *, ssize_t); int flags; const char *doc; } Method;
#define WEAK __attribute__((weak)) extern
WEAK P PyCFunction_NewEx(Method *, P self, P module);
WEAK P PyObject_CallFunctionObjArgs(P, ...);
WEAK P PyLong_FromUnsignedLongLong(unsigned long long);
WEAK unsigned long long PyLong_AsUnsignedLongLong(P);
WEAK const char *PyUnicode_AsUTF8AndSize(P, ssize_t *);
WEAK P PyErr_Occurred(void);
WEAK int PyErr_BadArgument(void);
WEAK void Py_IncRef(P), Py_DecRef(P);
WEAK char _Py_NoneStruct;

static uint32_t operator_name(P label) { /* 0 and an exception where it is no string */
  uint64_t id = map_get(operator_names, label);
  if (id) return id;
  ssize_t length;
  const char *text = PyUnicode_AsUTF8AndSize(label, &length);
  if (!text) return 0;
  pthread_mutex_lock(&leaf);
  id = put_name(text, length);
  int kept = map_put(operator_names, label, id);
  pthread_mutex_unlock(&leaf);
  if (kept) Py_IncRef(label); /* so that nothing else gets its address */
  return id;
}
/* (name, start, how it ran, ...): it ends now. `explain` is called with (name, start, end, how) where the thread has waited
 * in the driver and nobody has said why. */
static P operated(P explain, P const *args, ssize_t n) {
  uint64_t t1 = now();
  if (n < 3) { PyErr_BadArgument(); return 0; }
  uint64_t t0 = PyLong_AsUnsignedLongLong(args[1]);
  if (t0 == -1ull && PyErr_Occurred()) return 0;
  uint64_t how = PyLong_AsUnsignedLongLong(args[2]);
  if (how == -1ull && PyErr_Occurred()) return 0;
  if (recording()) {
    uint32_t name = operator_name(args[0]);
    if (!name) return 0;
    Rec r = {.type = OPERATOR, .flags = flags_of(how), .tid = me(), .name = name,
             .size = -1, .t0 = t0, .t1 = t1 < t0 ? t0 : t1};
    pthread_mutex_lock(&leaf);
    if (recording()) put(&r);
    pthread_mutex_unlock(&leaf);
  }
  if (my.waits != my.told && my.era == era) {
    P end = PyLong_FromUnsignedLongLong(t1);
    P answer = end ? PyObject_CallFunctionObjArgs(explain, args[0], args[1], end, args[2], (P)0) : 0;
    if (end) Py_DecRef(end);
    return answer;
  }
  Py_IncRef((P)&_Py_NoneStruct);
  return (P)&_Py_NoneStruct;
}
P new_observer(P explain) {
  static Method method = {"operated", operated, 0x80 /* METH_FASTCALL */, 0};
  return PyCFunction_NewEx ? PyCFunction_NewEx(&method, explain, 0) : 0;
}
