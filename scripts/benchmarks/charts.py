"""Bar charts as SVG. Pure: values in, text out.

Text is grey and the background transparent, so a chart is readable on light and dark pages.
"""

from dataclasses import dataclass
from html import escape

WIDTH, LABEL_WIDTH, VALUE_WIDTH = 780, 260, 110
BAR_HEIGHT, BAR_GAP, GROUP_GAP, TITLE_HEIGHT, LEGEND_HEIGHT = 16, 5, 16, 22, 24

# Groups have scales of their own if one scale left a group bars of less than this share of the room.
SHORTEST_SHARE = 0.1

# Each of them has a contrast of at least 3 to white and to near black.
TEXT, OWN_BAR, OTHER_BAR, LIMIT_BAR = "#7d8590", "#2f81f7", "#8b949e", "#bc8c3a"


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its length, what is written behind it, and what it shows."""

    name: str
    value: float
    text: str
    colour: str = OTHER_BAR


@dataclass(frozen=True)
class Group:
    """Bars of one unit, below a title."""

    title: str
    bars: list[Bar]
    unit: str

    def longest(self):
        """The longest of its bars."""
        return max(self.bars, key=lambda bar: bar.value)


def scales(groups):
    """For each group the bar that fills the room.

    Groups of one unit share it, unless that would leave one of them only short bars.

    >>> def group(unit, *values):
    ...     return Group("", [Bar("", value, "") for value in values], unit)
    >>> [bar.value for bar in scales([group("s", 1, 2), group("s", 8), group("MB/s", 500)])]
    [8, 8, 500]
    >>> [bar.value for bar in scales([group("s", 1, 2), group("s", 80)])]
    [2, 80]
    """
    found = []
    for group in groups:
        peers = [other.longest() for other in groups if other.unit == group.unit]
        longest = max(peers, key=lambda bar: bar.value)
        shares = min(bar.value for bar in peers) >= SHORTEST_SHARE * longest.value
        found.append(longest if shares else group.longest())
    return found


def _text(x, y, content, *, anchor="start", weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{escape(content)}</text>")


def _bars(group, scale, top):
    """The elements of a group's bars, and where the next group may begin."""
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    elements = []
    for bar in group.bars:
        length = max(1, room * bar.value / (scale.value or 1))
        middle = top + BAR_HEIGHT * 0.75
        elements += [
            _text(LABEL_WIDTH - 8, middle, bar.name, anchor="end"),
            f'<rect x="{LABEL_WIDTH}" y="{top:g}" width="{length:.1f}" height="{BAR_HEIGHT}" '
            f'rx="2" fill="{bar.colour}"/>',
            _text(LABEL_WIDTH + length + 6, middle, bar.text)]
        top += BAR_HEIGHT + BAR_GAP
    return elements, top + GROUP_GAP


def _legend(groups):
    """What the colours of the bars mean, in one line."""
    shown = {bar.colour for group in groups for bar in group.bars}
    x, elements = 0, []
    for colour, meaning in ((OWN_BAR, "httpfs"), (OTHER_BAR, "others"),
                            (LIMIT_BAR, "calculated, not measured")):
        if colour in shown:
            elements += [f'<rect x="{x}" y="4" width="12" height="12" rx="2" fill="{colour}"/>',
                         _text(x + 18, 14, meaning)]
            x += 90
    return elements


def bar_chart(title, groups):
    """An SVG document with the groups one below the other, and their scales in words."""
    elements, top = _legend(groups), 4 + LEGEND_HEIGHT
    chosen = scales(groups)
    is_one = len(set(map(id, chosen))) == 1
    for group, scale in zip(groups, chosen):
        heading = group.title if is_one else f"{group.title} (full width: {scale.text})"
        elements.append(_text(0, top + 13, heading, weight="bold"))
        bars, top = _bars(group, scale, top + TITLE_HEIGHT)
        elements += bars
    height = top - GROUP_GAP + 4
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12" '
        f'fill="{TEXT}">',
        f"<title>{escape(title)}</title>", *elements, "</svg>", ""])
