"""What a process has cost: processor time and memory, as the kernel counts them."""

import os
from dataclasses import dataclass

from benchmarks.support import Failure

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """User and system time in seconds; resident memory at its peak and now, in bytes."""

    cpu_seconds: float
    peak_bytes: int
    resident_bytes: int


def _status_bytes(text, name):
    for line in text.splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise Failure(f"no {name} of a process: it has ended")


def usage_of(*processes):
    """The sums over processes that run."""
    cpu_seconds, peak_bytes, resident_bytes = 0, 0, 0
    for process in processes:
        try:
            with open(f"/proc/{process}/stat") as text:
                # The program's name, in parentheses, may have spaces.
                fields = text.read().rpartition(")")[2].split()
            with open(f"/proc/{process}/status") as text:
                status = text.read()
        except OSError as error:
            raise Failure(f"process {process} has ended") from error
        cpu_seconds += (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
        peak_bytes += _status_bytes(status, "VmHWM")
        resident_bytes += _status_bytes(status, "VmRSS")
    return Usage(cpu_seconds, peak_bytes, resident_bytes)


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as text:
        return [int(word) for word in text.read().split()]
