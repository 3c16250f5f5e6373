/* What is known of a code object: whose it is, and the numbers of its lines: a part of lines.c.
 *
 * Everything is copied when the code is met first, on the thread that runs it and thereby keeps it alive; so no reference is taken,
 * which would need the GIL. A code that goes is forgotten by the type's own destructor, before another can stand at its address.
 */
enum { USER, LIBRARY, CARRIER }; /* as in places.py; a carrier's lines are never shown */
#define CODES (1u << 15) /* that are known at a time */
#define TRIES 256
#define TEXT 1024
typedef struct { int kind, units; char *path, *function; _Atomic uint64_t at[]; } Code; /* of an instruction: recording, number */
typedef struct { _Atomic(PyCodeObject *) key; Code *_Atomic value; } Known;
static Known known[CODES];
#define GONE ((PyCodeObject *)1)
static Code carrier = {.kind = CARRIER};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1; /* where new numbers are told of */
static uint32_t numbers;
static _Atomic uint32_t recording; /* counts them; 0 while there is none */
static uint32_t recordings;
static char *carriers; /* folders and files, each begun and ended with a line feed */

/* UTF-8 of a text, with or without the GIL: Python's own function would keep what it makes. */
static void copied(char *to, size_t room, PyObject *text) {
  size_t used = 0;
  Py_ssize_t length = PyUnicode_GET_LENGTH(text);
  int kind = PyUnicode_KIND(text);
  const void *data = PyUnicode_DATA(text);
  for (Py_ssize_t i = 0; i < length && used + 4 < room; i++) {
    Py_UCS4 c = PyUnicode_READ(kind, data, i);
    if (c < 0x80) to[used++] = c;
    else if (c < 0x800) to[used++] = 0xC0 | c >> 6, to[used++] = 0x80 | (c & 63);
    else if (c < 0x10000) to[used++] = 0xE0 | c >> 12, to[used++] = 0x80 | (c >> 6 & 63), to[used++] = 0x80 | (c & 63);
    else to[used++] = 0xF0 | c >> 18, to[used++] = 0x80 | (c >> 12 & 63), to[used++] = 0x80 | (c >> 6 & 63), to[used++] = 0x80 | (c & 63);
  }
  to[used] = 0;
}

/* The same as places.kind_of_file, which has the reasons. */
static int starts(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }
static int kind_of(const char *path) {
  static const char *installed[] = {"/site-packages/", "/dist-packages/"};
  static const char *torch[] = {"torch/", "functorch/", "torchgen/", "triton/", "pyopencl/", "syncscope/"};
  static const char *made[] = {"<frozen ", "<eval_with_key>", "<generated: 'pyopencl"};
  const char *in = NULL;
  for (int i = 0; i < 2; i++) {
    for (const char *at = path; (at = strstr(at, installed[i])); at++)
      if (at + strlen(installed[i]) > in) in = at + strlen(installed[i]);
  }
  for (int i = 0; in && i < 6; i++) if (starts(in, torch[i])) return CARRIER;
  if (in) return LIBRARY;
  for (int i = 0; i < 3; i++) if (starts(path, made[i])) return CARRIER;
  if (*path == '<') return USER;
  for (const char *at = carriers; at && at[1]; at = strchr(at + 1, '\n')) {
    const char *end = strchr(at + 1, '\n');
    if (!strncmp(path, at + 1, end - at - 1)) return CARRIER;
  }
  return strstr(path, "/torchinductor_") ? CARRIER : USER;
}

/* What torch.compile has made of a function: the line of its call says more. */
static int compiled(PyCodeObject *code) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++) {
    char name[16];
    copied(name, sizeof name, PyTuple_GET_ITEM(code->co_names, i));
    if (starts(name, "__compiled_f")) return 1;
  }
  return 0;
}

static unsigned place_of(PyCodeObject *code) { return (uint64_t)code * 0x9E3779B97F4A7C15ull >> 49; }

