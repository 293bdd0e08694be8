/* A program without MPI whose region calls have no effect. */
#include "../../launcher/agent/include/pmmpi.h"
#include <stdio.h>

int main(void) {
    pmmpi_begin("nothing");
    pmmpi_end("nothing");
    puts("done");
    return 0;
}
