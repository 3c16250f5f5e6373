/* Which line of Python runs on this thread, for whoever notes what it asks of a device: see library.py.
 *
 * Asked within calls of the driver, with or without the GIL, it takes no lock but for a line that is met first. One build for each
 * minor version of Python: cc -O2 -shared -fPIC -pthread -I<its headers>.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "frames.h"
#include "codes.h"
#include "calls_of.h"
#include "autograd.h"

enum { BITS = 20 };
static int forwards(PyCodeObject *code) { /* a decorator's: whatever it is given, for another function */
  const int any = CO_VARARGS | CO_VARKEYWORDS;
  return (code->co_flags & any) == any;
}
static uint64_t way_of(PyCodeObject *code, int at) { return code ? 1 + (code->co_firstlineno * 31u + at) * 2654435761u % 15 : 0; }
/* The numbers of three places: the innermost line outside of torch, of the user's own that led there where that is a library's,
 * and of the line whose gradient is computed; 20 bits each, 0 for none. And in the four bits above them by which call in torch's
 * own Python, decorators aside, the first of these lines came here, as a number that others seldom have; 0 where it came by none. */
static uint64_t at_this_line(void) {
  uint32_t now = atomic_load_explicit(&recording, memory_order_relaxed);
  uint64_t place = 0, caller = 0, forward = 0, called = 0;
  PyCodeObject *within = NULL;
  int at = 0;
  if (!now) return 0;
  for (Frame *frame = innermost(); frame; frame = frame->previous) {
    PyCodeObject *code = code_of(frame);
    Code *of = code ? known_of(code) : &carrier;
    if (!of) return 0; /* this may be the line, and no other is */
    if (code && of->kind == CARRIER && !place && !forwards(code)) within = code, at = instruction_of(frame);
    if (of->kind == CARRIER || (place && of->kind != USER)) continue;
    uint32_t number = number_of(code, of, instruction_of(frame), now);
    if (!number) return place;
    if (place) caller = number; else place = number;
    if (of->kind == USER) break;
  }
  if (in_backward(&forward, &called)) {
    forward &= MOST - 1;
    if (!place) place = called & (MOST - 1), caller = called >> BITS & (MOST - 1);
  }
  return place | caller << BITS | forward << 2 * BITS | way_of(within, at) << 3 * BITS;
}
void *asked_at(void) { return (void *)at_this_line; }
uint64_t here(void) { return at_this_line(); }

static void in_child(void) { /* the file is the parent's */
  recording = 0;
  fd = -1;
  npasses = 0;
  lock = passing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
/* From now on numbers are given anew, and told of in this file; `between` are the folders of carriers, as codes.h says. */
void start(int file, const char *between) {
  static int once;
  pthread_mutex_lock(&lock);
  if (!once++) {
    destroyed = PyCode_Type.tp_dealloc;
    PyCode_Type.tp_dealloc = forget; /* stays: what is known of codes is kept from one recording to the next */
    carriers = strdup(between);
    pthread_atfork(0, 0, in_child);
  }
  fd = file;
  numbers = 0;
  memset(nodes, 0xFF, sizeof nodes); /* no node has this key: lines have other numbers now */
  recording = ++recordings;
  pthread_mutex_unlock(&lock);
}
void stop(void) {
  pthread_mutex_lock(&lock);
  recording = 0;
  fd = -1;
  pthread_mutex_unlock(&lock);
}
