/* Touches 256 MiB of memory: in transparent huge pages if the variable HUGE is set, else in small pages. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

int main(void) {
  size_t bytes = (size_t)256 << 20;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || madvise(memory, bytes, getenv("HUGE") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) return 1;
  for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
  return 0;
}
