/* The least that a parent process must do to supervise a program: fork, exec, wait. `make bench` compares the cost of
   pmmpi with it. */
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
