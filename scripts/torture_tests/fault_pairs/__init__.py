"""Pairs of faults at once: what `scripts/torture faults --pairs` runs.

`conditions` has the table of conditions and `combinations` the pairs of it, `world` what they work on (`disk`, `servers`,
`daemon`), `readers` the programs that read meanwhile and judge every byte, `run` one pair with one seed,
`command` all of them, side by side, and `report` what came of it. `holding` lets two conditions hold together.

With --get the same conditions and some more trouble `httpfs get`: `get_conditions`, `get_combinations`, `get_world`,
`get_run` and `get_sabotage` are the parts that differ.
"""
