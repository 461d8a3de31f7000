#!/usr/bin/env python3
"""Compares what each target imports with the dependencies that Package.swift declares for it.

Usage: scripts/check_imports.py
Exit status: 0 both are the same, 1 they are not: each difference is a line.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The modules of other packages, by the names that Package.swift gives their products.
PRODUCTS = {"argumentParser": "ArgumentParser", "httpTypes": "HTTPTypes", "logging": "Logging"}

IMPORT = re.compile(
    r"^[ \t]*(?:@\w+ )*(?:(?:public|package|internal|fileprivate|private) )?import (?:\w+ )?(\w+)",
    re.MULTILINE)


def declared(manifest):
    """The dependencies of each Swift target, with the directory of its sources.

    >>> targets = declared('''
    ...     .target(name: "A", swiftSettings: strict),
    ...     .testTarget(
    ...       name: "BTests", dependencies: ["A", httpTypes],
    ...       swiftSettings: strict),
    ... ''')
    >>> [(name, folder, sorted(words)) for name, (folder, words) in targets.items()]
    [('A', 'Sources/A', []), ('BTests', 'Tests/BTests', ['A', 'HTTPTypes'])]
    """
    targets = {}
    pattern = re.compile(
        r"\.(target|executableTarget|testTarget)\(\s*name: \"(\w+)\"(.*?)"
        r"\n?(?=\n    \.|\n    //|\n  \]|\Z)",
        re.DOTALL)
    for kind, name, rest in pattern.findall(manifest):
        listed = re.search(r"dependencies: \[(.*?)\]", rest, re.DOTALL)
        words = re.findall(r"\"?(\w+)\"?", listed[1]) if listed else []
        path = re.search(r"path: \"([^\"]+)\"", rest)
        folder = path[1] if path else f"{'Tests' if kind == 'testTarget' else 'Sources'}/{name}"
        targets[name] = folder, {PRODUCTS.get(word, word) for word in words}
    return targets


def imported(folder):
    """The modules that the Swift files below a directory import."""
    modules = set()
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".swift"):
                with open(os.path.join(directory, name)) as file:
                    modules.update(IMPORT.findall(file.read()))
    return modules


def main():
    with open(os.path.join(ROOT, "Package.swift")) as file:
        manifest = file.read()
    targets = declared(manifest)
    # Modules of the toolchain and of the system need no declaration.
    known = set(re.findall(r"arget\(\s*name: \"(\w+)\"|systemLibrary\(\s*name: \"(\w+)\"", manifest))
    known = {name for pair in known for name in pair if name} | set(PRODUCTS.values())
    differences = []
    for name, (folder, dependencies) in targets.items():
        modules = imported(os.path.join(ROOT, folder))
        if not modules:
            continue  # It is written in C.
        modules &= known - {name}
        for module in sorted(modules - dependencies):
            differences.append(f"{name} imports {module}, and Package.swift does not declare that")
        for module in sorted(dependencies - modules):
            differences.append(f"{name} does not import {module}, which Package.swift declares")
    print("\n".join(differences), end="\n" if differences else "")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
