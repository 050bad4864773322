"""Write `regions.json`: the outlines of the 15 regions of four overlapping ellipses.

The regions never change, so this is run by hand: `python dashboard/components/venn/make_regions.py`. It needs shapely,
which the program itself does not.
"""

import json
from pathlib import Path
from typing import Any, Final

from shapely import Point, Polygon, affinity, maximum_inscribed_circle  # type: ignore[import-untyped]

SIZE: Final = (1000, 800)
# Centre, radii and tilt in degrees. The inner pair stands 100 higher than the outer pair, which opens all 15 regions.
ELLIPSES: Final = (
    (352, 450, 362, 224, 48),
    (452, 350, 362, 224, 48),
    (548, 350, 362, 224, -48),
    (648, 450, 362, 224, -48),
)
TOLERANCE: Final = 0.25
SLIVER: Final = 20.0


def ellipse(x: float, y: float, long: float, short: float, tilt: float) -> Polygon:
    """One ellipse as a polygon of 512 corners; y points down, as on a screen."""
    return affinity.translate(affinity.rotate(affinity.scale(Point(0, 0).buffer(1, 128), long, short), tilt), x, y)


def path(polygon: Polygon) -> str:
    """The outline as an SVG path."""
    corners = polygon.simplify(TOLERANCE).exterior.coords[:-1]
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in corners) + "Z"


def region(code: int, ellipses: list[Polygon]) -> dict[str, Any]:
    """The region inside exactly the ellipses whose bits are set in `code`: its path, and the position of its number."""
    shape = Polygon([(0, 0), (SIZE[0], 0), SIZE, (0, SIZE[1])])
    for bit, polygon in enumerate(ellipses):
        shape = shape.intersection(polygon) if code >> bit & 1 else shape.difference(polygon)
    parts = [part for part in getattr(shape, "geoms", [shape]) if part.area > SLIVER]
    widest = max(parts, key=lambda part: part.area)
    x, y = maximum_inscribed_circle(widest).coords[0]
    return {"code": code, "path": "".join(path(part) for part in parts), "x": round(x), "y": round(y)}


def main() -> None:
    """Write the file and print its size."""
    ellipses = [ellipse(*numbers) for numbers in ELLIPSES]
    regions = [region(code, ellipses) for code in range(1, 16)]
    # Regions of many roles last, so that their outlines lie on top.
    regions.sort(key=lambda item: (item["code"].bit_count(), item["code"]))
    content = {"size": SIZE, "ellipses": [path(item) for item in ellipses], "regions": regions}
    text = json.dumps(content, indent=1)
    Path(__file__).with_name("regions.json").write_text(text + "\n", "utf-8")
    print(f"{len(regions)} regions, {len(text)} characters")


if __name__ == "__main__":
    main()
