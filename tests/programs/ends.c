/* Ends badly: rank argv[2] does so in the way of argv[1], while the others wait for it. First each rank writes
   argv[3]/pids.RANK: the ids of its process and of its launcher.
   "wait": no rank ends before argv[4] ms.
   "late": the rank comes to MPI_Finalize when argv[3]/go exists; the others come at once.
   "fill": the rank fills the disk. With "go on" as argv[4] and a text as argv[5], it first waits until the partial run
   is at least as long as this text. With "kill" as argv[4] it then kills itself.
   "trap": all ranks end early with exit status 0 when one rank receives SIGTERM. */
#include <glob.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t told;
static void on_signal(int signal) { told = signal; }

static void fill(const char *folder) {
    char name[4096], bytes[4096] = {1};
    snprintf(name, sizeof name, "%s/fill", folder);
    FILE *file = fopen(name, "w");
    setbuf(file, NULL);
    while (fwrite(bytes, sizeof bytes, 1, file) == 1) {}
    fclose(file);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(argv[1], "trap")) signal(SIGTERM, on_signal);
    char name[4096], last[4096];
    snprintf(name, sizeof name, "%s/.pids.%d", argv[3], rank);
    snprintf(last, sizeof last, "%s/pids.%d", argv[3], rank);
    FILE *file = fopen(name, "w");
    fprintf(file, "%d %d\n", (int)getpid(), (int)getppid());
    fclose(file);
    rename(name, last);
    const char *how = argv[1];
    if (!strcmp(how, "wait")) {
        for (int ms = atoi(argv[4]); ms > 0; ms -= 10) {
            MPI_Barrier(MPI_COMM_WORLD);
            usleep(10000);
        }
    } else if (!strcmp(how, "trap")) {
        for (int any = 0; !any; usleep(10000)) {
            int own = told;
            MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
        if (rank == 0) fclose(fopen(strcat(strcpy(name, argv[3]), "/checkpoint"), "w"));
    } else if (rank == atoi(argv[2])) {
        usleep(100000);
        if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
        if (!strcmp(how, "exit")) exit(5);
        if (!strcmp(how, "segv")) signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
        if (!strcmp(how, "fill")) {
            glob_t found;
            snprintf(name, sizeof name, "%s/runs/*.partial/*.node", argv[3]);
            struct stat kept = {0};
            while (argc > 5 && !strcmp(argv[4], "go on") && (size_t)kept.st_size < strlen(argv[5])) {
                usleep(1000);
                if (glob(name, 0, NULL, &found) == 0) stat(found.gl_pathv[0], &kept);
            }
            fill(argv[3]);
        }
        if (!strcmp(how, "kill") || (argc > 4 && !strcmp(argv[4], "kill"))) raise(SIGKILL);
        snprintf(name, sizeof name, "%s/go", argv[3]);
        while (!strcmp(how, "late") && access(name, F_OK)) usleep(1000);
    }
    if (strcmp(how, "late")) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
