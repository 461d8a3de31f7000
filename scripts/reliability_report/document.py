"""docs/RELIABILITY.md, which has one section for each run: writing and reading."""

import re
import shlex

from .runs import RUNS

HEAD = """# Reliability: the last long runs

`scripts/reliability` runs the scripts that take too long for `scripts/test`, and writes this file: for each of them its last run, as the
script itself tells it, passed or failed. A run replaces its own section only. What each one looks for: [CONTRIBUTING.md](CONTRIBUTING.md) and its
`--help`. A line "tree" names the commit that ran, or says that it had changes which were not committed; "httpfs"
is the beginning of the SHA-256 of the program that ran.
"""
FACTS = {
    "result": r"passed|failed: .+",
    "seeds": r"\d+( to \d+)?|–",
    "began": r"\d{4}-\d\d-\d\d \d\d:\d\d UTC",
    "took": r"\d+ s|\d+\.\d minutes",
    "tree": r"(`[0-9a-f]{7,40}`|with changes that were not committed|not known)(, its build as it was found)?",
    # The first digits of its SHA-256.
    "httpfs": r"`[0-9a-f]{16}`|not known",
    "machine": r"\d+ processors \(siblings \d+, cores \d+\), Linux [\d.]+ \w+, \d+ GiB; load [\d.]+ when it began",
}
# The maximum of a run's output that is kept.
MOST_LINES, MOST_CHARACTERS = 60, 500


class Malformed(Exception):
    """The file is not as scripts/reliability writes it."""


class Section:
    """What came of one run: its command, its facts by the names of FACTS, and lines of its output."""

    def __init__(self, name, command, facts, lines):
        self.name, self.command, self.facts = name, command, facts
        # The result is at the end.
        self.lines = [tidy(line) for line in lines[-MOST_LINES:]]

    def text(self):
        facts = "\n".join(f"- {name}: {self.facts[name]}" for name in FACTS)
        lines = "\n".join(self.lines)
        return (f"## {self.name}\n\n{RUNS[self.name].about}\n\n```sh\n{self.command}\n```\n\n{facts}\n\n"
                f"```text\n{lines}\n```\n")

    def row(self):
        facts = self.facts
        result = facts["result"].partition(":")[0]
        return (f"| [{self.name}](#{self.name}) | {'**failed**' if result == 'failed' else result} | "
                f"{facts['began'].partition(' ')[0]} | {facts['took']} | {facts['tree']} |")


def tidy(line):
    """A line as it may stand in the file: no place of this machine, no end of the fence, no heading.

    >>> tidy("left behind: mount /tmp/httpfs-run-1/mnt **x** ```")
    "left behind: mount /tmp/… x '''"
    """
    line = re.sub(r"(/tmp|/var/tmp|/root|/home|/work)/[^\s\"'`,;:)]*", r"\1/…", line)
    line = line.replace("**", "").replace("```", "'''").replace("\r", "")
    if line.startswith("#"):
        line = " " + line
    if len(line) > MOST_CHARACTERS:
        # The command is at the beginning, and its result at the end.
        line = f"{line[:MOST_CHARACTERS // 4]} … {line[-MOST_CHARACTERS * 3 // 4:]}"
    return line.rstrip()


def render(sections):
    """The whole file from sections by their names.

    >>> facts = {"result": "failed: exit status 1", "seeds": "1", "began": "2026-01-02 03:04 UTC",
    ...          "took": "2.5 minutes", "tree": "`c41f365`", "httpfs": "not known",
    ...          "machine": "2 processors (siblings 2, cores 1), Linux 6.1.0 x86_64, 8 GiB; load 0.5 when it began"}
    >>> text = render({"hostile": Section("hostile", "scripts/torture hostile", facts, ["4 of 4 cases"])})
    >>> "| [hostile](#hostile) | **failed** | 2026-01-02 | 2.5 minutes | `c41f365` |" in text
    True
    >>> "| soak | not run yet | | | |" in text
    True
    >>> render(parse(text)) == text
    True
    >>> check(text, has_commit=lambda commit: False)
    Traceback (most recent call last):
    reliability_report.document.Malformed: hostile: there is no commit c41f365: run it again or --forget it
    >>> check(text.replace("failed: exit status 1", "passed").replace("**failed**", "passed"))
    Traceback (most recent call last):
    reliability_report.document.Malformed: hostile: passed, without lines that say so
    >>> parse(text.replace("`c41f365`", "c41f365?"))
    Traceback (most recent call last):
    reliability_report.document.Malformed: hostile: tree is 'c41f365?'
    """
    rows = [sections[name].row() if name in sections else f"| {name} | not run yet | | | |"
            for name in RUNS]
    table = "\n".join(["| run | result | on | took | tree |", "| --- | --- | --- | --- | --- |", *rows])
    return "\n".join([HEAD, table + "\n", *(sections[name].text() for name in RUNS if name in sections)])


def parse(text):
    """The sections of a file by their names, in its order."""
    sections = {}
    for part in re.split(r"^## (?=\S+$)", text, flags=re.MULTILINE)[1:]:
        name = part.partition("\n")[0]
        if name not in RUNS:
            raise Malformed(f"{name}: no such run")
        if name in sections:
            raise Malformed(f"{name}: stands there twice")
        match = re.search(r"```sh\n(.+)\n```\n\n((?:- .*\n)+)\n```text\n(.*?)\n?```$", part,
                          re.MULTILINE | re.DOTALL)
        if match is None:
            raise Malformed(f"{name}: no command, no facts or no output")
        facts = dict(line[2:].split(": ", 1) for line in match[2].splitlines() if ": " in line)
        for fact, form in FACTS.items():
            if not re.fullmatch(form, facts.get(fact, "")):
                raise Malformed(f"{name}: {fact} is '{facts.get(fact, '')}'")
        lines = match[3].splitlines()
        sections[name] = Section(name, match[1], facts, lines)
    return sections


def check(text, has_commit=lambda commit: True):
    """Raises Malformed unless the text is exactly what scripts/reliability writes.

    A section that says "passed" has lines that prove it, of as much as its command asks for, and names
    no commit that is not there.
    """
    sections = parse(text)
    for name, section in sections.items():
        if section.facts["result"] == "passed" and not RUNS[name].is_proven(
                section.lines, shlex.split(section.command)):
            raise Malformed(f"{name}: passed, without lines that say so")
        commit = re.search(r"`(.+)`", section.facts["tree"])
        if commit and not has_commit(commit[1]):
            raise Malformed(f"{name}: there is no commit {commit[1]}: run it again or --forget it")
    written, right = text.splitlines(), render(sections).splitlines()
    for number, (line, expected) in enumerate(zip(written, right), 1):
        if line != expected:
            raise Malformed(f"line {number} is not as scripts/reliability writes it: {line}")
    if len(written) != len(right):
        raise Malformed(f"{len(written)} lines, not {len(right)}")
