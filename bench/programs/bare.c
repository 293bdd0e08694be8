/* The least that a supervising parent can do: fork, exec, wait. What pmmpi's own cost is compared to. */
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    pid_t child = fork();
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return argc > 1 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
