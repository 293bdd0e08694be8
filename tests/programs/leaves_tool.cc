// A tool whose functions leave in each way that there is, and a thread that is cancelled in MPI_Finalize. With
// THROWS=init in the environment MPI_Init_thread does so too.
#include <mpi.h>
#include <pthread.h>
#include <csetjmp>
#include <cstdarg>
#include <cstdlib>

extern "C" {
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (getenv("THROWS")) throw 1;
    return code;
}

int MPI_Abort(MPI_Comm, int) { throw 2; }

int MPI_Pcontrol(const int level, ...) {
    if (level == 10) {
        va_list all;
        va_start(all, level);
        longjmp(*va_arg(all, jmp_buf *), 1);
    }
    throw 3;
}

int MPI_Finalize(void) {
    int code = PMPI_Finalize();
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return code;
}
}
