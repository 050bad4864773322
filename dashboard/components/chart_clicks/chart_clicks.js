// Tells Python which mark of the Plotly chart beside it was clicked, and from where the reader looks who has turned it.
// Streamlit passes on selections only, and neither flows nor marks in space can be selected.
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
  // Streamlit may build the chart anew at any time, but a pointer comes over it before it can click.
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
  listen(); // a pointer that rests on the chart since before this run comes over nothing
  return stop;
}