/* Takes in a code that this thread runs; NULL where there is no room for it. */
static __attribute__((noinline)) Code *learned(PyCodeObject *code) {
  char path[TEXT], function[TEXT];
  copied(path, sizeof path, code->co_filename);
  copied(function, sizeof function, code->co_qualname);
  int kind = kind_of(path), units = Py_SIZE(code);
  Code *made = &carrier;
  if (kind != CARRIER && !compiled(code)) {
    size_t size = sizeof(Code) + units * sizeof(uint64_t), more = strlen(path) + 1;
    made = calloc(1, size + more + strlen(function) + 1);
    if (!made) return NULL;
    made->kind = kind;
    made->units = units;
    made->path = strcpy((char *)made + size, path);
    made->function = strcpy(made->path + more, function);
  }
  Known *room = NULL;
  pthread_mutex_lock(&lock);
  for (unsigned i = place_of(code), n = 0; n < TRIES; i = (i + 1) % CODES, n++) {
    PyCodeObject *there = known[i].key;
    if (there == code) { /* another thread was first */
      if (made != &carrier) free(made);
      made = known[i].value;
      room = NULL;
      break;
    }
    if (!room && (!there || there == GONE)) room = &known[i];
    if (!there) break;
    if (n == TRIES - 1 && !room) { if (made != &carrier) free(made); made = NULL; }
  }
  if (room) {
    room->value = made;
    atomic_store_explicit(&room->key, code, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return made;
}
static inline Code *known_of(PyCodeObject *code) {
  for (unsigned i = place_of(code), n = 0; n < TRIES; i = (i + 1) % CODES, n++) {
    PyCodeObject *there = atomic_load_explicit(&known[i].key, memory_order_acquire);
    if (there == code) return atomic_load_explicit(&known[i].value, memory_order_relaxed);
    if (!there) break;
  }
  return learned(code);
}

static destructor destroyed;
static void forget(PyObject *code) { /* nobody runs it any more */
  Code *gone = NULL;
  pthread_mutex_lock(&lock);
  for (unsigned i = place_of((PyCodeObject *)code), n = 0; n < TRIES; i = (i + 1) % CODES, n++) {
    PyCodeObject *there = known[i].key;
    if (there == (PyCodeObject *)code) {
      gone = known[i].value;
      known[i].key = GONE;
      break;
    }
    if (!there) break;
  }
  pthread_mutex_unlock(&lock);
  if (gone && gone != &carrier) free(gone);
  destroyed(code);
}

/* The number of a place, which the file has explained; 0 where there is no line. A number is told of before it is used. */
typedef struct { uint8_t type, fn, flags, pad; uint32_t tid, queue, name; char text[48]; } Rec;
_Static_assert(sizeof(Rec) == 64, "record_file.py reads 64 bytes");
enum { LINE = 12 }; /* as in record_file.py */
#define MOST (1u << 20) /* numbers that fit beside one another into a launch's record */
static int written(const Rec *records, int count) { /* or, on a full disk, nothing of them */
  ssize_t size = count * sizeof(Rec), wrote = write(fd, records, size);
  if (wrote == size) return 1;
  off_t end = wrote > 0 ? lseek(fd, -wrote, SEEK_CUR) : -1;
  return end >= 0 && ftruncate(fd, end) && 0;
}
static __attribute__((noinline)) uint32_t told(PyCodeObject *code, Code *of, int at, uint32_t now) {
  char text[2 * TEXT + 32];
  Rec records[(sizeof text + 47) / 48] = {0};
  int line = line_of(code, at), length = snprintf(text, sizeof text, "%s:%d\n%s", of->path, line, of->function);
  uint32_t number = 0;
  pthread_mutex_lock(&lock);
  uint64_t there = of->at[at];
  if (there >> 32 == now) number = there;
  else if (fd >= 0 && numbers + 1 < MOST && recording == now) {
    int count = 0;
    for (int from = 0; from < length; from += 48, count++) {
      records[count] = (Rec){.type = LINE, .flags = length - from < 48 ? length - from : 48, .name = numbers + 1};
      memcpy(records[count].text, text + from, records[count].flags);
    }
    if (line && written(records, count)) number = ++numbers;
    of->at[at] = (uint64_t)now << 32 | number;
  }
  pthread_mutex_unlock(&lock);
  return number;
}
static inline uint32_t number_of(PyCodeObject *code, Code *of, int at, uint32_t now) {
  if (at < 0 || at >= of->units) return 0;
  uint64_t there = atomic_load_explicit(&of->at[at], memory_order_relaxed);
  return there >> 32 == now ? (uint32_t)there : told(code, of, at, now);
}
