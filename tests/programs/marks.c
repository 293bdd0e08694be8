/* A program without MPI whose calls of regions and probes have no effect. */
#include "../../launcher/agent/include/pmmpi.h"
#include <stdio.h>

int main(void) {
    pmmpi_begin("nothing");
    pmmpi_end("nothing");
    pmmpi_probe_begin("nothing");
    pmmpi_probe_end("nothing");
    puts("done");
    return 0;
}
