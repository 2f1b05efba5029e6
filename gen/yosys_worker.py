"""Runs Yosys commands: the child process of ``gen.yosys``. An error in Yosys ends the process that it runs in.

Reads a JSON list of jobs, each a list of commands, from standard input. Each job runs in a process forked before any
other command ran: names and numbers that Yosys gives in a job do not depend on the jobs before it. Writes a line to standard
output for each finished job. Exits with 1 at the first job that fails, its log on standard error.
"""

import json
import os
import sys
import tempfile


def main() -> int:
    from pyosys import libyosys as ys

    for number, commands in enumerate(json.load(sys.stdin)):
        with tempfile.TemporaryFile() as log:
            child = os.fork()
            if child == 0:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                design = ys.Design()
                for command in commands:
                    ys.run_pass(command, design)
                sys.stdout.flush()
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            if status:
                log.seek(0)
                text = log.read().decode(errors="replace")
                errors = [line for line in text.splitlines() if "ERROR" in line] or text.splitlines()[-5:]
                print(f"job {number}: " + "\n".join(errors), file=sys.stderr)
                return 1
        print(number, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
