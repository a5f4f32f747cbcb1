"""Facts as a picture: SVG for slides and pages, and a table with it for notebooks.

The picture is laid out from left to right. The library that does it, `fast_sugiyama`, comes with the extra `draw`.
"""

from kg_boundary.drawing.picture import Picture, Triple
from kg_boundary.drawing.png import png_of
from kg_boundary.drawing.svg import CannotDraw, svg_of
from kg_boundary.drawing.tables import notebook_html

__all__ = ["CannotDraw", "Picture", "Triple", "notebook_html", "png_of", "svg_of"]
