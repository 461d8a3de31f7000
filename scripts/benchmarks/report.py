"""The report: Markdown and charts from results. All of it can be regenerated from results.json."""

import dataclasses
import json
import os
import re

from benchmarks import charts
from benchmarks.figures import METRICS, Result, is_own
from programs import Failure

INTRODUCTION = """\
# Benchmarks

Written by `scripts/bench`; every figure can be measured again with it. A run replaces the sections
that it has measured, each of which says when and on what that was. The samples are in
[benchmarks/results.json](benchmarks/results.json). Absolute times drift from machine to machine and
from hour to hour: the ratios within a scenario are what compares. Verdicts are of the medians, not
of what is printed. The parts without I/O have [figures of their own](benchmarks/pure-parts.md).
"""

TARGETS_TITLE = "Targets"
CHART_DIRECTORY, RESULTS_FILE, BEFORE_FILE = "benchmarks", "results.json", "before.json"


def markdown(columns, rows):
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison_rows(comparison):
    """A row for each variant, each limit, and each variant that was skipped."""
    first = comparison.metrics[0]
    reference = next(iter(comparison.samples), None)
    rows = []
    for variant in comparison.shown():
        cells = []
        for name in comparison.metrics:
            value = comparison.value(variant, name)
            cells.append("" if value is None else METRICS[name].write(value))
        ratio = comparison.ratio(first, variant, reference)
        rows.append((variant, cells[0], comparison.spread(variant, first), *cells[1:],
                     "" if ratio is None else f"{ratio:.3f}"))
    blanks = [""] * (len(comparison.metrics) + 1)
    rows += [(variant, f"skipped: {reason}", *blanks)
             for variant, reason in comparison.skipped.items()]
    return rows


def comparison_text(comparison):
    labels = [METRICS[name].label for name in comparison.metrics]
    columns = ("Variant", labels[0], "Spread", *labels[1:], f"{labels[0]}, relative")
    return f"**{comparison.title}**\n\n{markdown(columns, comparison_rows(comparison))}\n"


def chart(title, comparisons):
    groups = []
    for comparison in comparisons:
        metric = comparison.metrics[0]
        bars = []
        for variant in comparison.shown():
            value = comparison.value(variant, metric)
            if value is None:
                continue
            colour = (charts.LIMIT_BAR if variant in comparison.limits
                      else charts.OWN_BAR if is_own(variant) else charts.OTHER_BAR)
            bars.append(charts.Bar(variant, value, METRICS[metric].write(value), colour))
        if bars:
            shown = METRICS[metric]
            better = "more" if shown.is_better_when_larger else "less"
            groups.append(charts.Group(
                f"{comparison.title}: {shown.label.lower()}, {better} is better", bars, shown.label))
    return charts.bar_chart(title, groups) if groups else None


def target_table(targets):
    return markdown(("Target", "Measured", "Goal", "Verdict"), [one.cells() for one in targets])


def section_title(name, result):
    return f"{name}: {result.title}" if re.fullmatch(r"P\d+", name) else result.title


def section(name, result):
    """A scenario's section."""
    parts = [f"## {section_title(name, result)}\n"]
    if result.machine:
        parts.append(
            f"- Measured: {result.date} in {result.seconds:.0f} s with `{result.command}`, load "
            f"average (1 minute) at the start {result.load:.2f}\n- Machine: {result.machine}\n"
            f"- Peers: {result.peers}")
    parts.append(result.method)
    if result.comparisons:
        parts.append(f"![{result.title}]({CHART_DIRECTORY}/{name.lower()}.svg)\n")
        parts += [comparison_text(one) for one in result.comparisons]
    if result.targets:
        parts.append(target_table(result.targets) + "\n")
    return "\n".join(parts)


