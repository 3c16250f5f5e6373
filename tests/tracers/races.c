/* The hook and the fake vendor in one program, for ThreadSanitizer: threads enqueue, read, look and wait while recordings begin
 * and end. The record file's path is the argument; returns the events that nobody gave back. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
typedef void *P;
typedef struct { const char *name; int64_t slot; P hook; } Hook;
const Hook *hook_list(void);
int number_of_hooks(void), add_table(P at, P *vendor), start(int file, uint64_t offset, int cycles);
void settle(uint64_t patience), counts(uint64_t *out);
uint64_t stop(uint64_t patience);
P *setup(int icd2);
double enqueue(int n), blocking_read(int n);
extern int live_events;

static atomic_int over;
static void nap(long ns) { nanosleep(&(struct timespec){0, ns}, 0); }
static void *work(void *nothing) {
  for (; !over; nap(1000)) enqueue(100), blocking_read(3);
  return nothing;
}
static void *look(void *nothing) {
  uint64_t found[7];
  for (; !over; nap(300000)) counts(found), settle(1000000);
  return nothing;
}
int main(int n, char **arguments) {
  P *table = setup(0), vendor[149];
  memcpy(vendor, table, sizeof vendor);
  add_table(table, vendor);
  for (int i = 0; i < number_of_hooks(); i++)
    if (vendor[hook_list()[i].slot]) table[hook_list()[i].slot] = hook_list()[i].hook;
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, i ? work : look, 0);
  for (int k = 0; k < 20; k++) {
    int file = open(arguments[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (n != 2 || start(file, 4096, 1)) return 1;
    add_table(table, vendor);
    nap(4000000);
    stop(1000000000);
    close(file);
  }
  over = 1;
  for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
  return live_events;
}
