"""Write `regions.json`: the outlines of the regions of two or three overlapping circles, and of four ellipses.

The regions never change, so this is run by hand: `python dashboard/components/venn/make_regions.py`. It needs shapely,
which the program itself does not.
"""

import json
import math
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
# Centre and radius.
CIRCLES: Final = {
    2: ((340, 420, 290), (660, 420, 290)),
    3: ((500, 265, 255), (355, 515, 255), (645, 515, 255)),
}
CORNERS: Final = 128
LABELS: Final = {
    2: ((340, 100), (660, 100)),
    3: ((500, -18), (60, 275), (940, 275)),
    4: ((75, 96), (290, -8), (710, -8), (925, 96)),
}
"""Positions of the labels beside the outlines, in the same order."""
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


Circle = tuple[float, float, float]
Corner = tuple[float, float]


def at(circle: Circle, angle: float) -> Corner:
    """Point of a circle."""
    x, y, radius = circle
    return x + radius * math.cos(angle), y + radius * math.sin(angle)


def crossings(circle: Circle, other: Circle) -> list[float]:
    """Angles at which a circle crosses another of the same radius."""
    towards = math.atan2(other[1] - circle[1], other[0] - circle[0])
    half = math.acos(math.dist(circle[:2], other[:2]) / (2 * circle[2]))
    return [(towards - half) % math.tau, (towards + half) % math.tau]


def arcs(circles: tuple[Circle, ...]) -> list[tuple[int, list[Corner]]]:
    """The arcs between crossings, each as a side of both regions that it parts: code of the region, and corners."""
    sides = []
    for bit, circle in enumerate(circles):
        others = [other for other in circles if other != circle]
        ends = sorted(angle for other in others for angle in crossings(circle, other))
        for start, end in zip(ends, [*ends[1:], ends[0] + math.tau]):
            n_steps = max(2, round(CORNERS * (end - start) / math.tau))
            corners = [at(circle, start + (end - start) * step / n_steps) for step in range(n_steps + 1)]
            outside = code_of(at(circle, (start + end) / 2), circles, but=bit)
            sides += [(outside | 1 << bit, corners), (outside, corners[::-1])]
    return sides


def code_of(point: Corner, circles: tuple[Circle, ...], but: int = -1) -> int:
    """The circles that hold a point, as bits."""
    return sum(
        1 << bit for bit, (x, y, radius) in enumerate(circles) if bit != but and math.dist(point, (x, y)) < radius
    )


def outline(sides: list[list[Corner]]) -> str:
    """Arcs joined at their ends, as an SVG path."""
    corners, rest = sides[0], sides[1:]
    while rest:
        following = min(rest, key=lambda side: math.dist(side[0], corners[-1]))
        rest.remove(following)
        corners = corners + following[1:]
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in corners[:-1]) + "Z"


def of_circles(circles: tuple[Circle, ...]) -> dict[str, Any]:
    """Outlines and regions of circles of one radius, of which every two overlap."""
    sides = arcs(circles)
    points = [(float(x), float(y)) for x in range(0, SIZE[0], 3) for y in range(0, SIZE[1], 3)]
    regions = []
    for code in sorted(range(1, 2 ** len(circles)), key=lambda code: (code.bit_count(), code)):
        inside = [point for point in points if code_of(point, circles) == code]
        x, y = max(inside, key=lambda point: min(abs(math.dist(point, c[:2]) - c[2]) for c in circles))
        path_of = outline([corners for of_code, corners in sides if of_code == code])
        regions.append({"code": code, "path": path_of, "x": round(x), "y": round(y)})
    whole = [[at(circle, math.tau * step / CORNERS) for step in range(CORNERS + 1)] for circle in circles]
    return {"ellipses": [outline([corners]) for corners in whole], "regions": regions}


def of_ellipses() -> dict[str, Any]:
    """Outlines and regions of the four ellipses."""
    ellipses = [ellipse(*numbers) for numbers in ELLIPSES]
    regions = [region(code, ellipses) for code in range(1, 16)]
    # Regions of many roles last, so that their outlines lie on top.
    regions.sort(key=lambda item: (item["code"].bit_count(), item["code"]))
    return {"ellipses": [path(item) for item in ellipses], "regions": regions}


def main() -> None:
    """Write the file and print its size."""
    content = {
        n_roles: {"labels": LABELS[n_roles], **shapes}
        for n_roles, shapes in (*((n, of_circles(circles)) for n, circles in CIRCLES.items()), (4, of_ellipses()))
    }
    text = json.dumps(content, indent=1)
    Path(__file__).with_name("regions.json").write_text(text + "\n", "utf-8")
    print(f"{sum(len(shapes['regions']) for shapes in content.values())} regions, {len(text)} characters")


if __name__ == "__main__":
    main()
