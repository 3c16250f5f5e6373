/* Which line's gradient a backward pass computes: a part of lines.c.
 *
 * Each node of autograd's graph has a number, which the thread that makes it counts: what counts is replaced in the tables through
 * which torch's libraries call it, and the line that runs is noted by the number. A launch asks which node its thread works on.
 */
#define NODES (1u << 16) /* whose lines are remembered: more than a step has */
static struct { _Atomic uint64_t of, at; } nodes[NODES];
typedef struct { char *node, *control, *none[2]; } Owned; /* a smart pointer, given back as C++ does: where the caller says */
static Owned (*_Atomic current_node)(void);
static uint64_t (*thread_number)(void), (*_Atomic counter)(void);
/* Bytes into a node (torch/csrc/autograd/function.h): its number, its thread's. Up to 2.12 it is held by std::shared_ptr, whose
 * count of users lies behind a second pointer, then by c10::intrusive_ptr, whose count is in the node. */
enum { USES = 8 };
static int intrusive, sequence_at, thread_at;
static uint64_t word(const char *node, int at) { return *(const uint64_t *)(node + at); }

static uint64_t this_thread(void) {
  static _Thread_local uint64_t number;
  return number ? number : (number = thread_number());
}
static uint64_t key(uint64_t thread, uint64_t sequence) { return thread << 44 | (sequence & ((1ull << 44) - 1)); }
static unsigned slot(uint64_t of) { return (of ^ of >> 44 << 9) % NODES; }

static uint64_t at_this_line(void);
static uint64_t counted(void) { /* instead of at::sequence_number::get_and_increment */
  uint64_t sequence = counter();
  if (recording) {
    uint64_t of = key(this_thread(), sequence), at = at_this_line();
    atomic_store_explicit(&nodes[slot(of)].of, ~0ull, memory_order_relaxed);
    atomic_store_explicit(&nodes[slot(of)].at, at, memory_order_release);
    atomic_store_explicit(&nodes[slot(of)].of, of, memory_order_release);
  }
  return sequence;
}

/* Who has called backward, and from which line. */
#define PASSES 64
typedef struct { uint64_t thread, at; } Pass;
static Pass passes[PASSES];
static _Atomic int npasses;
static pthread_mutex_t passing = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pass_of(uint64_t thread) {
  pthread_mutex_lock(&passing);
  uint64_t at = npasses ? passes[npasses - 1].at : 0;
  for (int i = npasses - 1; i >= 0; i--) {
    if (passes[i].thread == thread) { at = passes[i].at; break; }
    if (passes[i].at != at) at = 0; /* of several, the one whose thread made the node */
  }
  pthread_mutex_unlock(&passing);
  return at;
}

/* The line of the node that this thread works on, and of whoever called backward; whether it works on one. */
static int in_backward(uint64_t *forward, uint64_t *called) {
  if (!npasses) return 0; /* torch's own function is far away: in a step nothing of it is in the processor's caches */
  Owned (*ask)(void) = current_node;
  if (!ask) return 0;
  Owned owned = ask();
  if (!owned.node) return 0;
  uint64_t sequence = word(owned.node, sequence_at), thread = word(owned.node, thread_at);
  char *uses = (intrusive ? owned.node : owned.control) + USES; /* the engine's task and thread hold it, too: it is not the last */
  if (intrusive) __atomic_fetch_sub((uint64_t *)uses, 1, __ATOMIC_ACQ_REL);
  else __atomic_fetch_sub((int *)uses, 1, __ATOMIC_ACQ_REL);
  uint64_t of = key(thread, sequence), found = atomic_load_explicit(&nodes[slot(of)].of, memory_order_acquire);
  uint64_t at = atomic_load_explicit(&nodes[slot(of)].at, memory_order_acquire);
  int kept = found == of && atomic_load_explicit(&nodes[slot(of)].of, memory_order_relaxed) == of;
  *forward = kept ? at : 0;
  *called = pass_of(thread);
  return 1;
}

/* ---- what Python calls ---- */
static const char COUNTS[] = "_ZN2at15sequence_number17get_and_incrementEv";
/* Whether a node of Python's, an object of this size that was counted as `sequence` on this thread, is laid out as we think. */
int fits(const char *object, int size, uint64_t sequence, void *number) {
  const char *const *held = (const char *const *)(object + sizeof(PyObject));
  thread_number = (uint64_t(*)(void))number;
  intrusive = size == sizeof(PyObject) + sizeof(void *);
  sequence_at = intrusive ? 16 : 24;
  thread_at = sequence_at + 24;
  if (!intrusive && size != sizeof(PyObject) + 2 * sizeof(void *)) return 0;
  if (!held[0] || word(held[0], sequence_at) != sequence || word(held[0], thread_at) != this_thread()) return 0;
  if (!intrusive && !held[1]) return 0;
  int uses = *(const int *)((intrusive ? held[0] : held[1]) + USES);
  return uses > 0 && uses < 8;
}
/* torch's own functions: of the thread's node, and what counts. How many libraries count through us from now on. */
int know_torch(void *current, void *counts) {
  counter = (uint64_t(*)(void))counts;
  int libraries = call_instead(COUNTS, (void *)counted);
  current_node = libraries ? (Owned(*)(void))current : NULL;
  return libraries;
}
void leave_torch(void) {
  current_node = NULL;
  if (counter) call_instead(COUNTS, (void *)counter);
}
/* A pass begins on this thread; whether `pass_ends` is to be called when it has ended. */
int pass_begins(void) {
  uint64_t at = at_this_line(), thread = thread_number ? this_thread() : 0;
  pthread_mutex_lock(&passing);
  int noted = npasses < PASSES;
  if (noted) passes[npasses] = (Pass){thread, at}, npasses++;
  pthread_mutex_unlock(&passing);
  return noted;
}
void pass_ends(void) {
  uint64_t thread = thread_number ? this_thread() : 0;
  pthread_mutex_lock(&passing);
  for (int i = npasses - 1; i >= 0; i--) {
    if (passes[i].thread != thread) continue;
    memmove(&passes[i], &passes[i + 1], (--npasses - i) * sizeof *passes);
    break;
  }
  pthread_mutex_unlock(&passing);
}
