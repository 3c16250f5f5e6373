/* Replays of an event graph, as replay.py makes them: only sums and maxima, in the same order, so they are equal to the last bit.
 *
 * No Python. entries.py lays the graph out in columns, in_c.py hands them over; what is written to is the caller's, too.
 */
#include <stdint.h>

#define NEVER -1e18

/* Columns, in the order of `Columns` in entries.py. */
typedef struct {
  const double *host_gap, *latency;
  const int32_t *queue;
  const double *gap, *duration;
  const int32_t *source;
  const double *lag;
  const int32_t *collective, *number, *upto, *read;
  const double *left, *spare;
} Launches;

typedef struct {
  const double *advance;
  const int32_t *upto, *last;
  const double *lasting;
  const int64_t *first_move;
  const int32_t *queue;
  const double *alpha, *beta;
  const int32_t *number;
} Runs;

typedef struct {
  const double *host_gap, *returns, *freed;
  const int32_t *read, *mark;
} Holds;

typedef struct {
  Launches launch;
  const int64_t *after, *which;
  Runs run;
  Holds hold;
} Stream;

/* The work that each hold waits for, or each step's end: of number n from first[n] to first[n + 1]. */
typedef struct {
  const int64_t *first;
  const int32_t *work;
} Targets;

typedef struct {
  int64_t launches, others, queues, works, depth; /* depth 0: no queue is ever full */
} Sizes;

/* What changes as a replay goes on. `begun`: how many launches there were, and when the last of them began. */
typedef struct {
  double host, *queues, *done, *begun;
  int32_t *launched;
  int64_t count, full;
} State;

static double later(double one, double other) {
  return other > one ? other : one;
}

static double over(const State *s, int64_t queues) {
  double last = s->host;
  for (int64_t q = 0; q < queues; q++) last = later(last, s->queues[q]);
  return last;
}

/* The host goes on when the queue has room again. */
static void wait_for_room(State *s, int64_t depth, int32_t upto, double began) {
  s->count++;
  s->launched[s->count] = upto;
  s->begun[s->count] = later(s->begun[s->count - 1], began);
  while (s->launched[s->full + 1] <= upto - depth) s->full++;
  s->host = later(s->host, s->begun[s->full]);
}

static void launch(State *s, const Launches *of, int64_t n, const uint8_t *out, int64_t depth) {
  double lasting = of->duration[n], *queue = &s->queues[of->queue[n]];
  s->host += of->host_gap[n];
  if (of->read[n] >= 0 && out[of->read[n]]) {
    lasting = of->left[n];
    s->host -= of->spare[n];
  }
  if (lasting < 0) {
    lasting = 0;
  } else {
    double start = later(s->host + of->latency[n], *queue + of->gap[n]);
    if (of->source[n] >= 0) start = later(start, s->done[of->source[n]] + of->lag[n]);
    *queue = start + lasting;
  }
  if (of->number[n] >= 0) s->done[of->number[n]] = *queue;
  if (depth) wait_for_room(s, depth, of->upto[n], *queue - lasting);
}

static void run(State *s, const Runs *of, int64_t n, int64_t depth) {
  for (int64_t m = of->first_move[n]; m < of->first_move[n + 1]; m++) {
    double *queue = &s->queues[of->queue[m]];
    *queue = later(*queue + of->beta[m], s->host + of->alpha[m]);
    if (of->number[m] >= 0) s->done[of->number[m]] = *queue;
  }
  s->host += of->advance[n];
  if (depth) wait_for_room(s, depth, of->upto[n], s->queues[of->last[n]] - of->lasting[n]);
}

static void hold(State *s, const Holds *of, int64_t n, const uint8_t *out, const Targets *targets) {
  double early = of->returns[n] < 0 ? of->returns[n] : 0; /* the device's clock was ahead */
  s->host += of->host_gap[n];
  if (of->read[n] >= 0 && out[of->read[n]]) {
    s->host += of->freed[n];
    return;
  }
  for (int64_t t = targets->first[n]; t < targets->first[n + 1]; t++)
    s->host = later(s->host, s->done[targets->work[t]] + early);
  s->host += of->returns[n] - early;
}

/* So many replays: `out[s * sets + r]` says whether scenario s takes read r out. `end` is when all was over, `ends` when each
 * step was. The end of a step waits for the work `at_end`, besides, and for all that was enqueued where it is `drained`. */
void replays(const Stream *stream, const Sizes *sizes, const double *free, const Targets *targets, const Targets *at_end,
             int64_t drained, int64_t scenarios, int64_t sets, const uint8_t *out, double *queues, double *done, double *begun,
             int32_t *launched, double *end, double *ends) {
  for (int64_t s = 0; s < scenarios; s++, out += sets) {
    State state = {0, queues, done, begun, launched, 0, 0};
    int64_t at = 0;
    for (int64_t q = 0; q < sizes->queues; q++) queues[q] = free[q];
    for (int64_t j = 0; j < sizes->works; j++) done[j] = NEVER;
    begun[0] = NEVER;
    launched[0] = -1;
    for (int64_t n = 0; n <= sizes->others; n++) {
      int64_t upto = n < sizes->others ? stream->after[n] : sizes->launches;
      for (; at < upto; at++) launch(&state, &stream->launch, at, out, sizes->depth);
      if (n == sizes->others) break;
      if (stream->which[n] >= 0) {
        run(&state, &stream->run, stream->which[n], sizes->depth);
        continue;
      }
      int64_t wait = -1 - stream->which[n];
      hold(&state, &stream->hold, wait, out, targets);
      int32_t mark = stream->hold.mark[wait];
      if (mark < 0) continue;
      for (int64_t t = at_end->first[mark]; t < at_end->first[mark + 1]; t++)
        state.host = later(state.host, done[at_end->work[t]]);
      if (drained) state.host = over(&state, sizes->queues);
      *ends++ = over(&state, sizes->queues);
    }
    *end++ = over(&state, sizes->queues);
  }
}
