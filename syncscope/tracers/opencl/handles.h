/* Of whom a handle of OpenCL speaks: the vendor's functions, and the numbers of devices, queues and kernels in the records:
 * a part of icd.c. */
/* ---- handles -> numbers; readers take no lock ---- */
typedef struct { _Atomic(P) key; _Atomic uint64_t value; } Entry;
typedef Entry Map[MAP];
static Map kernel_names, queue_numbers, device_numbers, operator_names;
#define DEAD ((P)1)
static inline uint32_t hash(P k) { return (uint32_t)(((uint64_t)k * 0x9E3779B97F4A7C15ull) >> 51); }
static inline uint64_t map_get(Entry *m, P k) {
  for (uint32_t i = hash(k), n = 0; n < 256; i = (i + 1) & (MAP - 1), n++) {
    P at = atomic_load_explicit(&m[i].key, memory_order_acquire);
    if (at == k) return atomic_load_explicit(&m[i].value, memory_order_relaxed);
    if (!at) break;
  }
  return 0;
}
static int map_put(Entry *m, P k, uint64_t v) { /* under leaf; whether there was room */
  Entry *free = 0;
  for (uint32_t i = hash(k), n = 0; n < 256; i = (i + 1) & (MAP - 1), n++) {
    P at = m[i].key;
    if (at == k) { m[i].value = v; return 1; }
    if (!free && (!at || at == DEAD)) free = &m[i];
    if (!at) break;
  }
  if (!free) { lost[3]++; return 0; }
  free->value = v;
  atomic_store_explicit(&free->key, k, memory_order_release);
  return 1;
}
static void map_del(Entry *m, P k) {
  for (uint32_t i = hash(k), n = 0; n < 256; i = (i + 1) & (MAP - 1), n++) {
    P at = m[i].key;
    if (at == k) { m[i].value = 0; m[i].key = DEAD; return; }
    if (!at) return;
  }
}
static void map_clear(Entry *m) { /* under leaf; a key without its value is not known */
  for (uint32_t i = 0; i < MAP; i++)
    if (m[i].key) m[i].value = 0, m[i].key = 0;
}

/* ---- vendors ---- */
#define ICD2_TAG 0x4F50454E434C3331ull /* cl_khr_icd 2.0: the loader dispatches through the object's second word */
static inline Table *table(P object) {
  P at = *(P *)object;
  if (*(uint64_t *)at == ICD2_TAG) at = ((P *)object)[1];
  int n = atomic_load_explicit(&ntables, memory_order_acquire);
  for (int i = 0; i < n; i++)
    if (tables[i].at == at) return &tables[i];
  return &tables[0];
}
#define V(t, slot, type) ((type)(t)->vendor[slot])
typedef I (*Info)(P, U, Z, P, Z *);
typedef I (*One)(P);

static uint32_t device_number(Table *t, P device) {
  uint64_t n = map_get(device_numbers, device);
  if (n) return n;
  char text[256] = "";
  uint64_t mem = 0, kind = 0, d = 0, h = 0;
  uint32_t units = 0;
  V(t, GetDeviceInfo, Info)(device, 0x102B, sizeof text, text, 0);
  V(t, GetDeviceInfo, Info)(device, 0x101F, 8, &mem, 0);
  V(t, GetDeviceInfo, Info)(device, 0x1002, 4, &units, 0);
  V(t, GetDeviceInfo, Info)(device, 0x1000, 8, &kind, 0);
  I (*timer)(P, P, P) = V(t, GetDeviceAndHostTimer, I(*)(P, P, P));
  int timed = timer && timer(device, &d, &h) == 0;
  P parent = 0;
  V(t, GetDeviceInfo, Info)(device, 0x1042, sizeof parent, &parent, 0);
  text[255] = 0;
  pthread_mutex_lock(&leaf);
  n = map_get(device_numbers, device);
  if (!n) {
    n = ++devices;
    Rec r = {.type = DEVICE, .queue = n, .size = mem, .flags = timed, .t0 = units, .t1 = kind, .a = (L)device,
             .b = (L)t->at};
    r.name = put_name(text, strlen(text));
    put(&r);
    map_put(device_numbers, device, n);
    if (timed && !parent && nclocks < CLOCKS) clocks[nclocks++] = device; /* a sub-device may be gone by the end */
  }
  pthread_mutex_unlock(&leaf);
  return n;
}
static void read_clock(Table *t, P device, uint32_t number) {
  uint64_t d = 0, h = 0, t0, t1;
  I (*timer)(P, P, P) = V(t, GetDeviceAndHostTimer, I(*)(P, P, P));
  if (!timer) return;
  t0 = now();
  if (timer(device, &d, &h)) return;
  t1 = now();
  Rec r = {.type = CLOCK, .queue = number, .t0 = t0, .t1 = t1, .a = d, .b = h};
  pthread_mutex_lock(&leaf);
  put(&r);
  pthread_mutex_unlock(&leaf);
}
/* number << 1 | profiled */
static uint64_t queue_number(Table *t, P queue, int forced) {
  uint64_t v = map_get(queue_numbers, queue);
  if (v) return v;
  L props = 0;
  P device = 0;
  V(t, GetCommandQueueInfo, Info)(queue, 0x1093, 8, &props, 0);
  V(t, GetCommandQueueInfo, Info)(queue, 0x1091, 8, &device, 0);
  uint32_t d = device_number(t, device);
  read_clock(t, device, d);
  int profiled = (props & 2) != 0;
  pthread_mutex_lock(&leaf);
  v = map_get(queue_numbers, queue);
  if (!v) {
    uint32_t n = ++queues;
    v = (uint64_t)n << 1 | profiled;
    Rec r = {.type = QUEUE, .queue = n, .name = d, .a = (L)queue, .b = (L)t->at,
             .flags = (profiled ? PROFILED : 0) | (forced ? FORCED : 0) | (props & 1 ? OUT_OF_ORDER : 0)};
    put(&r);
    map_put(queue_numbers, queue, v);
  }
  pthread_mutex_unlock(&leaf);
  return v;
}
static uint32_t kernel_name(Table *t, P kernel) {
  uint64_t id = map_get(kernel_names, kernel);
  if (id) return id;
  char text[512] = "";
  V(t, GetKernelInfo, Info)(kernel, 0x1190, sizeof text, text, 0);
  text[511] = 0;
  pthread_mutex_lock(&leaf);
  id = put_name(text, strlen(text));
  map_put(kernel_names, kernel, id);
  pthread_mutex_unlock(&leaf);
  return id;
}
