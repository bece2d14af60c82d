"""Plots and small signs, drawn on the server as SVG from plain values."""

from ui.charts.data import Band, LineChart, Mark, Point, Series, colour_of
from ui.charts.lines import description, has_data, line_chart
from ui.charts.signs import four_square, pieces_in_words

__all__ = [
    "Band",
    "LineChart",
    "Mark",
    "Point",
    "Series",
    "colour_of",
    "description",
    "four_square",
    "has_data",
    "line_chart",
    "pieces_in_words",
]
