// The link that a lesson asks for: its query is framed, the guess dashed, and other links are hidden until the answer.

/** Take over a new question or answer: a question begins with arcs and without a query pinned, an answer pins it. */
function takeAsked(view) {
  const { choices, source } = view;
  const { asked } = source.data;
  const isNew = JSON.stringify(asked) !== JSON.stringify(choices.asked ?? null);
  choices.asked = asked;
  if (!asked || !isNew) return;
  choices.matrix = false;
  const guessed = choices.pin?.side === "to" ? choices.pin : null;
  choices.pin = asked.is_answered ? { side: "from", token: asked.query } : guessed;
  tellLook(view);
}

function isAsking(view) {
  const { asked } = view.source.data;
  return asked !== null && !asked.is_answered;
}

/** The guessed key: the pinned one as long as the lesson asks. */
function guessedRow(view) {
  const { asked } = view.source.data;
  const pin = shownPin(view);
  if (!asked) return -1;
  if (isAsking(view)) return pin?.side === "to" ? pin.row : -1;
  return asked.guess === null ? -1 : view.table.rowOf.to[asked.guess];
}

/** Frame the query, and mark the guess. */
function markAsked(view) {
  const { asked } = view.source.data;
  if (!asked && !view.isMarked) return;
  view.isMarked = asked !== null;
  const query = asked ? view.table.rowOf.from[asked.query] : -1;
  const guess = guessedRow(view);
  view.tokens.from.forEach((token, row) => token.classList.toggle("asked", row === query));
  view.tokens.to.forEach((token, row) => token.classList.toggle("guessed", row === guess));
}

/** A dashed curve from the query to the guess, and the guess's number even where it is too small to be shown. */
function drawGuess(view, context, frame) {
  const guess = guessedRow(view);
  if (guess < 0) return;
  const path = new Path2D();
  addCurve(path, frame, view.table.rowOf.from[view.source.data.asked.query], guess);
  context.strokeStyle = view.colors.ink;
  context.lineWidth = 2;
  context.setLineDash([5, 5]);
  context.stroke(path);
  context.setLineDash([]);
  const boxes = view.tokens.to[guess].querySelector(".boxes");
  if (isAsking(view) || boxes.textContent) return;
  view.marked.push(view.tokens.to[guess]);
  boxes.replaceChildren(newElement("span", "number", "0.00"));
}

function askedSummary(view) {
  const query = view.table.rowOf.from[view.source.data.asked.query];
  return `Where does ${quoted(view, "from", query)} look? Choose a word in the right-hand column.`;
}
