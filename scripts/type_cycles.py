#!/usr/bin/env python3
"""Counts, for each module, the lines of types that refer to each other in circles.

Usage: scripts/type_cycles.py [--least LINES]
  --least  show groups of at least so many lines (default 300)

A unit is a type with its extensions: X.swift, X+*.swift, and the extensions of X in other files of its
module. It refers to another unit of its module if it names a type that the other one declares at the top
level. The table lists the strongly connected
groups of more than one unit, and then the units of more than 600 lines. It goes by names, not by what the
compiler knows: a name that two modules share, or that is a member of another type, may count too much.
"""

import argparse
import collections
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECLARATION = re.compile(
    r"^(?:@[\w.()]+ )*(?:(?:public|package|internal|private|fileprivate|final|indirect) )*"
    r"(?:class|struct|enum|protocol|actor) (\w+)", re.MULTILINE)
EXTENSION = re.compile(r"^(?:@[\w.()]+ )*(?:(?:public|package|internal|private|fileprivate) )?extension (\w+)")
COMMENT = re.compile(r"//.*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"")


def blocks(lines):
    """The extensions at the top level, as (type, lines), and the rest, as (None, lines).

    >>> [(name, len(some)) for name, some in blocks(["struct A {", "}", "extension B {", "  x", "}", ""])]
    [(None, 2), ('B', 3), (None, 1)]
    """
    name, block = None, []
    for line in lines:
        if name is None and (match := EXTENSION.match(line)):
            yield None, block
            name, block = match[1], [line]
            if line.rstrip().endswith("}"):
                yield name, block
                name, block = None, []
        else:
            block.append(line)
            if name is not None and line.rstrip() == "}":
                yield name, block
                name, block = None, []
    yield name, block


def units(folder):
    """The text and the number of lines of each unit below a directory."""
    files = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".swift"):
                with open(os.path.join(directory, name)) as file:
                    files[name.removesuffix(".swift")] = file.read().splitlines()
    own = {declared: name.split("+")[0] for name, lines in files.items()
           for declared in DECLARATION.findall("\n".join(lines))}
    found = collections.defaultdict(lambda: ["", 0])
    for name, lines in files.items():
        for extended, block in blocks(lines):
            unit = found[own.get(extended, name.split("+")[0])]
            unit[0] += COMMENT.sub("", "\n".join(block) + "\n")
            unit[1] += len(block)
    return found


def references(found):
    """Which units each unit refers to."""
    owner = {}
    for name, (text, _) in found.items():
        for declared in DECLARATION.findall(text):
            owner[declared] = name
    return {
        name: {owner[word] for word in re.findall(r"\b[A-Z]\w+", text) if word in owner} - {name}
        for name, (text, _) in found.items()}


def groups(graph):
    """The strongly connected groups of more than one node.

    >>> sorted(map(sorted, groups({"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": set()})))
    [['a', 'b']]
    """
    def reachable(start):
        seen, waiting = set(), [start]
        while waiting:
            for node in graph[waiting.pop()] - seen:
                seen.add(node)
                waiting.append(node)
        return seen

    reach = {node: reachable(node) for node in graph}
    left, result = set(graph), []
    for node in sorted(graph):
        group = {other for other in reach[node] & left if node in reach[other]}
        left -= group
        if len(group) > 1:
            result.append(group)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--least", type=int, default=300, metavar="LINES")
    least = parser.parse_args().least
    rows, large = [], []
    for module in sorted(os.listdir(os.path.join(ROOT, "Sources"))):
        found = units(os.path.join(ROOT, "Sources", module))
        for group in groups(references(found)):
            rows.append((sum(found[name][1] for name in group), module, sorted(group)))
        large += [(count, module, name) for name, (_, count) in found.items() if count > 600]
    print("| module | lines | types that refer to each other |\n| --- | --- | --- |")
    for count, module, group in sorted(rows, reverse=True):
        if count >= least:
            print(f"| {module} | {count} | {', '.join(group)} |")
    print("\n| module | lines | type |\n| --- | --- | --- |")
    for count, module, name in sorted(large, reverse=True):
        print(f"| {module} | {count} | {name} |")


if __name__ == "__main__":
    main()
