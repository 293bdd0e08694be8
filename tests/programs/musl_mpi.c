/* The part of an MPI library that a program of one rank needs to call itself an MPI program. Compiled for musl. */
int MPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Init(int *argc, char ***argv) { return 0; }
int MPI_Finalize(void) { return 0; }
int PMPI_Finalize(void) { return 0; }
