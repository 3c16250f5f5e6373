/* The key of an operator's call: words that tell it from every call that may be planned in another way; a part of plans.c. */
static uint64_t *key;            /* of the call that is looked up */
static Py_ssize_t words, key_room;
static PyObject **given;         /* its tensors and their buffers */
static void **buffers;
static int tensors, tensors_room;

static int put(uint64_t x) {
  if (words == key_room) {
    uint64_t *more = realloc(key, sizeof *key * (2 * key_room + 256));
    if (!more) return 0;
    key = more;
    key_room = 2 * key_room + 256;
  }
  key[words++] = x;
  return 1;
}

static int more_tensors(void) {
  int room = 2 * tensors_room + 64;
  PyObject **more_given = realloc(given, sizeof *given * room);
  if (more_given) given = more_given;
  void **more_buffers = realloc(buffers, sizeof *buffers * room);
  if (more_buffers) buffers = more_buffers;
  if (more_given && more_buffers) tensors_room = room;
  return more_given && more_buffers;
}

static int put_tensor(PyObject *x) {
  View view;
  if (dlpack->look(x, &view)) {
    PyErr_Clear();
    return 0;
  }
  Block *block = view.data && view.device[0] == EXTENSION ? block_at(view.data) : NULL;
  if (!block || (tensors == tensors_room && !more_tensors())) return 0;
  if (block->call != calls) {
    block->call = calls;
    block->first = tensors;
  }
  given[tensors] = x;
  buffers[tensors++] = block->buffer;
  uint32_t dtype;
  memcpy(&dtype, &view.dtype, sizeof dtype);
  int fine = put('T' | (uint64_t)view.ndim << 8 | (uint64_t)dtype << 32);
  fine = fine && put(view.data - block->address) && put(block->first); /* tensors that share memory are another call */
  for (int d = 0; d < view.ndim && fine; d++) fine = put(view.shape[d]) && put(view.stride[d]);
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

static int put_call(uint64_t number, long long settings, PyObject *args, PyObject *kwargs) {
  words = tensors = 0;
  calls++;
  PyObject *dtype = PyObject_CallNoArgs(py.default_dtype);
  Py_XDECREF(dtype); /* dtypes live as long as the process */
  int fine = dtype && put(number) && put(settings) && put((uintptr_t)dtype);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && fine; i++) fine = put_value(PyTuple_GET_ITEM(args, i));
  PyObject *name, *value;
  for (Py_ssize_t at = 0; kwargs && fine && PyDict_Next(kwargs, &at, &name, &value);) fine = put_text(name) && put_value(value);
  return fine;
}

static uint64_t hash_of(const uint64_t *of, Py_ssize_t count) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  for (Py_ssize_t i = 0; i < count; i++) hash = (hash ^ of[i]) * 0xD6E8FEB86659FD93u, hash ^= hash >> 32;
  return hash;
}
