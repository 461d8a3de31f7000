"""Bar charts as SVG. Pure: values in, text out.

Text is grey and the background transparent, so a chart is readable on light and dark pages.
"""

from dataclasses import dataclass
from html import escape

WIDTH, LABEL_WIDTH, VALUE_WIDTH = 780, 260, 110
BAR_HEIGHT, BAR_GAP, GROUP_GAP, TITLE_HEIGHT = 16, 5, 16, 22

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
    """Bars of one scale, below a title."""

    title: str
    bars: list[Bar]


def _text(x, y, content, *, anchor="start", weight="normal"):
    return (f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{escape(content)}</text>")


def _bars(group, top):
    """The elements of a group's bars, and where the next group may begin."""
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    longest = max((bar.value for bar in group.bars), default=0) or 1
    elements = []
    for bar in group.bars:
        length = max(1, room * bar.value / longest)
        middle = top + BAR_HEIGHT * 0.75
        elements += [
            _text(LABEL_WIDTH - 8, middle, bar.name, anchor="end"),
            f'<rect x="{LABEL_WIDTH}" y="{top:g}" width="{length:.1f}" height="{BAR_HEIGHT}" '
            f'rx="2" fill="{bar.colour}"/>',
            _text(LABEL_WIDTH + length + 6, middle, bar.text)]
        top += BAR_HEIGHT + BAR_GAP
    return elements, top + GROUP_GAP


def bar_chart(title, groups):
    """An SVG document with the groups one below the other."""
    elements, top = [], 4
    for group in groups:
        elements.append(_text(0, top + 13, group.title, weight="bold"))
        bars, top = _bars(group, top + TITLE_HEIGHT)
        elements += bars
    height = top - GROUP_GAP + 4
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" font-family="system-ui, sans-serif" font-size="12" '
        f'fill="{TEXT}">',
        f"<title>{escape(title)}</title>", *elements, "</svg>", ""])
