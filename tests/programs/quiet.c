/* Two marks with work between them; a trace shows what else happens between the marks. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (write(-1, "BEGIN", 5) == 0) return 1; /* fails, and is visible in a trace */
    volatile double sum = 0;
    for (int i = 1; i < 3000000; i++) sum += 1.0 / i;
    if (write(-1, "END", 3) == 0) return 1;
    MPI_Finalize();
    return 0;
}
