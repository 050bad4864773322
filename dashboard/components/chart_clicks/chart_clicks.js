// Tells Python which mark of the Plotly chart in the same container was clicked, and the camera after the reader has
// rotated the chart. Streamlit reports selections only, and neither flows nor marks of 3-D charts can be selected.
const watched = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const host = parentElement.getRootNode().host ?? parentElement;
  const box = host.closest(`.st-key-${data.box}`);
  const listeners = {
    plotly_relayout: (changed) => {
      if (data.turns && changed["scene.camera"]) setTriggerValue("camera", changed["scene.camera"]);
    },
    plotly_click: ({ points: [point] }) => {
      if (point?.customdata !== undefined) setTriggerValue("click", { mark: point.customdata });
    },
  };
  const plots = () => box.querySelectorAll(".js-plotly-plot");
  const stopListening = () => {
    for (const plot of plots()) {
      for (const [event, listener] of Object.entries(listeners)) plot.removeListener?.(event, listener);
    }
  };
  // Streamlit may rebuild the chart at any time, but the pointer always enters it before a click.
  const listen = () => {
    stopListening();
    for (const plot of plots()) {
      for (const [event, listener] of Object.entries(listeners)) plot.on?.(event, listener);
    }
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
