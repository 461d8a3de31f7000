"""The parts of scripts/torture hostile.

chance.py     numbers, damaged bytes, planted secrets
answers.py    an answer of a server as a value, and its transmission
heads.py, bodies.py, redirects.py, listings.py    hostile servers
lists.py, words.py, records.py                    hostile files
cases.py      the case of a number
server.py     the servers, in separate processes
frame.py      the environment of cases, which shows what they write elsewhere
bounds.py     the conditions for every case, and their checks
mounts.py, reloads.py, caches.py, commands.py     how cases are run
report.py     the results of a run
self_check.py shows that each bound can fail
"""
