"""P8: the processor time of P1, and the memory of all scenarios. Derived from results."""

from benchmarks import clients
from benchmarks.figures import MIB, OWN, Result, at_most, is_own

# The memory bound of readers does not apply to a list of a million names.
WITHOUT_MEMORY_BOUND = ("P10", "Downloads")

METHOD = """\
Processor time is that of P1. Resident memory is the largest peak of the daemon (VmHWM) over all
scenarios but P10, whose memory grows with the list, and Downloads, which have a bound of their own.
"""


def derive(results):
    """The results that follow from those of the scenarios."""
    targets = []
    if "P1" in results:
        comparison = results["P1"].comparisons[0]
        targets.append(at_most(
            "P1: processor time relative to curl -o",
            comparison.ratio("cpu_seconds", OWN, clients.CURL.name), 0.9))
    peaks = {
        f"{name}, {comparison.title}, {variant}": peak
        for name, result in results.items() if name not in WITHOUT_MEMORY_BOUND
        for comparison in result.comparisons if "peak_bytes" in comparison.metrics
        for variant in comparison.samples
        if is_own(variant) and (peak := comparison.value(variant, "peak_bytes")) is not None}
    if peaks:
        worst = max(peaks, key=peaks.get)
        targets.append(at_most(
            f"Peak resident memory, the largest of {len(peaks)} ({worst})",
            peaks[worst] / MIB, 64, "MiB"))
    return {"P8": Result("processor time and memory", METHOD, [], targets)} if targets else {}
