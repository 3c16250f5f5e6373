/* What CUPTI, the driver's profiling interface, tells of CUDA's calls and work, as records of 64 bytes in a file (record_file.py).
 *
 * No Python, no headers of CUDA: cc -O2 -shared -fPIC -pthread. library.py finds CUPTI in the process and gives us the two of its
 * functions that are called here. Of the device's work CUPTI fills buffers while the program runs and gives them back on a thread
 * of its own; calls of the driver it tells us where they begin and end. It could put these into its buffers, too, but then every
 * call of the driver takes a microsecond more, of which torch makes ten for each kernel, and the dear ones are few.
 *
 * The layouts of its records only grow at their end; what is read here stands since CUDA 11 (cupti_activity.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COPY = 1, FILL, KERNEL = 10, PEER_COPY = 22, EVENT = 36, SYNC = 38 }; /* CUPTI_ACTIVITY_KIND_... */
enum { CALL = 1, NAME = 4, FIRST = 32 }; /* types of records: record_file.py's, and ours: FIRST + the kind */

typedef struct {
  uint8_t type, fn, flags, pad;
  uint32_t tid, queue, name;
  uint64_t corr, size, t0, t1, a, b;
} Rec;
_Static_assert(sizeof(Rec) == 64, "record_file.py reads 64 bytes");

typedef struct { /* CUpti_CallbackData */
  int ends; const char *name; const void *params; void *result; const char *kernel; void *context; uint32_t context_id;
  uint64_t *own; uint32_t correlation;
} Call;
typedef struct {
  uint32_t kind; uint8_t cache, banks; uint16_t registers; uint32_t partitions[2]; uint64_t start, end, completed;
  uint32_t device, context, stream; int32_t grid[3], block[3], fixed_memory, dynamic_memory; uint32_t local[2], correlation;
  int64_t id; const char *name;
} Kernel;
typedef struct {
  uint32_t kind; uint8_t how, from, to, flags; uint64_t bytes, start, end; uint32_t device, context, stream, correlation;
} Copy;
typedef struct { /* between devices, and in one that is no one's copy */
  uint32_t kind; uint8_t how, from, to, flags; uint64_t bytes, start, end;
  uint32_t device, context, stream, from_device, from_context, to_device, to_context, correlation;
} PeerCopy;
typedef struct {
  uint32_t kind, value; uint64_t bytes, start, end; uint32_t device, context, stream, correlation; uint16_t flags, memory;
} Fill;
typedef struct { uint32_t kind, how; uint64_t start, end; uint32_t correlation, context, stream, event; } Sync;
typedef struct { uint32_t kind, correlation, context, stream, event; } Event;

#define BUFFER (1u << 20) /* bytes */
#define SPARE 64          /* buffers that wait to be filled again: fresh memory costs a page fault for each 4 KiB */
#define NAMES (1u << 14)  /* kernels */
#define CALLS (1u << 13)  /* that wait for the writer */
#define BATCH 512
#define EVERY 5000000     /* ns between two visits of the writer: a call is not to wait for the disk */
static int (*next)(uint8_t *, size_t, void **);
static int fd = -1;
static unsigned spares, names;
static uint8_t *spare[SPARE];
static struct { const char *text; uint32_t number; } known[NAMES];
static _Atomic uint64_t lost, lost_since; /* records without room on the disk, and when the first came: 0 while there are none */
/* On their way into the file. Locks are taken in this order: of the device, of the file, of the host; a call takes the last alone. */
static struct { pthread_mutex_t lock; unsigned filled; Rec batch[BATCH]; } device = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct { pthread_mutex_t lock; unsigned filled, turn; Rec batch[2][CALLS]; } host = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t file = PTHREAD_MUTEX_INITIALIZER, buffers = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

/* Where the disk is full the file ends, with a whole record; what comes from then on is counted. */
static void written(const Rec *records, unsigned count) {
  size_t size = count * sizeof(Rec), done = 0;
  while (fd >= 0 && !lost_since && done < size) {
    ssize_t wrote = write(fd, (const char *)records + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      off_t end = lseek(fd, -(off_t)(done % sizeof(Rec)), SEEK_CUR);
      lost_since = now();
      if (end < 0 || ftruncate(fd, end)) break; /* a part of a record is not read */
    }
    else done += wrote;
  }
  if (fd >= 0) lost += (size - done + sizeof(Rec) - 1) / sizeof(Rec);
}

