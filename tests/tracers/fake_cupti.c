/* A CUPTI without a driver: `launch` and its like make the records that a call of the program's would. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  int ends; const char *name; const void *params; void *result; const char *kernel; void *context; uint32_t context_id;
  uint64_t *own; uint32_t correlation;
} Call;
typedef struct {
  uint32_t kind; uint8_t cache, banks; uint16_t registers; uint32_t partitions[2]; uint64_t start, end, completed;
  uint32_t device, context, stream; int32_t grid[3], block[3], fixed_memory, dynamic_memory; uint32_t local[2], correlation;
  int64_t id; const char *name; void *reserved; uint64_t queued, submitted, more[10];
} Kernel;
typedef struct {
  uint32_t kind; uint8_t how, from, to, flags; uint64_t bytes, start, end; uint32_t device, context, stream, correlation, more[8];
} Copy;
typedef struct {
  uint32_t kind, how; uint64_t start, end; uint32_t correlation, context, stream, event; uint64_t more; uint32_t result, pad;
} Sync;
typedef struct { uint32_t kind, correlation, context, stream, event, pad, device, pad2; uint64_t more[3]; } Event;

static void (*requested)(uint8_t **, size_t *, size_t *);
static void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);
static uint8_t *buffer;
static size_t room, used;
static uint32_t correlation, enabled[64], heard[1024];

static void give(void) {
  uint8_t *full = buffer;
  buffer = NULL;
  if (full) completed(NULL, 0, full, room, used);
}
static void put(const void *record, size_t size) {
  if (!enabled[*(const uint32_t *)record]) return;
  if (buffer && used + size > room) give();
  if (!buffer) { size_t most; requested(&buffer, &room, &most); used = 0; }
  memcpy(buffer + used, record, size);
  used += size;
}
static int cycles, finalized;
static void (*subscriber)(void *, int, uint32_t, const Call *);
static uint64_t units(uint64_t ns) { return cycles ? ns * 5 / 2 : ns; }
static uint64_t now(void) {
  struct timespec t;
  clock_gettime(cycles ? CLOCK_MONOTONIC : CLOCK_REALTIME, &t);
  return units(t.tv_sec * 1000000000ull + t.tv_nsec);
}

static size_t size_of(uint32_t kind) {
  switch (kind) {
    case 10: return sizeof(Kernel);
    case 1: return sizeof(Copy);
    case 38: return sizeof(Sync);
    default: return sizeof(Event);
  }
}

int cuptiActivityRegisterCallbacks(void *a, void *b) { requested = a; completed = b; return 0; }
int cuptiActivityEnable(uint32_t kind) { enabled[kind] = 1; return 0; }
int cuptiActivityDisable(uint32_t kind) { enabled[kind] = 0; return 0; }
int cuptiActivityFlushAll(uint32_t how) { (void)how; give(); return 0; }
int cuptiGetTimestamp(uint64_t *at) { *at = now(); return 0; }
int cuptiGetResultString(int code, const char **text) { (void)code; *text = "refused"; return 0; }
static const char *driver[] = {"cuCtxGetDevice", "cuLaunchKernel_ptsz", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuEventRecord",
  "cuStreamWaitEvent", "cuCtxSynchronize"};
int cuptiGetCallbackName(int domain, uint32_t call, const char **name) {
  if (domain != 1 || call > sizeof driver / sizeof *driver) return 1;
  *name = driver[call - 1];
  return 0;
}
int cuptiSubscribe(void **handle, void *function, void *data) { (void)data; *handle = heard; subscriber = function; return 0; }
int cuptiUnsubscribe(void *handle) { (void)handle; return 0; }
int cuptiEnableCallback(uint32_t on, void *handle, int domain, uint32_t call) {
  (void)handle;
  if (domain == 1) heard[call] = on;
  return 0;
}
int cuptiFinalize(void) { finalized++; memset(heard, 0, sizeof heard); return 0; }
int was_finalized(void) { return finalized; }
void count_cycles(int so) { cycles = so; finalized = 0; }
int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, void **record) {
  uint8_t *at = *record ? (uint8_t *)*record + size_of(*(uint32_t *)*record) : from;
  if (at >= from + valid) return 1;
  *record = at;
  return 0;
}

/* A call that takes so many ns; its number joins it with what it launches. */
uint32_t call(uint32_t number, uint64_t ns) {
  uint64_t own = 0;
  Call told = {.own = &own, .correlation = ++correlation, .name = driver[number - 1]};
  if (heard[number]) subscriber(NULL, 1, number, &told);
  struct timespec long_ago, at;
  for (clock_gettime(CLOCK_MONOTONIC, &long_ago);;) {
    clock_gettime(CLOCK_MONOTONIC, &at);
    if ((at.tv_sec - long_ago.tv_sec) * 1000000000ull + at.tv_nsec - long_ago.tv_nsec >= ns) break;
  }
  told.ends = 1;
  if (heard[number]) subscriber(NULL, 1, number, &told);
  return told.correlation;
}
void synchronize(void) { call(7, 0); }
void kernel(uint32_t of, uint32_t stream, uint64_t ns, const char *name) {
  uint64_t at = now();
  Kernel record = {.kind = 10, .registers = 32, .start = at, .end = at + units(ns), .context = 1, .stream = stream, .grid = {70000, 2, 1},
    .block = {256, 1, 1}, .correlation = of, .name = name};
  put(&record, sizeof record);
}
void copy(uint32_t of, uint32_t stream, uint64_t ns, uint64_t bytes) {
  uint64_t at = now();
  Copy record = {.kind = 1, .how = 2, .from = 3, .to = 1, .bytes = bytes, .start = at, .end = at + units(ns), .context = 1, .stream = stream,
    .correlation = of};
  put(&record, sizeof record);
}
void event(uint32_t of, uint32_t stream, uint32_t number) {
  Event record = {.kind = 36, .correlation = of, .context = 1, .stream = stream, .event = number};
  put(&record, sizeof record);
}
void waits(uint32_t of, uint32_t stream, uint32_t how, uint32_t number) {
  uint64_t at = now();
  Sync record = {.kind = 38, .how = how, .start = at, .end = at, .correlation = of, .context = 1, .stream = stream, .event = number};
  put(&record, sizeof record);
}
