// Closes the list of checkpoints to compare with once one is chosen: Streamlit leaves it open, over the result.
{
  const close = (box) => {
    const escape = new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true });
    setTimeout(() => box.dispatchEvent(escape)); // after Streamlit has taken the choice
  };
  const isList = (element) => element?.matches?.(".st-key-with input[aria-expanded=true]");
  addEventListener("click", ({ target }) => {
    const box = document.activeElement;
    if (isList(box) && target.closest?.("[data-testid=stMultiSelectDropdown] [role=option]")) close(box);
  }, { capture: true });
  addEventListener("keydown", ({ key, target, isComposing }) => {
    if (key === "Enter" && !isComposing && isList(target)) close(target);
  }, { capture: true });
}