/* Of the device's records: whoever comes holds their lock. */
static void flush(void) {
  pthread_mutex_lock(&file);
  written(device.batch, device.filled);
  pthread_mutex_unlock(&file);
  device.filled = 0;
}
static void put(Rec record) {
  if (device.filled == BATCH) flush();
  device.batch[device.filled++] = record;
}

/* The calls that were told of so far are in the file; those that come meanwhile go where the ones before them were. */
void settle(void) {
  pthread_mutex_lock(&file);
  pthread_mutex_lock(&host.lock);
  const Rec *records = host.batch[host.turn];
  unsigned count = host.filled;
  host.turn ^= 1;
  host.filled = 0;
  pthread_mutex_unlock(&host.lock);
  written(records, count);
  pthread_mutex_unlock(&file);
}
static void tell(Rec record) {
  pthread_mutex_lock(&host.lock);
  while (host.filled == CALLS) { /* the writer has not come by */
    pthread_mutex_unlock(&host.lock);
    settle();
    pthread_mutex_lock(&host.lock);
  }
  host.batch[host.turn][host.filled++] = record;
  pthread_mutex_unlock(&host.lock);
}

static pthread_t writer;
static struct { pthread_mutex_t lock; pthread_cond_t over; int on; } writes = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *writing(void *none) {
  pthread_mutex_lock(&writes.lock);
  while (writes.on) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += EVERY;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&writes.over, &writes.lock, &until); /* whoever ends it does not wait for the next visit */
    pthread_mutex_unlock(&writes.lock);
    settle();
    pthread_mutex_lock(&writes.lock);
  }
  pthread_mutex_unlock(&writes.lock);
  return none;
}

/* The number of a text that CUPTI keeps, which goes to the file before it is used. */
static uint32_t number_of(const char *text) {
  if (!text) return 0;
  unsigned at = ((uintptr_t)text >> 3) * 2654435761u % NAMES, tries = 0;
  for (; known[at].text && tries < NAMES; at = (at + 1) % NAMES, tries++)
    if (known[at].text == text) return known[at].number;
  if (tries == NAMES) return 0;
  known[at].text = text;
  known[at].number = ++names;
  size_t length = strlen(text);
  for (size_t from = 0; from < length; from += 48) {
    Rec record = {.type = NAME, .flags = length - from < 48 ? length - from : 48, .name = names};
    memcpy((char *)&record + 16, text + from, record.flags);
    put(record);
  }
  return names;
}

static void take(const void *at) {
  uint32_t kind = *(const uint32_t *)at;
  Rec record = {.type = FIRST + kind};
  if (kind == KERNEL) {
    const Kernel *kernel = at;
    record.flags = kernel->context; record.tid = kernel->device; record.queue = kernel->stream;
    record.name = number_of(kernel->name); record.corr = kernel->correlation;
    record.size = (uint64_t)kernel->fixed_memory + kernel->dynamic_memory;
    record.t0 = kernel->start; record.t1 = kernel->end;
    record.a = (uint64_t)(uint32_t)kernel->grid[0] << 32 | (uint64_t)(uint16_t)kernel->grid[1] << 16 | (uint16_t)kernel->grid[2];
    record.b = (uint64_t)(uint16_t)kernel->block[0] << 48 | (uint64_t)(uint16_t)kernel->block[1] << 32 |
      (uint32_t)(uint16_t)kernel->block[2] << 16 | kernel->registers;
  } else if (kind == COPY) {
    const Copy *copy = at;
    record.fn = copy->how; record.flags = copy->context; record.tid = copy->device; record.queue = copy->stream;
    record.name = copy->from << 8 | copy->to; record.corr = copy->correlation; record.size = copy->bytes;
    record.t0 = copy->start; record.t1 = copy->end;
  } else if (kind == PEER_COPY) {
    const PeerCopy *copy = at;
    record.fn = copy->how; record.flags = copy->context; record.tid = copy->device; record.queue = copy->stream;
    record.name = copy->from << 8 | copy->to; record.corr = copy->correlation; record.size = copy->bytes;
    record.t0 = copy->start; record.t1 = copy->end;
  } else if (kind == FILL) {
    const Fill *fill = at;
    record.flags = fill->context; record.tid = fill->device; record.queue = fill->stream; record.name = fill->memory;
    record.corr = fill->correlation; record.size = fill->bytes; record.t0 = fill->start; record.t1 = fill->end;
  } else if (kind == SYNC) {
    const Sync *sync = at;
    record.fn = sync->how; record.flags = sync->context; record.queue = sync->stream; record.name = sync->event;
    record.corr = sync->correlation; record.t0 = sync->start; record.t1 = sync->end;
  } else if (kind == EVENT) {
    const Event *event = at;
    record.flags = event->context; record.queue = event->stream; record.name = event->event; record.corr = event->correlation;
  } else {
    return;
  }
  put(record);
}

