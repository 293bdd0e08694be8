"""Runs a command as the leader of a session whose terminal is this program: terminal.py ACTIONS FILE COMMAND...

It waits until FILE holds "ready" or, if $SHOWN is set, until the terminal shows $SHOWN. Then it executes each letter of
ACTIONS: w changes the size of the window, c and q type ^C and ^\\, h hangs up. The command writes to FILE. At its end,
this program prints all that the command wrote to the terminal."""
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import time

actions, file, command = sys.argv[1], sys.argv[2], sys.argv[3:]
process, terminal = pty.fork()
if process == 0:
    output = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.execv(command[0], command)
# A test that gives up sends SIGTERM; the command runs in a session of its own.
signal.signal(signal.SIGTERM, lambda *_: os.killpg(process, signal.SIGKILL))
os.set_blocking(terminal, False)
text = b""


def look():
    """Reads the terminal's output, because a command waits if the terminal is full."""
    global text
    try:
        text += os.read(terminal, 1 << 16)
    except OSError:  # nothing to read, or the terminal is closed
        pass


def is_ready():
    look()
    if "SHOWN" in os.environ:
        return os.environ["SHOWN"].encode() in text
    return os.path.exists(file) and "ready" in open(file).read()


while not is_ready():
    if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        sys.exit("it ended before it was ready: " + text.decode())
    time.sleep(0.01)
for action in actions:
    if action == "w":
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
    elif action == "h":
        os.close(terminal)
    else:
        os.write(terminal, {"c": b"\x03", "q": b"\x1c"}[action])
    time.sleep(0.1)
status = None
while status is None:
    look()
    ended, code = os.waitpid(process, os.WNOHANG)
    status = code if ended else time.sleep(0.01)
look()
sys.stdout.buffer.write(text)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
