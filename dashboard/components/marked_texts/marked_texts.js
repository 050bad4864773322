// Lists texts with marked words; each text is a button.

export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".texts");
  list.setAttribute("aria-label", data.label);
  list.replaceChildren(
    ...data.texts.map((parts, place) => {
      const button = newElement("button", "text");
      button.type = "button";
      button.append(...parts.map(([words, mark]) => newElement("span", mark, words)));
      button.setAttribute("aria-label", `Show: ${parts.map(([words]) => words).join("")} (${data.says[place]})`);
      button.onclick = () => setTriggerValue("picked", place);
      const item = newElement("li");
      item.append(button);
      return item;
    }),
  );
}
