/* As much of an MPI library as a program of one rank needs to say that it is one. Compiled for musl. */
int MPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Init(int *argc, char ***argv) { return 0; }
int MPI_Finalize(void) { return 0; }
int PMPI_Finalize(void) { return 0; }
