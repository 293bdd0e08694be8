// C++: sleeps 20 ms and says rank and size.
#include <mpi.h>
#include <chrono>
#include <iostream>
#include <thread>

struct World {
    World(int &argc, char **&argv) { MPI_Init(&argc, &argv); }
    ~World() { MPI_Finalize(); }
};

int main(int argc, char **argv) {
    World world(argc, argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::cout << "rank " << rank << " of " << size << std::endl;
}
