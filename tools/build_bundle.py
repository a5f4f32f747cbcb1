"""Write `dist/kg-sextant.mcpb`, which desktop assistants install by a double click: the files of `packaging/mcpb`."""

import sys
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "packaging" / "mcpb"
TARGET: Final = ROOT / "dist" / "kg-sextant.mcpb"
DATE: Final = (1980, 1, 1, 0, 0, 0)


def build(target: Path) -> None:
    """Write the bundle; the same files give the same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bundle:
        for path in sorted(SOURCE.iterdir()):
            if path.is_file():
                bundle.writestr(zipfile.ZipInfo(path.name, DATE), path.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
