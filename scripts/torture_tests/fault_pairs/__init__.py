"""Pairs of simultaneous faults: the parts of `scripts/torture faults --pairs`.

`conditions` has the table of conditions, and `combinations` its pairs. `world` is their environment
(`disk`, `servers`, `daemon`). `readers` are the programs that read meanwhile and judge every byte.
`run` runs one pair with one seed, `command` all of them, side by side, and `report` reports the
results. `holding` makes two conditions hold together.

With --get, the same conditions and some more affect `httpfs get`: `get_conditions`,
`get_combinations`, `get_world`, `get_run` and `get_sabotage` are the parts that differ.
"""
