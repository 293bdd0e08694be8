/* Opens the module argv[1] as Python does, and calls its `entry` with the remaining arguments. The libraries that
   the module needs are in no other object's search order. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*entry)(int, char **) = module ? (int (*)(int, char **))dlsym(module, "entry") : NULL;
    if (!entry) return fprintf(stderr, "%s\n", dlerror()), 1;
    return entry(argc - 1, argv + 1);
}
