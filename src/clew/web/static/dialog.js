// One dialogue at a time; resolves with what was chosen, or null.

import { api } from "./api.js";
import { button, fill, h, swatch, toast } from "./dom.js";
import { S } from "./strings.js";
import { matching, nameOf, rowsOf, state } from "./state.js";
import { tile } from "./cards.js";

const place = () => document.getElementById("dialog");
// Milliseconds in which a click that was meant for the card behind cannot hit a dialogue that just opened.
const SETTLES = 400;
// A dialogue that comes while another one is open waits until that one is closed.
let last = Promise.resolve();

// Nobody asked for an `unexpected` dialogue, so the next keys are meant for the card behind it: no control has the focus.
// `shortcuts` gives the choice of a key: { r: value }.
export function ask(title, body, choices, { unexpected = false, shortcuts = {} } = {}) {
  last = last.then(() => open(title, body, choices, unexpected, shortcuts));
  return last;
}

function open(title, body, choices, unexpected, shortcuts) {
  const dialog = place();
  return new Promise((resolve) => {
    // At once: the event of closing comes later, when the next key or even the next dialogue may be there.
    const choose = (value) => {
      resolve(value);
      dialog.close();
    };
    dialog.onclose = () => dialog.open || resolve(null);
    const heading = h("h2", { id: "dialog-title", tabindex: "-1" }, title);
    const inside = [
      h("header", {}, heading, button("×", () => choose(null), { class: "quiet", "aria-label": S.close })),
      h("div", { class: "dialog-body" }, typeof body === "function" ? body(choose) : body),
      choices?.length
        ? h("footer", {}, choices.map(([text, value, kind]) => button(text, () => choose(typeof value === "function" ? value() : value), { class: kind ?? "" })))
        : null,
    ];
    fill(dialog, inside);
    dialog.onkeydown = (event) => {
      const isSettled = !dialog.querySelector(".dialog-body")?.inert;
      if (event.key in shortcuts && isSettled && !event.ctrlKey && !event.metaKey && !event.altKey) choose(shortcuts[event.key]);
    };
    dialog.showModal();
    if (!unexpected) return (dialog.querySelector("[autofocus]") ?? dialog.querySelector("footer .primary") ?? dialog.querySelector("footer button"))?.focus();
    heading.focus();
    heading.onkeydown = (event) => ["Tab", "Escape"].includes(event.key) || event.preventDefault();
    const parts = [...dialog.querySelectorAll(".dialog-body, footer, header button")];
    for (const part of parts) part.inert = true;
    setTimeout(() => parts.forEach((part) => (part.inert = false)), SETTLES);
  });
}

export function keys() {
  const table = (rows) => h("table", { class: "keys" }, h("tbody", {}, rows.map(([key, does]) => h("tr", {}, h("th", { scope: "row" }, h("kbd", {}, key)), h("td", {}, does)))));
  return ask(S.keys.title, [table(S.keys.rows), h("h3", {}, S.views.map), table(S.keys.map), h("h3", {}, S.views.review), table(S.keys.review)], [[S.close, null, "primary"]]);
}

// Who is here, where somebody with the same name was here before; gives the name.
export async function name(taken) {
  const field = h("input", { type: "text", maxlength: "60", autofocus: true, "aria-label": S.name.field, spellcheck: "false" });
  const given = () => field.value.trim() || null;
  for (;;) {
    const chosen = await ask(S.name.title, (choose) => {
      field.onkeydown = (event) => event.key === "Enter" && given() !== null && choose(given());
      return [h("p", {}, S.name.taken(taken)), h("label", { class: "field" }, S.name.field, field), h("p", { class: "hint" }, S.name.hint)];
    }, [[S.name.same, taken], [S.name.other, given, "primary"]]);
    if (chosen !== null) return chosen;
  }
}

export async function text(title, value, hint) {
  const area = h("textarea", { rows: "4", maxlength: "2000", autofocus: true, "aria-label": title });
  area.value = value ?? "";
  return ask(title, (choose) => {
    area.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      choose(area.value);
    });
    return [area, h("p", { class: "hint" }, hint)];
  }, [[S.cancel, null], [S.ask.keep, () => area.value, "primary"]]);
}

// A contradiction that an answer made; those before it may have settled it meanwhile.
export async function unasked(found) {
  await last;
  const open = await api.conflicts().catch(() => []);
  const now = open.find((one) => one.id === found.id);
  if (now) await conflict(now, true);
}

