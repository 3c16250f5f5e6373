/* What only touches sizes and strides, without Python: PyTorch's own functions for the CPU, given to its dispatcher for our device
 * through its stable C interface (torch/csrc/stable/c/shim.h), which calls with values of 64 bits and leaves all of them to us.
 *
 * They throw C++ exceptions where a view cannot be: these pass through here, so what is held is freed by `cleanup`, and this file
 * is compiled with -fexceptions.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t Value; /* a number, or the address of a tensor, of a list, or of the value of an optional; 0 of none */
typedef struct { const int64_t *at; size_t count; } Ints; /* c10::ArrayRef<int64_t> */
typedef struct { int64_t value; char there; } Optional;   /* std::optional<int64_t> */
/* at::Tensor is one address. C++ has a function write it where the caller says, C does so with structs of more than two words. */
typedef struct { void *implementation, *unused[3]; } Tensor;

static struct {
  int (*list_size)(Value, size_t *), (*list_item)(Value, size_t, Value *), (*drop_list)(Value), (*new_tensor)(Value *), (*drop_tensor)(Value);
  void (*delete)(void *);
  int (*new_library)(const char *, const char *, const char *, uint32_t, void **);
  int (*implement)(void *, const char *, void (*)(Value *, uint64_t, uint64_t), uint64_t);
  uint64_t (*version)(void);
  Tensor (*as_strided)(const void *, Ints, Ints, Optional), (*view)(const void *, Ints), (*reshape_alias)(const void *, Ints, Ints);
} torch;

static void drop_tensor(Value *tensor) {
  torch.drop_tensor(*tensor);
}
#define OURS __attribute__((cleanup(drop_tensor)))

static size_t count_of(Value list) {
  size_t count = 0;
  torch.list_size(list, &count);
  return count;
}

static Ints take_list(Value list, int64_t *room, size_t count) {
  for (size_t i = 0; i < count; i++) torch.list_item(list, i, (Value *)&room[i]);
  torch.drop_list(list);
  return (Ints){room, count};
}

static Optional take_optional(Value optional) {
  Optional taken = {0, optional != 0};
  if (!optional) return taken;
  taken.value = *(int64_t *)optional;
  torch.delete((void *)optional);
  return taken;
}

static Value owned(Tensor tensor) {
  Value made = 0;
  torch.new_tensor(&made); /* of nothing, which nobody counts */
  memcpy((void *)made, &tensor.implementation, sizeof(void *));
  return made;
}

static void as_strided(Value *stack, uint64_t arguments, uint64_t results) {
  OURS Value self = stack[0];
  size_t rank = count_of(stack[1]), steps = count_of(stack[2]);
  int64_t sizes[rank + 1], strides[steps + 1];
  Ints size = take_list(stack[1], sizes, rank), stride = take_list(stack[2], strides, steps);
  stack[0] = owned(torch.as_strided((void *)self, size, stride, take_optional(stack[3])));
}

static void view(Value *stack, uint64_t arguments, uint64_t results) {
  OURS Value self = stack[0];
  size_t rank = count_of(stack[1]);
  int64_t sizes[rank + 1];
  stack[0] = owned(torch.view((void *)self, take_list(stack[1], sizes, rank)));
}

static void reshape_alias(Value *stack, uint64_t arguments, uint64_t results) {
  OURS Value self = stack[0];
  size_t rank = count_of(stack[1]), steps = count_of(stack[2]);
  int64_t sizes[rank + 1], strides[steps + 1];
  Ints size = take_list(stack[1], sizes, rank), stride = take_list(stack[2], strides, steps);
  stack[0] = owned(torch.reshape_alias((void *)self, size, stride));
}

/* Once: `functions` are PyTorch's, in the order in which they stand above. 0, or PyTorch has refused. */
int begin(void *const *functions) {
  void *library;
  memcpy(&torch, functions, sizeof torch);
  return torch.new_library("aten", "PrivateUse1", __FILE__, __LINE__, &library) ||
         torch.implement(library, "as_strided", as_strided, torch.version()) || torch.implement(library, "view", view, torch.version()) ||
         torch.implement(library, "_reshape_alias", reshape_alias, torch.version());
}
