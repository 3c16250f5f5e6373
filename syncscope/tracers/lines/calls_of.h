/* Has torch's libraries call another function in the place of one, by the tables (PLT) through which they find each other's: a part
 * of lines.c. Those of other libraries are not looked at. */
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
enum { JUMP_SLOT = 7 };
#elif defined(__aarch64__)
enum { JUMP_SLOT = 1026 };
#else
enum { JUMP_SLOT = -1 }; /* none is found */
#endif
typedef struct { const char *name; void *function; int done; } Wanted;

static const void *address(const struct dl_phdr_info *library, ElfW(Addr) at) { /* some loaders leave them relative */
  return (const void *)(at < library->dlpi_addr ? at + library->dlpi_addr : at);
}
static void store(const struct dl_phdr_info *library, void *_Atomic *slot, void *function) {
  uintptr_t at = (uintptr_t)slot, page = sysconf(_SC_PAGESIZE), begin = at & -page;
  int closed = 0; /* once all addresses were known, the loader has made them read-only */
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &library->dlpi_phdr[i];
    uintptr_t from = library->dlpi_addr + part->p_vaddr;
    closed |= part->p_type == PT_GNU_RELRO && at >= from && at < from + part->p_memsz;
  }
  if (closed && mprotect((void *)begin, page, PROT_READ | PROT_WRITE)) return;
  atomic_store(slot, function);
  if (closed) mprotect((void *)begin, page, PROT_READ);
}
static int in_library(struct dl_phdr_info *library, size_t size, void *given) {
  (void)size;
  Wanted *wanted = given;
  const ElfW(Dyn) *entry = NULL;
  for (int i = 0; i < library->dlpi_phnum; i++)
    if (library->dlpi_phdr[i].p_type == PT_DYNAMIC) entry = (void *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
  const ElfW(Rela) *calls = NULL;
  const ElfW(Sym) *symbols = NULL;
  const char *texts = NULL;
  size_t bytes = 0;
  int rela = 0, torch = strstr(library->dlpi_name, "torch") != NULL;
  for (const ElfW(Dyn) *one = entry; one && one->d_tag != DT_NULL; one++) {
    if (one->d_tag == DT_JMPREL) calls = address(library, one->d_un.d_ptr);
    else if (one->d_tag == DT_PLTRELSZ) bytes = one->d_un.d_val;
    else if (one->d_tag == DT_PLTREL) rela = one->d_un.d_val == DT_RELA;
    else if (one->d_tag == DT_SYMTAB) symbols = address(library, one->d_un.d_ptr);
    else if (one->d_tag == DT_STRTAB) texts = address(library, one->d_un.d_ptr);
  }
  if (!calls || !symbols || !texts || !rela) return 0;
  for (const ElfW(Dyn) *one = entry; !torch && one->d_tag != DT_NULL; one++)
    torch = one->d_tag == DT_NEEDED && strstr(texts + one->d_un.d_val, "torch");
  for (size_t i = 0; torch && i < bytes / sizeof *calls; i++) {
    if (ELF64_R_TYPE(calls[i].r_info) != JUMP_SLOT) continue;
    if (strcmp(texts + symbols[ELF64_R_SYM(calls[i].r_info)].st_name, wanted->name)) continue;
    store(library, (void *_Atomic *)(library->dlpi_addr + calls[i].r_offset), wanted->function);
    wanted->done++;
  }
  return 0;
}
/* How many libraries call `function` from now on where they called the one of this name. */
static int call_instead(const char *name, void *function) {
  Wanted wanted = {name, function, 0};
  dl_iterate_phdr(in_library, &wanted);
  return wanted.done;
}
