// Says on <html> what the page holds, for rules of style that hang on it: with :has() instead, each element that comes or
// goes anywhere would have the browser look at all others again.
{
  const PARTS = {
    "has-element": '[data-testid="stMain"] .stElementContainer',
    "has-page-head": ".st-key-page-head",
    "has-lesson": ":is(.st-key-lesson, .st-key-lesson-place)",
    "has-alert-for-finding": ".st-key-finding .stAlert",
    "has-film": ".st-key-film",
  };
  const root = document.documentElement;
  const look = () => {
    for (const [name, part] of Object.entries(PARTS)) root.classList.toggle(name, document.querySelector(part) !== null);
  };
  new MutationObserver(look).observe(root, { childList: true, subtree: true, attributeFilter: ["class"] });
}
