"""A picture as PNG, drawn from its SVG by resvg, which needs no browser and no other library of the system."""

import re
from typing import Final

from kg_boundary.drawing.svg import FONTS, CannotDraw
from kg_boundary.installation import install_command

_TEXT: Final = f'''<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">
<text y="9" font-family="{FONTS}">%s</text></svg>'''

_SIZE: Final = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
MAX_PIXELS: Final = 100_000_000
"""They take about 400 MB while they are drawn."""


def png_of(svg: str, scale: float = 2.0, *, fonts: bool = True) -> bytes:
    """Return an SVG of ours as PNG.

    Args:
        svg: The picture, of one theme: what the reader prefers is not known.
        scale: How many pixels of the PNG one of the SVG becomes, in each direction.
        fonts: Whether the fonts of this machine are used.

    Raises:
        CannotDraw: The library is not installed, the machine has no font, so that no text would be seen, or the PNG
            would be larger than `MAX_PIXELS`.
    """
    size = _SIZE.match(svg)
    assert size is not None  # noqa: S101 - ours states it
    if (pixels := float(size[1]) * float(size[2]) * scale**2) > MAX_PIXELS:
        raise CannotDraw(
            f"The PNG would have {pixels / 1e6:,.0f} million pixels, and may have {MAX_PIXELS / 1e6:,.0f}. Lower "
            "--scale, draw less (--limit), or write SVG."
        )
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise CannotDraw(f"A PNG needs the extra draw. Run: {install_command('draw')}") from error
    with_text, without = (svg_to_bytes(svg_string=_TEXT % mark, skip_system_fonts=not fonts) for mark in ("M", ""))
    if with_text == without:
        raise CannotDraw("This machine has no font for a PNG. Install one, such as DejaVu, or write SVG.")
    return bytes(svg_to_bytes(svg_string=svg, skip_system_fonts=not fonts, zoom=scale))
