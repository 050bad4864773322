// One entry a page in the browser's history: Back leads to the page before, as it was, not to every click on this one.
{
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  const pathOf = (address) => new URL(address, location.href).pathname;
  let atClick = location.href;
  addEventListener("click", () => (atClick = location.href), { capture: true });
  history.pushState = (state, title, address) => {
    if (pathOf(address) === location.pathname) {
      replace(state, title, address);
      return;
    }
    // Streamlit has taken from the address what the next page does not know; Back needs it as it was.
    if (pathOf(atClick) === location.pathname) replace(history.state, "", atClick);
    push(state, title, address);
  };
}
