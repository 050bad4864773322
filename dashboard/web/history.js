// Keeps one history entry per page: Back leads to the previous page as it was, not to every click on this one.
{
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  const pathOf = (address) => new URL(address, location.href).pathname;
  let atClick = location.href;
  let steppedBack = false;
  addEventListener("popstate", () => (steppedBack = true), { capture: true });
  addEventListener(
    "click",
    () => {
      atClick = location.href;
      steppedBack = false;
    },
    { capture: true },
  );
  history.pushState = (state, title, address) => {
    if (pathOf(address) === location.pathname) {
      replace(state, title, address);
      return;
    }
    // Of two steps back, the page of the first may be announced after the second.
    if (steppedBack) return;
    // Streamlit has removed from the address the parameters unknown to the next page; Back needs it unchanged.
    if (pathOf(atClick) === location.pathname) replace(history.state, "", atClick);
    push(state, title, address);
  };
}
