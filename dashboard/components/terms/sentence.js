// A sentence with terms that can be explained.

const TAGS = { plain: "span", strong: "strong", emphasis: "em" };

export default function ({ data, parentElement }) {
  const { pieces } = dataOf(data);
  const elements = pieces.map(({ text, style, means }) =>
    means === null ? newElement(TAGS[style], "", text) : termElement(text, means));
  parentElement.querySelector("p").replaceChildren(...elements);
}
