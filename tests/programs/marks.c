/* A program without MPI whose marks lead nowhere. */
#include "../../launcher/agent/include/pmmpi.h"
#include <stdio.h>

int main(void) {
    pmmpi_begin("nothing");
    pmmpi_end("nothing");
    puts("done");
    return 0;
}
