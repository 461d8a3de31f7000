"""The results of the pairs, as Markdown."""

import collections
import datetime

# The maximum number of violations that are reported per result.
MOST_WORDS = 4


def table(combinations, pairs, seeds, results, jobs, seconds):
    """A line for each pair, the sums, and every violation in words."""
    by_pair = collections.defaultdict(list)
    for result in results:
        by_pair[tuple(result["pair"])].append(result)
    lines = [f"| pair | seeds | s each | {combinations.what} | {combinations.told} | result |",
             "| --- | --- | --- | --- | --- | --- |"]
    lines += [line(pair, by_pair[tuple(pair)], len(seeds)) for pair in pairs]
    lines += ["", *sums(combinations, by_pair, results, jobs, seconds)]
    if combinations.impossible:
        lines += ["", "Pairs that cannot hold at once:", ""]
        lines += [f"- {' + '.join(sorted(pair))}: {reason}" for pair, reason in combinations.impossible.items()]
    for result in results:
        if result["violations"]:
            lines += ["", f"{' + '.join(result['pair'])}, seed {result['seed']}:"]
            lines += [f"- {kind}: {text}" for kind, text in result["violations"][:MOST_WORDS]]
    return "\n".join(lines) + "\n"


def line(pair, results, count):
    passed = sum(not result["violations"] for result in results)
    errors = sum((collections.Counter(result["errors"]) for result in results), collections.Counter())
    told = ", ".join(f"{code} {number}" for code, number in errors.most_common(4)) or "nothing"
    kinds = sorted({kind for result in results for kind, _ in result["violations"]})
    return (f"| {' + '.join(pair)} | {passed}/{count} | {mean(results, 'seconds'):.1f} | "
            f"{total(results, 'reads')} | {told} | "
            f"{'**' + ', '.join(kinds) + '**' if kinds else 'pass'} |")


def sums(combinations, by_pair, results, jobs, seconds):
    good = sum(all(not result["violations"] for result in some) for some in by_pair.values())
    kinds = collections.Counter(
        kind for result in results for kind in {kind for kind, _ in result["violations"]})
    yield (f"{good} of {len(by_pair)} pairs of {len(combinations.conditions)} conditions pass with every seed: "
           f"{len(results)} runs in {seconds / 60:.1f} minutes, {jobs} job(s), "
           f"{mean(results, 'seconds'):.1f} s each; both conditions held together for "
           f"{mean(results, 'together'):.1f} s in the mean.")
    yield (f"{total(results, 'reads')} {combinations.what} compared byte by byte ({total(results, 'bytes') >> 20} "
           f"MiB): {total(results, 'wrong')} wrong, {total(results, 'late')} past {combinations.deadline} "
           f"(the slowest took {max((result['slowest'] for result in results), default=0):.1f} s), "
           f"{total(results, 'unpromised')} errors that nothing promises, {kinds['dead']} {combinations.dead}, "
           f"{kinds['requests']} runs with too many requests, {kinds['left over']} that left something, "
           f"{kinds['not shown']} in which a condition did not take hold; "
           f"{sum(len(result['repeated']) for result in results)} runs were repeated because one did not"
           f"{repetitions(results)}.")
    yield f"{total(results, 'requests')} requests, {total(results, 'body bytes') >> 20} MiB of bodies."


def repetitions(results):
    """The conditions that did not take hold at first, with how often."""
    counts = collections.Counter(name for result in results for name in result["repeated"])
    return ": " + ", ".join(f"'{name}' {count}" for name, count in counts.most_common()) if counts else ""


def mean(results, key):
    return sum(result[key] for result in results) / max(len(results), 1)


def total(results, key):
    return sum(result["totals"].get(key, 0) for result in results)


def write(path, text, words):
    with open(path, "w") as file:
        file.write(f"# Pairs of faults\n\n{datetime.date.today()}: `scripts/torture faults {' '.join(words)}`."
                   f"\n\n{text}")