def summary(results, before=None):
    """All targets in one table; `before` has what an earlier tree measured, by the targets' texts.
    """
    pairs = [(name, target) for name, result in results.items() for target in result.targets]
    met = sum(target.is_met for _, target in pairs)
    columns, rows = ["", "Target", "Measured", "Goal", "Verdict"], []
    for name, target in pairs:
        rows.append([name, *target.cells()])
    remark = ""
    if before:
        columns.insert(2, "Before")
        for row, (name, target) in zip(rows, pairs):
            earlier = before["figures"].get(name, {}).get(target.text)
            row.insert(2, dataclasses.replace(target, measured=earlier).cells()[1])
        remark = (f" *Before* is what an earlier tree measured on {before['date']}, with the same "
                  "command on such a machine (kept by `scripts/bench --before`).")
    table = markdown(columns, rows)
    return f"## {TARGETS_TITLE}\n\n{met} of {len(pairs)} met.{remark}\n\n{table}\n"


def earlier_sections(path):
    """The sections of an earlier report, by title."""
    try:
        with open(path) as text:
            parts = re.split(r"^(?=## )", text.read(), flags=re.MULTILINE)[1:]
    except FileNotFoundError:
        return {}
    return {part.partition("\n")[0][3:]: part.rstrip() + "\n" for part in parts}


class Report:
    """A report on the disk: the Markdown file, and beside it the charts and the samples."""

    def __init__(self, path):
        self.path = path
        self.directory = os.path.join(os.path.dirname(path), CHART_DIRECTORY)

    def results(self):
        """What earlier runs have measured, by the scenario's name."""
        try:
            with open(os.path.join(self.directory, RESULTS_FILE)) as text:
                return {name: Result.from_json(values) for name, values in json.load(text).items()}
        except FileNotFoundError:
            return {}

    def keep_before(self, path, derive):
        """Takes the figures of an earlier tree's samples for those of before."""
        try:
            with open(path) as text:
                results = {name: Result.from_json(one) for name, one in json.load(text).items()}
        except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
            raise Failure(f"no samples in {path}: {error}") from error
        if not results:
            raise Failure(f"no samples in {path}: it is empty")
        figures = {name: {target.text: target.measured for target in result.targets}
                   for name, result in (results | derive(results)).items()}
        dates = sorted(result.date for result in results.values())
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, BEFORE_FILE), "w") as text:
            json.dump({"date": " to ".join(dict.fromkeys((dates[0], dates[-1]))),
                       "figures": figures}, text, indent=1, ensure_ascii=False)
            text.write("\n")

    def before(self):
        """What ``keep_before`` has kept; None where it was never called."""
        try:
            with open(os.path.join(self.directory, BEFORE_FILE)) as text:
                return json.load(text)
        except FileNotFoundError:
            return None

    def write(self, measured, order, derive):
        """Adds results to the earlier ones and writes everything.

        `order` is that of the sections; `derive` makes further results of all the measured ones. A
        section of an earlier report without results.json is kept until its scenario is measured.
        """
        found = self.results() | measured
        if not found:
            raise Failure(f"nothing has been measured: no {self.directory}/{RESULTS_FILE}")
        stored = {name: found[name] for name in order if name in found}
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, RESULTS_FILE), "w") as text:
            json.dump({name: result.as_json() for name, result in stored.items()}, text, indent=1,
                      ensure_ascii=False)
            text.write("\n")
        shown = {name: result for name, result in sorted(
            (stored | derive(stored)).items(), key=lambda item: order.index(item[0]))}
        sections = {section_title(name, result): section(name, result)
                    for name, result in shown.items()}
        kept = {title: text for title, text in earlier_sections(self.path).items()
                if title in order and title not in sections}
        for name, result in shown.items():
            if result.comparisons and (picture := chart(result.title, result.comparisons)):
                with open(os.path.join(self.directory, f"{name.lower()}.svg"), "w") as text:
                    text.write(picture)
        with open(self.path, "w") as text:
            text.write("\n".join(
                [INTRODUCTION, summary(shown, self.before()), *sections.values(), *kept.values()]))
