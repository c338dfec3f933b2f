// Answers worth a second look, and contradictions to settle.

import { api } from "./api.js";
import { card } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, fill, h, toast } from "./dom.js";
import { onChange, rowsOf, state } from "./state.js";
import { S } from "./strings.js";

const kept = new Set();

export function review(view) {
  const place = h("section", { class: "review" });
  fill(view, place);
  let left = false;

  async function load() {
    try {
      const [conflicts, found] = await Promise.all([api.conflicts(), api.review()]);
      const items = found.filter((one) => !kept.has(`${one.answer_id} ${one.answer}`));
      await rowsOf(items.flatMap((one) => [one.left, one.right]).filter((id) => id !== null));
      if (left) return;
      const cards = await Promise.all(items.map(item));
      fill(
        place,
        h("h1", {}, S.review.title),
        conflicts.length ? [h("h2", {}, S.review.conflicts), conflicts.map(contradiction)] : null,
        items.length ? [h("h2", {}, S.review.suspicious), cards] : null,
        !conflicts.length && !items.length ? h("div", { class: "finished" }, h("h2", {}, S.review.none), h("p", {}, S.review.noneText)) : null,
      );
    } catch (error) {
      fill(place, h("p", { class: "warning" }, error.message));
    }
  }

  function contradiction(one) {
    return h("div", { class: "conflict" }, h("p", {}, one.message), button(S.review.resolve, async () => (await dialog.conflict(one)) && load(), { class: "primary", dataset: { conflict: one.id } }));
  }

  async function item(one) {
    const [first, second] = await rowsOf([one.left, one.right ?? one.left]);
    const other = one.likely !== one.answer ? one.likely : one.answer === "same" ? "different" : "same";
    return h(
      "article",
      { class: "suspect", dataset: { answer: one.answer_id } },
      h(
        "div",
        { class: "suspect-head" },
        h("strong", { class: `word ${one.answer}` }, S.review.said(one.annotator, S.answers[one.answer].toLowerCase())),
        h("span", { class: "tag" }, S.review.likely(S.answers[one.likely].toLowerCase())),
        h("span", { class: "gauge", title: S.review.suspicion(one.suspicion.toFixed(2)) }, h("span", { style: { width: `${100 * one.suspicion}%` } })),
        h("span", { class: "count" }, S.review.suspicion(one.suspicion.toFixed(2))),
      ),
      h("ul", { class: "reasons" }, one.reasons.map((reason) => h("li", {}, reason))),
      h("div", { class: "cards small" }, card(first, second), one.right === null ? null : card(second, first)),
      h(
        "div",
        { class: "actions" },
        button(S.review.keep, () => decide(one, one.answer, S.review.kept), { dataset: { action: "keep" } }),
        other === "unsure" ? null : button(S.review.flip(S.answers[other].toLowerCase()), () => decide(one, other), { class: "primary", dataset: { action: "flip" } }),
        button(S.review.unsure, () => decide(one, "unsure"), { dataset: { action: "unsure" } }),
      ),
    );
  }

  async function decide(one, answer, comment) {
    try {
      const told = await api.revise(one.answer_id, { answer, annotator: state.annotator, comment });
      if (comment) kept.add(`${one.answer_id} ${answer}`);
      if (told.conflict) await dialog.conflict(told.conflict);
      toast(S.saved, "good");
      load();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  const stopListening = onChange((kind) => kind === "clusters" && !document.getElementById("dialog").open && load());
  load();
  return {
    keysDown: () => false,
    leave() {
      left = true;
      stopListening();
    },
  };
}
