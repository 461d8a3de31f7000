"""The cost of a process: processor time and memory, as the kernel counts them."""

import os
from dataclasses import dataclass

from programs import Failure, memory_of

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """User and system time in seconds; resident memory at its peak and now, in bytes."""

    cpu_seconds: float
    peak_bytes: int
    resident_bytes: int


def usage_of(*processes):
    """The sums over processes that run."""
    cpu_seconds, peak_bytes, resident_bytes = 0, 0, 0
    for process in processes:
        try:
            with open(f"/proc/{process}/stat") as text:
                # The program's name, in parentheses, may have spaces.
                fields = text.read().rpartition(")")[2].split()
        except OSError as error:
            raise Failure(f"process {process} has ended") from error
        cpu_seconds += (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
        peak_bytes += memory_of(process, "VmHWM")
        resident_bytes += memory_of(process, "VmRSS")
    return Usage(cpu_seconds, peak_bytes, resident_bytes)


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as text:
        return [int(word) for word in text.read().split()]
