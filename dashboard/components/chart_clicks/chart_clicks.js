// Tells Python which mark of the Plotly chart beside it was clicked. Streamlit passes on selections only, and neither
// flows nor marks in space can be selected.
const watched = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const host = parentElement.getRootNode().host ?? parentElement;
  const box = host.closest(`.st-key-${data.box}`);
  // From where the reader looks, so that the chart that is drawn after a click can be seen from there too.
  let camera = null;
  const listeners = {
    plotly_relayout: (changed) => {
      camera = changed["scene.camera"] ?? camera;
    },
    plotly_click: ({ points: [point] }) => {
      if (point?.customdata !== undefined) setTriggerValue("click", { mark: point.customdata, camera });
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
  return stop;
}
