// Answers worth a second look, and contradictions to settle.

import { api } from "./api.js";
import { card } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, fill, h, toast } from "./dom.js";
import { onChange, rowsOf, state } from "./state.js";
import { S } from "./strings.js";

const MOST_CONFLICTS = 3;
const percent = (one) => Math.round(100 * one.suspicion);

export function review(view) {
  const place = h("section", { class: "review" });
  fill(view, place);
  let left = false;
  let allShown = false;

  async function load() {
    try {
      const [conflicts, found] = await Promise.all([api.conflicts(), api.review()]);
      working = found.working;
      const doubted = found.items.filter((one) => percent(one) > 0);
      await rowsOf(doubted.flatMap((one) => [one.left, one.right]));
      if (left) return;
      const cards = await Promise.all(doubted.map(item));
      const { answer } = document.activeElement?.closest(".suspect")?.dataset ?? {};
      const { action } = document.activeElement?.dataset ?? {};
      const basis = h("p", { class: "hint", role: "status" }, found.thorough ? S.review.thorough : S.review.quick, " ", found.working ? (found.thorough ? S.review.again : S.review.working) : found.problem);
      fill(
        place,
        h("h1", {}, S.review.title),
        conflicts.length ? [h("h2", {}, S.review.conflicts), contradictions(conflicts)] : null,
        cards.length ? [h("h2", {}, S.review.suspicious), basis, cards] : null,
        !conflicts.length && !cards.length ? h("div", { class: "finished" }, h("h2", {}, S.review.none), h("p", {}, S.review.noneText), basis) : null,
      );
      // The list is new: the focus goes back to its answer, because the next key is about the answer that has it.
      if (answer && action) place.querySelector(`.suspect[data-answer="${answer}"] [data-action="${action}"]`)?.focus();
    } catch (error) {
      fill(place, h("p", { class: "warning" }, error.message));
    }
  }

  // The first ones only, so that the suspicious answers below, which name the likely right answer, are in sight.
  function contradictions(conflicts) {
    if (allShown || conflicts.length <= MOST_CONFLICTS) return conflicts.map(contradiction);
    return [conflicts.slice(0, MOST_CONFLICTS).map(contradiction), button(S.review.showAll(conflicts.length), () => ((allShown = true), load()), {})];
  }

  function contradiction(one) {
    return h("div", { class: "conflict" }, h("p", {}, one.message), button(S.review.resolve, async () => (await dialog.conflict(one)) && load(), { class: "primary", dataset: { conflict: one.id } }));
  }

  async function item(one, rank) {
    const [first, second] = await rowsOf([one.left, one.right]);
    const other = one.answer === "same" ? "different" : "same";
    const doubtful = one.likely !== one.answer;
    return h(
      "article",
      { class: "suspect", dataset: { answer: one.answer_id } },
      h(
        "div",
        { class: "suspect-head" },
        h("span", { class: "count" }, S.review.rank(rank + 1)),
        h("strong", { class: `word ${one.answer}` }, S.review.said(one.annotator, S.answers[one.answer].toLowerCase())),
        doubtful ? h("span", { class: "tag" }, S.review.likely(S.answers[one.likely].toLowerCase())) : null,
        h("span", { class: "gauge", "aria-hidden": "true" }, h("span", { style: { width: `${100 * one.suspicion}%` } })),
        h("span", { class: "count" }, S.review.suspicion(`${percent(one)} %`)),
      ),
      h("ul", { class: "reasons" }, one.reasons.map((reason) => h("li", {}, reason))),
      h("div", { class: "cards small" }, card(first, second), card(second, first)),
      h(
        "div",
        { class: "actions" },
        button([S.review.keep, h("kbd", {}, "K")], () => decide(one, null), { class: doubtful ? "" : "primary", dataset: { action: "keep" } }),
        one.answer === "unsure" ? null : button([S.review.flip(S.answers[other].toLowerCase()), h("kbd", {}, "F")], () => decide(one, other), { class: doubtful ? "primary" : "", dataset: { action: "flip" } }),
        one.answer === "unsure" ? null : button([S.review.unsure, h("kbd", {}, "U")], () => decide(one, "unsure"), { dataset: { action: "unsure" } }),
      ),
    );
  }

  // An answer that is kept is kept for good: the log says who looked at it again.
  async function decide(one, answer) {
    try {
      if (answer === null) await api.confirm(one.answer_id, state.annotator);
      else {
        const told = await api.revise(one.answer_id, { answer, annotator: state.annotator });
        if (told.conflict) await dialog.conflict(told.conflict);
      }
      toast(S.saved, "good");
      await load();
      place.querySelector(".suspect button, .conflict button")?.focus();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  // Keys are about the answer that has the focus, else the first one.
  function keysDown(event) {
    if (event.key === "?") return dialog.keys(), true;
    const items = [...place.querySelectorAll(".suspect")];
    const at = document.activeElement?.closest(".suspect") ?? items[0];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) return items[items.indexOf(at) + step]?.querySelector("button").focus(), true;
    if (event.repeat) return false;
    const action = { k: "keep", f: "flip", u: "unsure" }[event.key.toLowerCase()];
    const pressed = action && at?.querySelector(`[data-action="${action}"]`);
    pressed?.click();
    return Boolean(pressed);
  }

  let working = false;
  const stopListening = onChange((kind) => (kind === "clusters" || (kind === "jobs" && working)) && !document.getElementById("dialog").open && load());
  load();
  return {
    keysDown,
    leave() {
      left = true;
      stopListening();
    },
  };
}
