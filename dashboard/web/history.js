// Keeps one history entry per page, and in a lesson one per step: Back leads to the previous page or step as it was, not
// to every click on this one.
{
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  const pathOf = (address) => new URL(address, location.href).pathname;
  /** The step of a lesson in an address; null where there is none. */
  const stepOf = (address) => {
    const { searchParams } = new URL(address, location.href);
    return searchParams.get("lesson") && `${searchParams.get("lesson")}-${searchParams.get("step")}`;
  };
  const isOtherStep = (address, before = location.href) =>
    stepOf(before) && stepOf(address) && stepOf(address) !== stepOf(before);
  let atClick = location.href;
  // After a step back the address is as it was left. Until the next run has ended, or the reader does something, it
  // stays so: of two quick steps, Streamlit would write what the page of the first says into the address of the second.
  let runs = null;
  const release = () => {
    runs?.disconnect();
    runs = null;
  };
  const hold = () => {
    release();
    const app = document.querySelector('[data-testid="stApp"]');
    if (app === null) return;
    let hasRun = app.dataset.testScriptState === "running";
    runs = new MutationObserver((changes) => {
      const now = app.dataset.testScriptState;
      hasRun ||= now === "running" || changes.some((change) => change.oldValue === "running");
      if (hasRun && now === "notRunning") release();
    });
    runs.observe(app, { attributeFilter: ["data-test-script-state"], attributeOldValue: true });
  };
  addEventListener("popstate", hold, { capture: true });
  for (const act of ["pointerdown", "keydown", "click"]) addEventListener(act, release, { capture: true });
  addEventListener("click", () => (atClick = location.href), { capture: true });
  history.replaceState = (state, title, address) => {
    if (!runs) replace(state, title, address);
  };
  history.pushState = (state, title, address) => {
    if (runs) return;
    if (pathOf(address) === location.pathname) {
      (isOtherStep(address) ? push : replace)(state, title, address);
      return;
    }
    // The step of another page was written before its page, and has its entry.
    if (pathOf(atClick) === location.pathname && isOtherStep(location.href, atClick)) {
      replace(state, title, address);
      return;
    }
    // Streamlit has removed from the address the parameters unknown to the next page; Back needs it unchanged.
    if (pathOf(atClick) === location.pathname) replace(history.state, "", atClick);
    push(state, title, address);
  };
}