// A contradiction as a chain of answers; returns whether it was settled.
export async function conflict(found, unexpected = false) {
  const rows = await rowsOf([...new Set(found.chain)]).catch(() => []);
  const byId = new Map(rows.filter(Boolean).map((row) => [String(row.id), row]));
  const other = (answer) => (answer === "same" ? "different" : "same");
  const { unsure, later, change = S.conflict.repair, gives = S.conflict.cheapest } = {
    correction: { unsure: S.conflict.withdrawLast, later: S.conflict.laterCorrection },
    disagreement: { unsure: S.conflict.unsureAll, later: S.conflict.laterDisagreement, change: S.conflict.changeWrong, gives: S.conflict.wrong },
    answer: { unsure: S.conflict.unsure, later: S.conflict.laterHint },
  }[found.kind];
  const repair = found.cheapest.length ? { how: "repair" } : null;
  const chosen = await ask(S.conflict.title, (choose) => [
    found.links.length ? h("p", { class: "hint" }, S.conflict.chain) : h("p", {}, found.message),
    h(
      "ol",
      { class: "chain" },
      found.links.map((link) => {
        const changeable = link.events.filter((event) => found.answers.includes(event));
        const corrections = link.events.filter((event) => found.corrections.includes(event));
        return h(
          "li",
          {},
          h("div", { class: "chain-rows" }, [link.left, link.right].map((id) => h("div", { class: "mini" }, byId.has(String(id)) ? tile(byId.get(String(id))) : S.row(id)))),
          h(
            "div",
            { class: "chain-said" },
            h("strong", { class: `word ${link.answer}` }, S.answers[link.answer]),
            h("span", {}, link.said_by || S.conflict.given),
            link.events.some((event) => found.cheapest.includes(event)) ? h("em", { class: "cheapest" }, gives) : null,
            changeable.map((event) => button(S.conflict.changeTo(S.answers[other(link.answer)].toLowerCase()), () => choose({ how: "change", answer_id: event, answer: other(link.answer) }), { class: "small" })),
            corrections.map((event) => button(S.conflict.withdraw(event), () => choose({ how: "withdraw", correction: event }), { class: "small", dataset: { correction: event } })),
          ),
        );
      }),
    ),
    h("p", { class: "hint" }, later),
  ], [[S.conflict.later, null], [unsure, { how: "unsure" }], [S.conflict.soft, { how: "soft" }], ...(repair ? [[change, repair, "repair"]] : [])], { unexpected, shortcuts: repair ? { r: repair } : {} });
  if (!chosen) return false;
  try {
    await api.resolve(found.id, { ...chosen, annotator: state.annotator });
    toast(S.conflict.resolved, "good");
    return true;
  } catch (error) {
    toast(error.message, "error");
    return false;
  }
}

// Corrections: shows what they would change, makes them, and settles what they contradict. Returns whether they were made.
export async function correct(title, ...bodies) {
  const previews = [];
  try {
    for (const body of bodies) previews.push(await api.preview(body));
  } catch (error) {
    toast(error.message, "error");
    return false;
  }
  const changes = together(previews.flatMap((one) => one.changes));
  const conflicts = previews.map((one) => one.conflict).filter(Boolean);
  const samples = await rowsOf(changes.flatMap((change) => change.rows.slice(0, 4))).catch(() => []);
  const byId = new Map(samples.filter(Boolean).map((row) => [String(row.id), row]));
  const agreed = await ask(title, [
    h("h3", {}, S.clusters.preview),
    conflicts.map((one) => h("div", { class: "warning" }, h("p", {}, S.clusters.conflictAhead), h("p", {}, one.message))),
    changes.length === 0 && !conflicts.length ? h("p", {}, S.clusters.previewNone) : null,
    changes.map((change) => [
      h("p", {}, S.clusters.change(change.count, nameOf(change.before), nameOf(change.after))),
      h("div", { class: "tiles" }, change.rows.slice(0, 4).filter((id) => byId.has(String(id))).map((id) => h("div", { class: "tile" }, tile(byId.get(String(id)))))),
    ]),
  ], [[S.cancel, false, conflicts.length ? "primary" : ""], [conflicts.length ? S.clusters.anyway : S.confirm, true, conflicts.length ? "" : "primary"]]);
  if (!agreed) return false;
  try {
    let settled = true;
    for (const body of bodies) {
      const made = await api.correct({ ...body, annotator: state.annotator });
      if (made.conflict) settled = await conflict(made.conflict);
    }
    if (settled) toast(S.clusters.done, "good");
    return true;
  } catch (error) {
    toast(error.message, "error");
    return false;
  }
}

// Changes from one cluster to the same other one as a single change.
function together(changes) {
  const found = new Map();
  for (const one of changes) {
    const key = `${one.before} ${one.after}`;
    const known = found.get(key) ?? { ...one, count: 0, rows: [] };
    found.set(key, { ...known, count: known.count + one.count, rows: [...known.rows, ...one.rows] });
  }
  return [...found.values()];
}

// Largest number of clusters to choose from without a search, and of those listed.
const MOST_PICKED = 40;

export async function pickCluster(title, clusters, except) {
  const others = clusters.filter((one) => one.id !== except);
  return ask(title, (choose) => {
    const list = h("div", { class: "pick" });
    const search = h("input", { type: "search", class: "search", autofocus: true, placeholder: S.clusters.search, "aria-label": S.clusters.search, oninput: draw });
    const isMany = others.length > MOST_PICKED;
    function draw() {
      const found = matching(others, search.value);
      fill(
        list,
        found.slice(0, MOST_PICKED).map((one) => button([swatch(one.id), h("span", {}, nameOf(one.id), isMany && one.title ? h("span", { class: "cluster-title", dir: "auto" }, one.title) : null), h("span", { class: "count" }, S.rows(one.size))], () => choose(one.id))),
        found.length > MOST_PICKED ? h("p", { class: "hint" }, S.clusters.searchOn(found.length - MOST_PICKED)) : found.length === 0 ? h("p", { class: "hint" }, S.clusters.noMatch) : null,
      );
    }
    draw();
    return [h("p", { class: "hint" }, S.clusters.pick), isMany ? search : null, list];
  }, [[S.cancel, null]]);
}
