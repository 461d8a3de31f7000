"""Pairs of faults at once: what `scripts/torture faults --pairs` runs.

`conditions` has the table of conditions and `combinations` the pairs of it, `world` what they work on (`disk`, `servers`,
`daemon`), `readers` the programs that read meanwhile and judge every byte, `run` one pair with one seed,
`command` all of them, side by side, and `report` what came of it.
"""