/* Called by CUPTI where it has no room left, in the middle of a call of the program's. */
static void requested(uint8_t **buffer, size_t *size, size_t *most) {
  pthread_mutex_lock(&buffers);
  *buffer = spares ? spare[--spares] : NULL;
  pthread_mutex_unlock(&buffers);
  if (!*buffer) *buffer = aligned_alloc(64, BUFFER);
  *size = *buffer ? BUFFER : 0;
  *most = 0;
}

/* Called by CUPTI with what it has filled. */
static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  pthread_mutex_lock(&device.lock);
  void *record = NULL;
  while (fd >= 0 && valid && !next(buffer, valid, &record)) take(record);
  flush();
  pthread_mutex_unlock(&device.lock);
  pthread_mutex_lock(&buffers);
  if (spares < SPARE) spare[spares++] = buffer;
  else free(buffer);
  pthread_mutex_unlock(&buffers);
}

/* A call that is listened to begins or ends on this thread. */
static int (*_Atomic finalize)(void);
static uint64_t (*_Atomic line)(void); /* which line of Python runs on this thread: lines/lines.c */
static _Atomic int linked;      /* a queue was told to wait for another */
static _Atomic uint64_t since;  /* this recording began, ns */
static const char WAITS[] = "cuStreamWaitEvent";
static void called(void *data, int domain, uint32_t number, const Call *call) {
  static _Thread_local uint32_t thread;
  (void)data;
  if (!call->ends) { *call->own = now(); return; }
  uint64_t start = *call->own, end = now();
  if (start < since || start > end) return; /* it had begun before we listened */
  if (!thread) thread = syscall(SYS_gettid);
  if (!linked && !strncmp(call->name, WAITS, sizeof WAITS - 1)) linked = 1;
  uint64_t (*ask)(void) = line;
  tell((Rec){.type = CALL, .tid = thread, .name = domain << 16 | number, .corr = call->correlation, .t0 = start, .t1 = end,
    .b = ask ? ask() : 0});
  /* CUPTI leaves the process where a call of the driver ends: nowhere else is it sure that nobody is within it. */
  int (*leave)(void) = finalize ? atomic_exchange(&finalize, NULL) : NULL;
  if (leave) leave();
}
void ask_line(void *function) { line = (uint64_t(*)(void))function; }
void *called_at(void) { return (void *)called; }
int queues_wait(void) { return linked; }
void leave_by(void *cupti_finalize) { finalize = (int (*)(void))cupti_finalize; }
int has_left(void) { return !atomic_exchange(&finalize, NULL); }

void *requested_at(void) { return (void *)requested; }
void *completed_at(void) { return (void *)completed; }

/* From now on what comes is written to this file; `following` is CUPTI's cuptiActivityGetNextRecord. */
void start(int into, void *following) {
  pthread_mutex_lock(&device.lock);
  pthread_mutex_lock(&file);
  pthread_mutex_lock(&host.lock);
  next = following;
  fd = into;
  names = host.filled = device.filled = 0;
  lost = lost_since = linked = 0;
  memset(known, 0, sizeof known);
  since = now();
  pthread_mutex_unlock(&host.lock);
  pthread_mutex_unlock(&file);
  pthread_mutex_unlock(&device.lock);
  sigset_t all, before; /* a signal is for a thread of the program's */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_condattr_t by;
  pthread_condattr_init(&by);
  pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
  pthread_cond_init(&writes.over, &by);
  writes.on = 1;
  if (pthread_create(&writer, NULL, writing, NULL)) writes.on = 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

uint64_t lost_from(void) { return lost_since; }
/* Nothing more is written. How many records found no room on the disk. */
uint64_t stop(void) {
  pthread_mutex_lock(&writes.lock);
  int was = writes.on;
  writes.on = 0;
  pthread_cond_signal(&writes.over);
  pthread_mutex_unlock(&writes.lock);
  if (was) pthread_join(writer, NULL);
  settle();
  pthread_mutex_lock(&device.lock);
  flush();
  pthread_mutex_lock(&file);
  fd = -1;
  pthread_mutex_unlock(&file);
  pthread_mutex_unlock(&device.lock);
  return lost;
}
