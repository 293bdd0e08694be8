/* Calls no MPI function itself: its library does. */
int work(int *argc, char ***argv);

int main(int argc, char **argv) { return work(&argc, &argv); }
