// What stands on the first screen, without the navigation and without what is inside a picture: controls and words.
// Options of which one is chosen are one control, and so are tabs; a mark or a word that explains itself is none; icons, whose
// names are text to the browser, and signs such as "×" are no words, and neither are the labels of what is counted as a control.
() => {
  const main = document.querySelector("[data-testid=stMain]");
  const picture = "svg, canvas, [role=grid], [role=listbox], [data-testid=stVegaLiteChart]";
  const several = "[role=radiogroup], [role=tablist]";
  const isSeen = (element) => {
    const { top, bottom, left, right, width, height } = element.getBoundingClientRect();
    const isOnScreen = top < innerHeight && bottom > 0 && left < innerWidth && right > 0;
    return width > 1 && height > 1 && isOnScreen && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  };
  const roots = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((element) => (element.shadowRoot ? roots(element.shadowRoot) : []))];
  const everywhere = roots(main);
  const controls = everywhere
    .flatMap((root) => [
      ...root.querySelectorAll(`button, input, select, textarea, summary, a[href], [role=slider], ${several}`),
    ])
    .filter((element) => isSeen(element) && !element.closest(`${picture}, [data-testid=stTooltipIcon], .term`))
    .filter((element) => !element.parentElement?.closest(several))
    .map((element) => element.ariaLabel || element.innerText || element.title || element.type || element.tagName);
  const words = everywhere.flatMap((root) => {
    const found = [];
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const parent = texts.currentNode.parentElement;
      if (!parent || parent.closest(`${picture}, ${several}, button:not(.term), summary, a[href], script, style, textarea, [data-testid=stIconMaterial], [aria-hidden=true]`) || !isSeen(parent)) continue;
      const range = document.createRange();
      range.selectNodeContents(texts.currentNode);
      const { top, bottom, width } = range.getBoundingClientRect();
      if (width > 1 && top < innerHeight && bottom > 0) found.push(...texts.currentNode.textContent.trim().split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)));
    }
    return found;
  });
  return { controls, words };
}
