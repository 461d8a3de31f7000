"""Figures: samples, their summaries, and targets with verdicts. Pure values, no I/O.

A sample is the result of one measurement: a dictionary from metric names to numbers. All numbers
are kept as measured; only text is rounded.
"""

import statistics
from dataclasses import asdict, dataclass, field
from typing import Callable

OWN = "httpfs"

MIB = 1 << 20


def is_own(variant):
    """Whether a variant of this name is one of httpfs.

    >>> [is_own(name) for name in ("httpfs", "httpfs get", "httpfs, a list", "httpfs2, no cache")]
    [True, True, True, False]
    """
    return variant == OWN or variant.startswith((OWN + " ", OWN + ","))


@dataclass(frozen=True)
class Metric:
    """Something that is measured: how it is called, written and summed up over the rounds."""

    name: str
    label: str
    write: Callable[[float], str]
    summary: Callable[[list[float]], float] = statistics.median
    is_better_when_larger: bool = False


def _count(value):
    return f"{value:,.0f}"


METRICS = {metric.name: metric for metric in (
    Metric("seconds", "Time", lambda value: f"{value:.3f} s"),
    Metric("mount_seconds", "Mount", lambda value: f"{value * 1000:.0f} ms"),
    Metric("read_seconds", "Open and read", lambda value: f"{value * 1000:.0f} ms"),
    Metric("ls_seconds", "ls", lambda value: f"{value:.3f} s"),
    Metric("round_trips", "Round trips", lambda value: f"{value:.2f}"),
    Metric("p50_ms", "p50", lambda value: f"{value:.1f} ms"),
    Metric("p99_ms", "p99", lambda value: f"{value:.1f} ms"),
    Metric("speed", "Speed", lambda value: f"{value:,.0f} MB/s", is_better_when_larger=True),
    Metric("rate", "Reads", lambda value: f"{value:,.0f} /s", is_better_when_larger=True),
    Metric("cpu_seconds", "CPU", lambda value: f"{value:.2f} s"),
    Metric("peak_bytes", "Peak memory", lambda value: f"{value / MIB:.1f} MiB", max),
    Metric("bytes_per_entry", "Memory per entry", lambda value: f"{value:,.0f} B"),
    Metric("requests", "Requests", _count),
    Metric("fetched_bytes", "Fetched", lambda value: f"{value / 1e6:,.2f} MB"),
    Metric("fetched_ratio", "Fetched ÷ asked", lambda value: f"{value:,.2f}"),
)}


@dataclass
class Comparison:
    """Variants of one thing that took turns.

    `metrics` names what the table shows, the first being what is drawn and held against the first
    variant. `limits` are rows that nobody measured: what a line or a delay allows at best.
    `skipped` says why a variant has no samples. `byte_count` is what each variant reads: the speed
    is that over the time.
    """

    title: str
    metrics: list[str]
    samples: dict[str, list[dict[str, float]]]
    limits: dict[str, dict[str, float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    byte_count: int = 0

    def shown(self):
        """The variants with figures, and the limits."""
        return [*(name for name, samples in self.samples.items() if samples), *self.limits]

    def value(self, variant, metric):
        """The variant's summary over its rounds, not rounded; None where nothing was measured."""
        if metric == "speed":
            seconds = self.value(variant, "seconds")
            return self.byte_count / 1e6 / seconds if seconds else None
        if variant in self.limits:
            return self.limits[variant].get(metric)
        values = self._values(variant, metric)
        return METRICS[metric].summary(values) if values else None

    def _values(self, variant, metric):
        return [sample[metric] for sample in self.samples.get(variant, []) if metric in sample]

    def ratio(self, metric, variant, reference):
        """How many times the reference's figure the variant's is; None where one is missing."""
        own, other = self.value(variant, metric), self.value(reference, metric)
        return own / other if own is not None and other else None

    def best(self, metric, variants):
        """Which of the variants has the best figure; None where none has one."""
        found = {name: value for name in variants
                 if (value := self.value(name, metric)) is not None}
        if not found:
            return None
        choose = max if METRICS[metric].is_better_when_larger else min
        return choose(found, key=found.get)

    def spread(self, variant, metric):
        """Half of (largest − smallest) relative to the median, as a cell of a table."""
        values = self._values(variant, "seconds" if metric == "speed" else metric)
        if len(values) < 2 or not statistics.median(values):
            return ""
        return f"± {(max(values) - min(values)) / statistics.median(values) * 50:.0f} %"


@dataclass
class Target:
    """A bound on an unrounded figure; `measured` is None where there is no figure."""

    text: str
    measured: float | None
    goal: float
    is_least: bool
    unit: str = ""

    @property
    def is_met(self):
        return self.measured is not None and holds(self.measured, self.goal, self.is_least)

    @property
    def verdict(self):
        if self.measured is None:
            return "not measured"
        return "met" if self.is_met else "missed"

    def cells(self):
        """What is said of it in a table: text, figure, goal, verdict."""
        unit = f" {self.unit}" if self.unit else ""
        figure = ("–" if self.measured is None
                  else decisive(self.measured, self.goal, self.is_least) + unit)
        sign = "≥" if self.is_least else "≤"
        return self.text, figure, f"{sign} {self.goal:g}{unit}", self.verdict


def at_least(text, measured, goal, unit=""):
    return Target(text, measured, goal, True, unit)


def at_most(text, measured, goal, unit=""):
    return Target(text, measured, goal, False, unit)


def holds(value, goal, is_least):
    return value >= goal if is_least else value <= goal


def decisive(value, goal, is_least):
    """The value with as many decimals as show on which side of the goal it is.

    >>> decisive(0.9996, 1, True), decisive(0.996, 1, True), decisive(1.0004, 1, True)
    ('0.9996', '0.996', '1.000')
    >>> decisive(1.549, 1, True), decisive(1234.5, 400, False), decisive(400.004, 400, False)
    ('1.55', '1234', '400.004')
    >>> decisive(0, 0, False), decisive(54.0, 0, False)
    ('0', '54')
    """
    if value == int(value):
        return f"{value:.0f}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 20 else 2
    if abs(value - goal) <= 0.05 * abs(goal):
        digits = max(digits, 3)
    while digits < 12:
        text = f"{value:.{digits}f}"
        if holds(float(text), goal, is_least) == holds(value, goal, is_least):
            return text
        digits += 1
    return repr(value)


@dataclass
class Result:
    """What a scenario gave, and on what it was measured."""

    title: str
    method: str
    comparisons: list[Comparison]
    targets: list[Target]
    date: str = ""
    command: str = ""
    machine: str = ""
    peers: str = ""
    load: float = 0
    seconds: float = 0

    def as_json(self):
        return asdict(self)

    @classmethod
    def from_json(cls, values):
        return cls(**values | {
            "comparisons": [Comparison(**one) for one in values["comparisons"]],
            "targets": [Target(**one) for one in values["targets"]]})
