// Stores a long text in the session storage of this tab, or returns it to Python.

export default function ({ data, setStateValue, setTriggerValue }) {
  const { name, mark, text } = JSON.parse(data.text);
  const place = `attention-sieve ${name}`;
  if (text === null) {
    setTriggerValue("found", { text: keptUnder(place, mark) });
    return;
  }
  try {
    sessionStorage.setItem(place, JSON.stringify({ mark, text }));
  } catch {
    sessionStorage.removeItem(place);
    setStateValue("full", mark);
  }
}

function keptUnder(place, mark) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(place));
    return kept.mark === mark ? kept.text : null;
  } catch {
    return null; // nothing is stored, or something else is
  }
}
