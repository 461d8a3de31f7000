"""The parts of scripts/bench.

Pure values: figures (samples, targets, verdicts), charts (SVG), report (Markdown).
Measurement: support (programs, rounds), usage (processor time, memory), servers, mounts (httpfs and
its peers), passthrough_hp (its build), clients (downloads), workloads (the actions of a reader).
Scenarios, one module per family: cold, latency, cached, lists, patterns, downloads, overall.
"""
