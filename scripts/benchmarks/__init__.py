"""The parts of scripts/bench.

Pure values: figures (samples, targets, verdicts), charts (SVG), report (Markdown).
What is measured with: support (programs, rounds), usage (processor time, memory), servers, mounts
(httpfs and its peers), passthrough_hp (how that one is built), clients (downloads), workloads (what
a reader does).
Scenarios, a module for each family: cold, latency, cached, lists, patterns, downloads, overall.
"""
