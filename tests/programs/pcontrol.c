/* Calls MPI_Pcontrol for another tool: on rank 0 alone, with arguments in general registers, in vector registers
   and on the stack. With an argument: region 2, three times, on all ranks. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && argc == 1) {
        MPI_Pcontrol(7, "a", 1.5, 2L, "b", 2.5, 3L, "c", 3.5, 4L, "d", 4.5, 5L);
    }
    for (int entry = 0; entry < 3 && argc > 1; entry++) {
        MPI_Pcontrol(2);
        MPI_Pcontrol(-2);
    }
    MPI_Finalize();
    return 0;
}
