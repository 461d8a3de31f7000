"""What scripts/torture hostile is made of.

chance.py     numbers, damaged bytes, planted secrets
answers.py    an answer of a server as a value, and what sends it
heads.py, bodies.py, redirects.py, listings.py    hostile servers
lists.py, words.py, records.py                    hostile files
cases.py      which case a number is
server.py     the servers, in processes of their own
frame.py      where they run: what they write elsewhere is seen
bounds.py     what must hold, and how it is looked at
mounts.py, reloads.py, caches.py, commands.py     how cases are run
report.py     what came of a run
self_check.py shows that each bound can fail
"""
