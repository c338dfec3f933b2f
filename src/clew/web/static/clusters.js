// Clusters: what is in them, what they are called, and corrections that hold for good.

import { api } from "./api.js";
import { card, percent, probability, tile } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, colourOf, fill, h, swatch, toast } from "./dom.js";
import { groupings } from "./groupings.js";
import { clustersNow, matching, nameOf, onChange, rowsOf, state } from "./state.js";
import { S } from "./strings.js";

const PAGE = 48;
// Of more clusters than this, the list shows the most doubtful first, with their typical rows in words, and can be searched.
const MANY = 40;
const LISTED = 100;
// Rows of clusters of at most this many are shown in full, beside each other.
const FEW = 6;
let lastOpen = null;

export function clusters(view) {
  const list = h("div", { class: "cluster-list", role: "listbox", "aria-label": S.clusters.title });
  const detail = h("div", { class: "cluster-detail" });
  const notes = h("div", {});
  const others = groupings(detail, (none) => {
    chosen = new Set();
    sheet = [];
    if (none === null) show(open, true);
    else drawList();
  });
  others.element.hidden = true;
  const search = h("input", { type: "search", class: "search", placeholder: S.clusters.search, "aria-label": S.clusters.search, hidden: true, oninput: () => ((most = LISTED), drawList()) });
  fill(view, h("section", { class: "clusters" }, h("div", {}, h("h1", {}, S.clusters.title), search, list, notes, others.element), detail));
  let all = [];
  let most = LISTED;
  let open = null;
  let chosen = new Set();
  let sheet = [];
  let left = false;

  async function load(wait) {
    if (all.length === 0) fill(list, h("p", { class: "hint" }, S.clusters.making));
    try {
      all = await clustersNow(wait);
      if (left) return;
      const isMany = all.length > MANY;
      search.hidden = !isMany;
      if (isMany) all.sort(byDoubt);
      if (!all.some((one) => one.id === open)) open = all.find((one) => one.id === lastOpen)?.id ?? all[0]?.id ?? null;
      drawList();
      await show(open, false);
      // Small groups have no other groupings.
      others.element.hidden = (await api.settings()).has_small_groups;
      if (!others.element.hidden) await others.load();
    } catch (error) {
      if (all.length === 0) fill(list);
      fill(detail, h("p", { class: "warning" }, error.message));
    }
  }

  function drawList() {
    const total = all.reduce((sum, one) => sum + one.size, 0) || 1;
    const largest = all.reduce((size, one) => Math.max(size, one.size), 1);
    const isMany = all.length > MANY;
    const found = matching(all, search.value);
    fill(notes, (state.progress?.notes ?? []).map((one) => h("p", { class: "hint" }, one)));
    fill(
      list,
      all.length === 0 ? h("p", { class: "hint" }, S.clusters.none) : null,
      (isMany ? found.slice(0, most) : all).map((one) =>
        h(
          "button",
          { type: "button", class: "cluster-item", role: "option", "aria-selected": String(one.id === open && !others.isOpen()), dataset: { cluster: one.id }, onclick: () => show(one.id, true) },
          h("span", { class: "cluster-name" }, swatch(one.id), nameOf(one.id)),
          isMany && one.title ? h("span", { class: "cluster-title", dir: "auto" }, one.title) : null,
          isMany ? h("span", { class: "count" }, sizeOf(one)) : h("span", { class: "count" }, S.clusters.size(one.size, `${Math.round((100 * one.size) / total)} %`)),
          isMany ? null : h("span", { class: "bar-track" }, h("span", { class: "bar-fill", style: { width: `${(100 * one.size) / largest}%`, "--colour": colourOf(one.id) } })),
        ),
      ),
      isMany && found.length === 0 ? h("p", { class: "hint" }, S.clusters.noMatch) : null,
      isMany && found.length > most ? button(S.clusters.moreOf(found.length - most), () => ((most += LISTED), drawList())) : null,
    );
  }

  async function show(id, fresh) {
    if (fresh) others.close();
    if (others.isOpen()) return;
    if (id === null) return fill(detail);
    const cluster = all.find((one) => one.id === id);
    if (fresh || open !== id) {
      chosen = new Set();
      sheet = [];
    }
    open = lastOpen = id;
    drawList();
    const field = h("input", { type: "text", value: cluster.name ?? "", placeholder: S.clusters.nameHint, maxlength: "200", "aria-label": S.clusters.name });
    const typical = h("div", { class: "tiles strip" });
    const borderline = h("div", { class: "tiles strip" });
    const isFew = cluster.size <= FEW;
    const rows = h("div", { class: isFew ? "tiles sheet few" : "tiles sheet" });
    const actions = h("div", { class: "actions" });
    const more = button(S.more, () => members(cluster, rows, more), {});
    fill(
      detail,
      h(
        "form",
        { class: "name", onsubmit: (event) => (event.preventDefault(), rename(id, field.value)) },
        swatch(id), field, h("button", { type: "submit" }, S.clusters.save),
        h("span", { class: "grow" }),
        button(S.clusters.merge, () => merge(id), { dataset: { action: "merge" } }),
        button(S.clusters.never, () => never(id), { dataset: { action: "never" } }),
      ),
      isFew ? null : [h("h2", {}, S.clusters.typical), typical, h("h2", {}, S.clusters.borderline), h("p", { class: "hint" }, S.clusters.borderlineHint), borderline],
      h("div", { class: "sheet-head" }, h("h2", {}, S.clusters.all), h("p", { class: "hint" }, S.clusters.sheetHint), actions),
      rows, more,
    );
    drawActions(actions, cluster);
    detail.redrawActions = () => drawActions(actions, cluster);
    try {
      const [first, second] = isFew ? [[], []] : [await rowsOf(cluster.typical), await rowsOf(cluster.borderline)];
      if (open !== id || left || others.isOpen()) return;
      fill(typical, first.map((row) => choosable(row)));
      fill(borderline, second.map((row) => choosable(row)));
      if (!sheet.length) await members(cluster, rows, more);
      else {
        fill(rows, tilesOf(cluster, await rowsOf(sheet)));
        more.hidden = sheet.length >= cluster.size;
      }
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async function members(cluster, place, more) {
    const [mine, from] = [sheet, sheet.length];
    const found = await api.members(cluster.id, from, PAGE);
    const rows = await rowsOf(found);
    // Another cluster was opened, this one was drawn again, or the same rows came twice.
    if (!place.isConnected || mine !== sheet || mine.length !== from) return;
    sheet.push(...found);
    place.append(...tilesOf(cluster, rows));
    more.hidden = sheet.length >= cluster.size || found.length === 0;
  }

  // Rows of a small cluster in full: the first two are compared with each other, any other with the first.
  const tilesOf = (cluster, rows) => rows.map((row, place) => choosable(row, cluster.size <= FEW ? card(row, rows[place === 0 ? 1 : 0]) : tile(row)));

  function choosable(row, content = tile(row)) {
    const key = String(row.id);
    const item = h("button", { type: "button", class: "tile choose", "aria-pressed": String(chosen.has(key)), dataset: { row: key } }, probability(row), content);
    item.addEventListener("click", () => {
      if (chosen.has(key)) chosen.delete(key);
      else chosen.add(key);
      for (const one of detail.querySelectorAll(".choose")) one.setAttribute("aria-pressed", String(chosen.has(one.dataset.row)));
      detail.redrawActions();
    });
    item.row = row.id;
    return item;
  }

  // Ids as the server knows them; what is chosen is kept as text.
  const chosenIds = () => [...new Map([...detail.querySelectorAll(".choose")].filter((one) => chosen.has(one.dataset.row)).map((one) => [one.dataset.row, one.row])).values()];

  function drawActions(place, cluster) {
    const none = chosen.size === 0;
    fill(
      place,
      h("span", { class: "hint" }, none ? "" : S.clusters.chosen(chosen.size)),
      button(S.clusters.takeOut, takeOut, { disabled: none, dataset: { action: "take-out" } }),
      button(S.clusters.moveTo, () => move(cluster.id), { disabled: none, dataset: { action: "move" } }),
      button(S.clusters.splitOff, () => made(dialog.correct(S.clusters.splitOff, { kind: "split", cluster: cluster.id, rows: chosenIds() })), { disabled: none || chosen.size >= cluster.size, dataset: { action: "split" } }),
    );
  }

  async function made(promise) {
    if (!(await promise)) return false;
    chosen = new Set();
    sheet = [];
    await load(true);
    return true;
  }

  async function rename(id, name) {
    try {
      await api.name(id, { name: name.trim(), annotator: state.annotator });
      await load(false);
      toast(S.saved, "good");
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async function merge(id) {
    const other = await dialog.pickCluster(S.clusters.merge, all, id);
    if (other !== null) await made(dialog.correct(`${nameOf(id)} + ${nameOf(other)}`, { kind: "merge", cluster: id, other }));
  }

  async function never(id) {
    const other = await dialog.pickCluster(S.clusters.never, all, id);
    if (other !== null) await made(dialog.correct(`${nameOf(id)} ≠ ${nameOf(other)}`, { kind: "never", clusters: [id, other] }));
  }

  const takeOut = () => made(dialog.correct(S.clusters.takeOut, ...chosenIds().map((row) => ({ kind: "move", row }))));

  async function move(id) {
    const other = await dialog.pickCluster(S.clusters.moveTo, all, id);
    if (other !== null) await made(dialog.correct(`${S.rows(chosen.size)} → ${nameOf(other)}`, ...chosenIds().map((row) => ({ kind: "move", row, cluster: other }))));
  }

  const stopListening = onChange((kind) => kind === "clusters" && !document.getElementById("dialog").open && chosen.size === 0 && load(false));
  load(false);
  return {
    keysDown(event) {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return false;
      const shown = all.length > MANY ? matching(all, search.value).slice(0, most) : all;
      const at = shown.findIndex((one) => one.id === open) + (event.key === "ArrowDown" ? 1 : -1);
      if (shown[at]) show(shown[at].id, true).then(() => list.querySelector("[aria-selected=true]")?.focus());
      return true;
    },
    leave() {
      left = true;
      stopListening();
    },
  };
}

// Groups of several rows first, the least probable first; then single rows.
function byDoubt(one, other) {
  const rank = (cluster) => (cluster.size > 1 ? cluster.probability ?? 1 : 2);
  return rank(one) - rank(other) || other.size - one.size || one.id - other.id;
}

const sizeOf = (one) => [S.rows(one.size), one.probability === null ? null : percent(one.probability)].filter(Boolean).join(" · ");
