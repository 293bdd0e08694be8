/* Leaves messages and receives open until its end; argv[1] selects them. "receive": a receive from any source with
   any tag, never completed. "attribute": the same receive, cancelled at the start of MPI_Finalize, which is legal
   (MPI 4.1, 11.2.4). "short", "long": messages with tag 1 that no rank receives. */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

static char buffer[4096];
static MPI_Request request;

static int cancel(MPI_Comm comm, int key, void *value, void *extra) {
    MPI_Cancel(&request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, size, key, large = 100000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int to = (rank + 1) % size;
    if (!strcmp(argv[1], "receive") || !strcmp(argv[1], "attribute"))
        MPI_Irecv(buffer, sizeof buffer, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    if (!strcmp(argv[1], "attribute")) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, cancel, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    }
    if (!strcmp(argv[1], "short")) MPI_Send(&large, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    if (!strcmp(argv[1], "long")) MPI_Send(buffer, 3000, MPI_BYTE, to, 1, MPI_COMM_WORLD);
    usleep(20000);
    MPI_Finalize();
    return 0;
}
