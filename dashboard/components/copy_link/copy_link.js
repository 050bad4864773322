// Copies the address of the page, and confirms it on screen and to screen readers.

const SHOWN_FOR = 6000; // milliseconds
const COPIED = "Link copied.";
const REFUSED = "Your browser does not let the page copy. Copy the link from here:";

const leftOut = new WeakMap(); // what the link currently omits, also read by a button that exists already

export default function ({ data, parentElement }) {
  const isNew = !leftOut.has(parentElement);
  leftOut.set(parentElement, JSON.parse(data.text).left_out);
  if (isNew) listen(parentElement);
}

function listen(parent) {
  const find = (selector) => parent.querySelector(selector);
  const [button, box, sentence, address, live] = [".copy", ".said", ".sentence", ".address", ".live"].map(find);
  let closing;
  const close = () => {
    box.hidden = true;
    live.textContent = "";
  };
  const say = (isCopied) => {
    clearTimeout(closing);
    sentence.textContent = `${isCopied ? COPIED : REFUSED} ${leftOut.get(parent)}`.trim();
    box.hidden = false;
    address.hidden = isCopied;
    live.textContent = sentence.textContent;
    if (isCopied) closing = setTimeout(close, SHOWN_FOR);
    else {
      address.value = location.href;
      address.select();
    }
  };
  button.addEventListener("click", () => copied(location.href).then(say));
  parent.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    close();
    button.focus();
  });
  box.addEventListener("focusout", close);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // not allowed, or not a secure connection
  }
}
