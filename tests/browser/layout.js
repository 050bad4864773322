// Lists layout problems of the page in words: horizontal scrolling, text that is cut off or covered by other text,
// controls that overlap or are off the screen. Searches shadow roots; leaves out elements that are not visible.
() => {
  const INK = 4; // maximum number of pixels by which a line box extends beyond its letters
  const TOUCH = 2;
  const CONTROLS =
    "a[href], button, input, textarea, select, [role=button], [role=tab], [role=slider], [role=option], [role=gridcell]";
  const found = [];
  const nameOf = (element) => {
    const words = (element.getAttribute("aria-label") || element.textContent).trim().slice(0, 50);
    return `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") || ""}"> ${words}`;
  };
  const say = (what, element) => found.push(`${what}: ${nameOf(element)}`);

  const styles = new Map();
  const styleOf = (element) => {
    if (!styles.has(element)) styles.set(element, getComputedStyle(element));
    return styles.get(element);
  };
  const boxes = new Map();
  const boxOf = (element) => {
    if (!boxes.has(element)) boxes.set(element, element.getBoundingClientRect());
    return boxes.get(element);
  };
  const within = (root) =>
    [...root.querySelectorAll("*")].flatMap((each) => [each, ...(each.shadowRoot ? within(each.shadowRoot) : [])]);
  const parentOf = (element) => element.parentElement ?? element.getRootNode().host ?? null;
  const upwards = (element) => {
    const line = [];
    for (let each = element; each; each = parentOf(each)) line.push(each);
    return line;
  };
  const scrolls = (overflow) => overflow === "auto" || overflow === "scroll";
  const clips = (overflow) => overflow === "hidden" || overflow === "clip";
  const isHidden = (element) => {
    const { clip, clipPath, opacity } = styleOf(element);
    return opacity === "0" || clip.startsWith("rect(0px") || clipPath.startsWith("inset(50%");
  };
  const shows = new Map(); // whether an element and all its ancestors show their content
  const isShowing = (element) => {
    if (element === null) return true;
    if (!shows.has(element)) shows.set(element, !isHidden(element) && isShowing(parentOf(element)));
    return shows.get(element);
  };
  const canBeSeen = (element) =>
    element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && isShowing(element);
  const overlap = (a, b) => ({
    width: Math.min(a.right, b.right) - Math.max(a.left, b.left),
    height: Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top),
  });

  for (const each of [document.scrollingElement, document.querySelector("[data-testid=stMain]")]) {
    if (each.scrollWidth > each.clientWidth) say(`scrolls sideways, ${each.scrollWidth} of ${each.clientWidth} px`, each);
  }

  const elements = within(document.body).filter((each) => !["SCRIPT", "STYLE"].includes(each.tagName) && canBeSeen(each));

  // Check for each line of text whether an ancestor that does not scroll cuts it off.
  const linesOf = (element) => {
    const range = document.createRange();
    return [...element.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())
      .flatMap((node) => (range.selectNodeContents(node), [...range.getClientRects()]))
      .filter((line) => line.width > 1);
  };
  const texts = elements.map((element) => ({ element, lines: linesOf(element) })).filter(({ lines }) => lines.length);
  for (const { element, lines } of texts) {
    const line = upwards(element);
    const shortened = line.find((each) => styleOf(each).textOverflow === "ellipsis");
    if (shortened) {
      const isCut = shortened.scrollWidth > shortened.clientWidth;
      if (isCut && !line.some((each) => each.title)) say("shortened without a title", element);
      continue;
    }
    let [sideways, upright] = [true, true];
    for (const each of line) {
      const [box, { overflowX, overflowY, position }] = [boxOf(each), styleOf(each)];
      sideways &&= !scrolls(overflowX);
      upright &&= !scrolls(overflowY);
      const beyond = (start, end) => lines.some((of) => of[start] < box[start] - INK || of[end] > box[end] + INK);
      const isCut = (sideways && clips(overflowX) && beyond("left", "right"))
        || (upright && clips(overflowY) && beyond("top", "bottom"));
      if (isCut) say("cut", element);
      if (isCut || position === "fixed") break;
    }
    if (sideways && lines.some((of) => of.right > innerWidth + 1 || of.left < -1)) say("outside the window", element);
  }

  // The part of an element that is visible within all ancestors that scroll or clip.
  const seenOf = (element, box) => {
    let { left, right, top, bottom } = box;
    for (const each of upwards(element).slice(1)) {
      const [around, { overflowX, overflowY, position }] = [boxOf(each), styleOf(each)];
      if (overflowX !== "visible") [left, right] = [Math.max(left, around.left), Math.min(right, around.right)];
      if (overflowY !== "visible") [top, bottom] = [Math.max(top, around.top), Math.min(bottom, around.bottom)];
      if (position === "fixed") break;
    }
    return { left, right, top, bottom };
  };
  // Streamlit overlays an arrow on a row of tabs that is too long for the screen.
  const floats = (element) => element.ariaLabel?.startsWith("Scroll tabs ")
    || upwards(element).some((each) => ["fixed", "sticky"].includes(styleOf(each).position)
    || each.dataset?.testid === "stHeader" || each.dataset?.testid === "stElementToolbar");
  const related = (a, b) => upwards(a).includes(b) || upwards(b).includes(a);
  const compare = (pieces, what, least) => {
    const downwards = pieces.toSorted((one, other) => one.box.top - other.box.top);
    downwards.forEach(({ element: a, box: one }, place) => {
      for (let next = place + 1; next < downwards.length && downwards[next].box.top < one.bottom; next++) {
        const { element: b, box: other } = downwards[next];
        const { width, height } = overlap(one, other);
        if (width > least && height > least && a !== b && !related(a, b)) say(`${what} (of ${nameOf(b)})`, a);
      }
    });
  };

  // The regions of the Venn diagram are shapes that do not overlap, although their bounding boxes do.
  const isControl = (each) => each.matches(CONTROLS) && !each.matches(":disabled") && !(each instanceof SVGElement);
  const controls = elements
    .filter((each) => isControl(each) && styleOf(each).pointerEvents !== "none" && !floats(each))
    .map((element) => ({ element, box: seenOf(element, boxOf(element)) }));
  compare(controls, "controls overlap", TOUCH);

  for (const element of elements.filter(isControl)) {
    const isScrolled = upwards(element).some((each) => scrolls(styleOf(each).overflowX));
    if (boxOf(element).right > innerWidth + 1 && !isScrolled) say("outside the window", element);
  }

  // A control to the left of the screen, where nothing was scrolled away, still takes the focus.
  for (const { element } of controls) {
    if (boxOf(element).right <= 0 && !upwards(element).some((each) => each.scrollLeft > 0)) say("off the screen", element);
  }

  const shrunk = ({ left, right, top, bottom }) => ({ left, right, top: top + INK, bottom: bottom - INK });
  const lines = texts
    .filter(({ element }) => !floats(element))
    .flatMap(({ element, lines: of }) => of.map((line) => ({ element, box: seenOf(element, shrunk(line)) })));
  compare(lines, "texts overlap", TOUCH);
  return found;
}
