/* C, a library: an MPI with a name of its own, like those that vendors make from MPICH or Open MPI. */
#include <mpi.h>
#include <string.h>

int PMPI_Get_library_version(char *version, int *length) {
    strcpy(version, "Derived MPI 1.0");
    *length = (int)strlen(version);
    return MPI_SUCCESS;
}

int MPI_Get_library_version(char *version, int *length) {
    return PMPI_Get_library_version(version, length);
}
