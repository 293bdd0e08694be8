/* A tool that prints the arguments of MPI_Pcontrol(7): each time a text, a number and an integer. It passes on
   every call. */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>

int MPI_Pcontrol(const int level, ...) {
    if (level == 7) {
        va_list all;
        va_start(all, level);
        for (int i = 0; i < 4; i++) {
            const char *text = va_arg(all, const char *);
            double number = va_arg(all, double);
            printf("%s %g %ld\n", text, number, va_arg(all, long));
        }
        va_end(all);
    }
    return PMPI_Pcontrol(level);
}
