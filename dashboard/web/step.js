// Brings the panel of a lesson back into view where its step has changed above the screen: on a phone the square that a
// reader chooses lies far below the question, and the answer is shorter.
{
  let before = "";
  const look = () => {
    const panel = document.querySelector(".st-key-lesson");
    const step = panel?.querySelector(".st-key-lesson-head")?.textContent ?? "";
    if (step === before) return;
    const isNext = before !== "" && step !== "";
    before = step;
    const header = document.querySelector(".stAppHeader")?.getBoundingClientRect().bottom ?? 0;
    if (!isNext || panel.getBoundingClientRect().top >= header) return;
    panel.style.scrollMarginTop = `${header + 4}px`;
    panel.scrollIntoView();
  };
  new MutationObserver(look).observe(document.documentElement, { childList: true, characterData: true, subtree: true });
}
