// What leaves MPI's functions by another way than a return: exceptions, which a tool's own functions throw (see
// leaves_tool.cc), longjmp, and a cancelled thread.
#include <mpi.h>
#include <pthread.h>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

// A line in one write: ranks share a pipe.
static void say(const char *what) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s\n", what);
    if (write(1, line, length) != length) abort();
}

static void *finalize(void *) {
    MPI_Finalize();
    return nullptr;
}

int main(int argc, char **argv) {
    int provided, rank;
    try {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    } catch (int) {
        say("caught of MPI_Init_thread");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        MPI_Abort(MPI_COMM_WORLD, 3);
    } catch (int) {
        say("caught of MPI_Abort");
    }
    try {
        MPI_Pcontrol(9, 1.5);
    } catch (int) {
        say("caught of MPI_Pcontrol");
    }
    static jmp_buf back;
    if (setjmp(back) == 0) {
        MPI_Pcontrol(10, &back);
    } else {
        say("jumped out of MPI_Pcontrol");
    }
    pthread_t thread;
    void *result;
    pthread_create(&thread, nullptr, finalize, nullptr);
    pthread_join(thread, &result);
    say(result == PTHREAD_CANCELED ? "cancelled in MPI_Finalize" : "finalised");
    return 0;
}
