// The loop: two cards, one key. The next card is there before it is needed; "Saved" is said when the server has it.

import { api, link } from "./api.js";
import { card, pictures, tile } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, fill, h, swatch, toast } from "./dom.js";
import * as outbox from "./outbox.js";
import { keep, nameOf, onChange, rowsOf, state } from "./state.js";
import { S } from "./strings.js";

// Cards that are here, and how many are fetched at once. The newest come first, because they know the latest answers; the
// others are for the time when the server is away.
const AT_HAND = 10;
const AT_ONCE = 4;

// Questions outlive the view, so that going to the map and back loses nothing.
const queue = [];
let fetching = null;
let exhausted = false;
let redraw = () => {};
let current = null;
let since = 0;
let flagged = false;
let comment = null;
let lastWord = null;

export function ask(view) {
  const parts = {
    meter: h("div", { class: "meter" }),
    stop: h("div", { class: "stop", hidden: true }),
    why: h("p", { class: "why" }),
    title: h("h1", {}, S.ask.title),
    cards: h("div", { class: "cards" }),
    opinion: h("div", { class: "opinion" }),
    buttons: h("div", { class: "answers" }),
    tools: h("div", { class: "tools" }),
    saved: h("div", { class: "saved", role: "status", "aria-live": "polite" }),
  };
  fill(
    view,
    h("section", { class: "ask" }, parts.meter, parts.stop, h("div", { class: "question" }, parts.title, parts.why), parts.cards, parts.opinion, parts.buttons, h("div", { class: "under" }, parts.tools, parts.saved)),
  );
  let shownFor = null;

  function draw() {
    meter(parts.meter);
    stop(parts.stop);
    if (current === null) {
      shownFor = null;
      fill(parts.title, exhausted ? S.ask.done : link.trouble ? S.ask.away : S.ask.first);
      fill(parts.why, exhausted ? S.ask.doneText : "");
      fill(parts.cards, exhausted ? h("div", { class: "finished" }, h("a", { class: "button primary", href: "#clusters" }, S.ask.lookAt)) : [skeleton(), skeleton()]);
      fill(parts.buttons);
      fill(parts.opinion);
      tools();
      return;
    }
    if (shownFor !== current) {
      shownFor = current;
      fill(parts.title, current.kind === "which" ? S.ask.which : current.kind === "clusters" ? S.ask.clusters : S.ask.title);
      fill(parts.why, current.check ? h("span", { class: "tag" }, S.ask.check) : null, current.why);
      cards();
      since = performance.now();
    }
    opinion();
    tools();
  }

  function cards() {
    const question = current;
    const rows = question.shown;
    parts.cards.className = `cards is-${question.kind}`;
    if (question.kind === "which") {
      fill(
        parts.cards,
        card(rows[0], null, { class: "card wanted" }),
        h("div", { class: "candidates" }, question.candidates.map((id, place) => button([h("kbd", {}, String(place + 1)), h("div", { class: "tile-inner" }, tile(rows[place + 1]))], () => give(id), { class: "candidate" }))),
      );
      fill(parts.buttons, answer("none", S.ask.none, "0", "different"), answer("unsure", S.ask.unsure, "␣", "unsure"));
      return;
    }
    if (question.kind === "clusters" && question.rows) {
      const group = (ids, offset) => h("div", { class: "card group" }, h("div", { class: "card-id" }, S.ask.sample), h("div", { class: "tiles" }, ids.map((_, place) => h("div", { class: "tile" }, tile(rows[offset + place])))));
      fill(parts.cards, group(question.rows[0], 2), group(question.rows[1], 2 + question.rows[0].length));
    } else {
      const pair = [card(rows[0], rows[1], { "aria-label": S.ask.left }), card(rows[1], rows[0], { "aria-label": S.ask.right })];
      fill(parts.cards, pair);
      scrollTogether(...pair);
    }
    fill(parts.buttons, answer("different", S.ask.different, "D", "different"), answer("unsure", S.ask.unsure, "␣", "unsure"), answer("same", S.ask.same, "S", "same"));
  }

  function answer(word, text, key, kind) {
    return button([text, h("kbd", {}, key)], () => give(word), { class: `answer ${kind}`, dataset: { answer: word } });
  }

  function opinion() {
    const pair = current?.kind === "pair";
    const toggle = button([S.ask.opinion, h("kbd", {}, "M")], () => setOpinion(!state.opinion), { class: "quiet toggle", "aria-pressed": String(state.opinion) });
    fill(parts.opinion, pair ? toggle : null, state.opinion && pair ? thinks(current) : null, !state.opinion && lastWord ? h("span", { class: "after" }, lastWord) : null);
  }

  function setOpinion(value) {
    keep("opinion", value);
    opinion();
  }

  function tools() {
    fill(
      parts.tools,
      button([S.ask.undo, h("kbd", {}, "Z")], undo, { class: "quiet", dataset: { tool: "undo" } }),
      button([flagged ? S.ask.flagged : S.ask.flag, h("kbd", {}, "F")], flag, { class: `quiet ${flagged ? "on" : ""}`, "aria-pressed": String(flagged), disabled: current === null }),
      button([S.ask.comment, h("kbd", {}, "C")], remark, { class: `quiet ${comment ? "on" : ""}`, disabled: current === null }),
      button([S.ask.help, h("kbd", {}, "?")], dialog.keys, { class: "quiet" }),
    );
    const [waiting, refused, late] = [outbox.waiting().length, outbox.refused().length, outbox.problem() !== null];
    fill(parts.saved, late ? S.notSaved(waiting) : waiting ? S.saving : refused ? S.refused(refused) : lastWord !== null ? S.saved : "");
    parts.saved.classList.toggle("late", late || refused > 0);
  }

  function flag() {
    if (current === null) return;
    flagged = !flagged;
    tools();
  }

  async function remark() {
    if (current === null) return;
    const said = await dialog.text(S.ask.commentTitle, comment, S.ask.commentHint);
    if (said !== null) comment = said.trim() || null;
    tools();
  }

  function give(word) {
    const question = current;
    if (question === null) return;
    const { shown, pictures: _, ...asked } = question;
    lastWord = after(question, word);
    cardsOf.set(question.id, shown);
    step();
    outbox.put({ question: question.id, about: [question.left, question.right], answer: word, annotator: state.annotator, seconds: Math.round(performance.now() - since) / 1000, comment, flag: flagged }, asked);
    flagged = false;
    comment = null;
    draw();
  }

  async function undo() {
    try {
      const waits = await outbox.takeBack(state.annotator);
      if (waits === false) return toast(S.ask.undoLater, "note");
      const { undone, question } = waits === null ? await api.undo(state.annotator) : { undone: waits, question: waits };
      if (undone === null) return toast(S.ask.nothingToUndo);
      if (question !== null && question.annotator === state.annotator) {
        if (current !== null) queue.unshift(current);
        current = await withRows(question);
        exhausted = false;
      }
      lastWord = "";
      toast(S.ask.undone);
      draw();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  const keysDown = (event) => {
    const key = event.key.toLowerCase();
    const which = current?.kind === "which";
    if (event.repeat) return key === " "; // a key held down is one answer, and does not scroll
    if (key === "?") return dialog.keys(), true;
    if (key === "z" || key === "backspace") return undo(), true;
    if (key === "f") return flag(), true;
    if (key === "c") return remark(), true;
    if (key === "m") return setOpinion(!state.opinion), true;
    if (current === null) return false;
    if (key === " ") return give("unsure"), true;
    if (which && key >= "1" && key <= "9" && current.candidates[key - 1] !== undefined) return give(current.candidates[key - 1]), true;
    if (which && key === "0") return give("none"), true;
    if (!which && (key === "s" || key === "arrowright")) return give("same"), true;
    if (!which && (key === "d" || key === "arrowleft")) return give("different"), true;
    return false;
  };

  swipes(parts.cards, (word) => current?.kind !== "which" && give(word));
  redraw = draw;
  const ends = [
    onChange((kind) => {
      meter(parts.meter);
      stop(parts.stop);
      if (kind === "online" || (current === null && !outbox.waiting().length)) refill();
    }),
    outbox.onChange(draw),
  ];
  draw();
  refill();
  return {
    keysDown,
    leave() {
      redraw = () => {};
      for (const end of ends) end();
    },
  };
}

// -- questions ---------------------------------------------------------------------------------------------------------

function step() {
  current = queue.shift() ?? null;
}

// Rows of questions whose answers wait, for an undo while the server is away.
const cardsOf = new Map();

async function withRows(question) {
  const ids = question.kind === "which" ? [question.left, ...question.candidates] : [question.left, question.right, ...(question.rows ?? []).flat()];
  question.shown = cardsOf.get(question.id) ?? (await rowsOf(ids));
  question.pictures = question.shown.flatMap(pictures);
  return question;
}

const held = () => [current, ...queue].filter(Boolean);

function refill() {
  const missing = AT_HAND - held().length;
  if (fetching || missing <= 0) return fetching ?? Promise.resolve();
  const here = [...held(), ...outbox.waiting().map((one) => one.question)].map((one) => one.id);
  // The first card alone: a strategy that thinks for every question would make it wait for the others.
  const wanted = held().length === 0 ? 1 : Math.min(missing, AT_ONCE);
  let more = false;
  fetching = api
    .next(state.annotator, wanted, here)
    .then(async (found) => {
      const fresh = found.filter((one) => !here.includes(one.id));
      queue.unshift(...(await Promise.all(fresh.map(withRows))));
      more = fresh.length > 0;
      if (current === null) step();
      exhausted = current === null && outbox.waiting().length === 0;
    })
    .catch((error) => error.status !== link.trouble?.status && toast(error.message, "error"))
    .finally(() => {
      fetching = null;
      redraw();
      if (more) refill();
    });
  return fetching;
}

// What an answer decided need not be asked any more.
async function prune() {
  const here = held();
  if (!here.length) return;
  const open = new Set(await api.stillOpen(here.map((one) => one.id)));
  const stays = queue.filter((one) => open.has(one.id) || !here.includes(one));
  queue.splice(0, queue.length, ...stays);
  if (current !== null && here.includes(current) && !open.has(current.id)) {
    toast(S.ask.followed);
    step();
    redraw();
  }
}

outbox.onTold(async (told, { body }) => {
  cardsOf.delete(body.question);
  const disagrees = told.conflict?.kind === "disagreement"; // no dialogue: a second opinion should not follow the first
  if (told.note) toast(told.note, "note");
  else if (disagrees) toast(S.ask.disagrees, "note");
  else if (told.implied > 0) toast(S.ask.implied(told.implied));
  if (told.conflict && !disagrees) dialog.unasked(told.conflict);
  if (!outbox.waiting().length) await prune().catch(() => {});
  refill();
});

// -- around the cards --------------------------------------------------------------------------------------------------

function foreseen(question) {
  if (question.kind !== "pair") return null;
  const [left, right] = question.shown.map((row) => row.cluster);
  return left === null || right === null || left < 0 || right < 0 ? null : left === right ? "same" : "different";
}

function thinks(question) {
  const word = foreseen(question);
  const [left, right] = question.shown;
  if (word === null) return h("span", {}, S.ask.machineUnknown);
  return h("span", {}, S.ask.machine(S.answers[word].toLowerCase()), " (", swatch(left.cluster), nameOf(left.cluster), word === "same" ? null : [" · ", swatch(right.cluster), nameOf(right.cluster)], ")");
}

function after(question, word) {
  const expected = foreseen(question);
  if (expected === null || (word !== "same" && word !== "different")) return "";
  const said = S.answers[word].toLowerCase();
  return word === expected ? S.ask.agreed(said) : S.ask.differed(said);
}

function meter(place) {
  const now = state.progress;
  const figure = (value, text) => h("div", { class: "figure" }, h("b", {}, value), h("span", {}, text));
  const waiting = outbox.waiting().length;
  fill(
    place,
    now === null
      ? null
      : [
          figure((now.answered + waiting).toLocaleString(), S.ask.answered),
          figure(now.implied.toLocaleString(), S.ask.followedCount),
          figure(now.groups.toLocaleString(), S.ask.groups),
          figure(now.seconds === null ? S.empty : now.seconds.toFixed(1), S.ask.seconds),
          figure(`${Math.round(100 * now.expected_gain)} %`, S.ask.surprise),
        ],
  );
}

let dismissed = false;
function stop(place) {
  const now = state.progress;
  place.hidden = dismissed || !now?.can_stop || current === null;
  if (!place.hidden)
    fill(place, h("strong", {}, now.reason), h("a", { class: "button small", href: "#clusters" }, S.ask.lookAt), button(S.ask.goOn, () => ((dismissed = true), (place.hidden = true)), { class: "quiet small" }));
}

// Rows of many columns are read side by side.
function scrollTogether(left, right) {
  for (const [one, other] of [[left, right], [right, left]]) one.addEventListener("scroll", () => (other.scrollTop = one.scrollTop), { passive: true });
}

function skeleton() {
  return h("article", { class: "card skeleton", "aria-hidden": "true" }, [..."123456"].map(() => h("div", { class: "bone" })));
}

function swipes(place, give) {
  const far = 80;
  let from = null;
  place.addEventListener("touchstart", (event) => (from = event.touches.length === 1 ? [event.touches[0].clientX, event.touches[0].clientY] : null), { passive: true });
  place.addEventListener(
    "touchend",
    (event) => {
      if (from === null) return;
      const [dx, dy] = [event.changedTouches[0].clientX - from[0], event.changedTouches[0].clientY - from[1]];
      from = null;
      if (Math.abs(dx) > far && Math.abs(dx) > 2 * Math.abs(dy)) give(dx > 0 ? "same" : "different");
    },
    { passive: true },
  );
}
