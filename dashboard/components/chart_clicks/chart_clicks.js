// Tells Python which mark of the Plotly chart in the same container was clicked. Streamlit reports selections only, and
// flows cannot be selected.
const watched = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const host = parentElement.getRootNode().host ?? parentElement;
  const box = host.closest(`.st-key-${data.box}`);
  const handleClick = ({ points: [point] }) => {
    if (point?.customdata !== undefined) setTriggerValue("click", { mark: point.customdata });
  };
  const plots = () => box.querySelectorAll(".js-plotly-plot");
  const stopListening = () => {
    for (const plot of plots()) plot.removeListener?.("plotly_click", handleClick);
  };
  // Streamlit may rebuild the chart at any time, but the pointer always enters it before a click.
  const listen = () => {
    stopListening();
    for (const plot of plots()) plot.on?.("plotly_click", handleClick);
  };
  const stop = () => {
    box.removeEventListener("pointerover", listen);
    stopListening();
  };
  watched.get(parentElement)?.();
  watched.set(parentElement, stop);
  box.addEventListener("pointerover", listen);
  listen(); // a pointer that was already on the chart before this run triggers no pointerover
  return stop;
}
