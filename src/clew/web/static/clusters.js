// Clusters: what is in them, what they are called, and corrections that hold for good.

import { api } from "./api.js";
import { probability, tile } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, colourOf, fill, h, swatch, toast } from "./dom.js";
import { groupings } from "./groupings.js";
import { clustersNow, nameOf, onChange, rowsOf, state } from "./state.js";
import { S } from "./strings.js";

const PAGE = 48;
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
  fill(view, h("section", { class: "clusters" }, h("div", {}, h("h1", {}, S.clusters.title), list, notes, others.element), detail));
  let all = [];
  let open = null;
  let chosen = new Set();
  let sheet = [];
  let left = false;

  async function load(wait) {
    if (all.length === 0) fill(list, h("p", { class: "hint" }, S.clusters.making));
    try {
      all = await clustersNow(wait);
      if (left) return;
      if (!all.some((one) => one.id === open)) open = all.find((one) => one.id === lastOpen)?.id ?? all[0]?.id ?? null;
      drawList();
      await show(open, false);
      await others.load();
    } catch (error) {
      if (all.length === 0) fill(list);
      fill(detail, h("p", { class: "warning" }, error.message));
    }
  }

  function drawList() {
    const total = all.reduce((sum, one) => sum + one.size, 0) || 1;
    const most = Math.max(...all.map((one) => one.size), 1);
    fill(notes, (state.progress?.notes ?? []).map((one) => h("p", { class: "hint" }, one)));
    fill(
      list,
      all.length === 0 ? h("p", { class: "hint" }, S.clusters.none) : null,
      all.map((one) =>
        h(
          "button",
          { type: "button", class: "cluster-item", role: "option", "aria-selected": String(one.id === open && !others.isOpen()), dataset: { cluster: one.id }, onclick: () => show(one.id, true) },
          h("span", { class: "cluster-name" }, swatch(one.id), nameOf(one.id)),
          h("span", { class: "count" }, S.clusters.size(one.size, `${Math.round((100 * one.size) / total)} %`)),
          h("span", { class: "bar-track" }, h("span", { class: "bar-fill", style: { width: `${(100 * one.size) / most}%`, "--colour": colourOf(one.id) } })),
        ),
      ),
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
    const rows = h("div", { class: "tiles sheet" });
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
      h("h2", {}, S.clusters.typical), typical,
      h("h2", {}, S.clusters.borderline), h("p", { class: "hint" }, S.clusters.borderlineHint), borderline,
      h("div", { class: "sheet-head" }, h("h2", {}, S.clusters.all), h("p", { class: "hint" }, S.clusters.sheetHint), actions),
      rows, more,
    );
    drawActions(actions, cluster);
    detail.redrawActions = () => drawActions(actions, cluster);
    try {
      const [first, second] = [await rowsOf(cluster.typical), await rowsOf(cluster.borderline)];
      if (open !== id || left || others.isOpen()) return;
      fill(typical, first.map((row) => choosable(row)));
      fill(borderline, second.map((row) => choosable(row)));
      if (!sheet.length) await members(cluster, rows, more);
      else {
        fill(rows, (await rowsOf(sheet)).map((row) => choosable(row)));
        more.hidden = sheet.length >= cluster.size;
      }
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async function members(cluster, place, more) {
    const found = await api.members(cluster.id, sheet.length, PAGE);
    sheet.push(...found);
    const rows = await rowsOf(found);
    place.append(...rows.map((row) => choosable(row)));
    more.hidden = sheet.length >= cluster.size || found.length === 0;
  }

  function choosable(row) {
    const key = String(row.id);
    const item = h("button", { type: "button", class: "tile choose", "aria-pressed": String(chosen.has(key)), dataset: { row: key } }, probability(row), tile(row));
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
      const at = all.findIndex((one) => one.id === open) + (event.key === "ArrowDown" ? 1 : -1);
      if (all[at]) show(all[at].id, true).then(() => list.querySelector("[aria-selected=true]")?.focus());
      return true;
    },
    leave() {
      left = true;
      stopListening();
    },
  };
}
