// Other ways to group the rows: made on demand, kept under a name, shown beside the clusters.

import { api } from "./api.js";
import { tile } from "./cards.js";
import * as dialog from "./dialog.js";
import { button, colourOf, fill, h, swatch, toast } from "./dom.js";
import { nameOf, rowsOf, state } from "./state.js";
import { S } from "./strings.js";

const EXAMPLES = 6;
// Groups have the last colours of the palette and letters, so that nobody takes them for clusters.
const FIRST_COLOUR = 6;

// The list under the clusters. An open grouping fills `detail`; `onOpen` is called before that.
export function groupings(detail, onOpen) {
  const list = h("div", { class: "cluster-list", role: "listbox", "aria-label": S.groupings.title });
  const make = button(S.groupings.make, add, { dataset: { action: "regroup" } });
  const element = h("div", { class: "groupings" }, h("h2", {}, S.groupings.title), h("p", { class: "hint" }, S.groupings.hint), list, make);
  let all = [];
  let open = null;

  async function load() {
    try {
      all = await api.groupings();
    } catch (error) {
      return void toast(error.message, "error");
    }
    if (!all.some((one) => one.name === open)) open = null;
    draw();
  }

  function draw() {
    list.hidden = all.length === 0;
    fill(
      list,
      all.map((one) =>
        h(
          "button",
          { type: "button", class: "cluster-item", role: "option", "aria-selected": String(one.name === open), dataset: { grouping: one.name }, onclick: () => show(one) },
          h("span", { class: "cluster-name", dir: "auto" }, one.name),
          h("span", { class: "count" }, S.groupings.count(one.groups.length)),
        ),
      ),
    );
  }

  async function show(one) {
    open = one.name;
    onOpen();
    draw();
    const examples = one.groups.map(() => h("div", { class: "tiles strip" }));
    fill(
      detail,
      h(
        "div",
        { class: "name" },
        h("h2", { dir: "auto" }, one.name), h("span", { class: "grow" }),
        h("a", { class: "button", href: api.exportOf("groupings", "csv"), download: "groupings.csv" }, S.groupings.export),
        button(S.groupings.remove, () => remove(one), { dataset: { action: "remove-grouping" } }),
      ),
      h("p", {}, S.groupings.about(one.groups.length, one.annotator), " ", S.groupings.likeness(one.likeness)),
      overlap(one),
      one.groups.map((group, place) => [
        h("h3", { class: "cluster-name" }, swatch(group.id + FIRST_COLOUR), S.groupings.group(place), h("span", { class: "count" }, S.rows(group.size))),
        examples[place],
      ]),
    );
    try {
      for (const [place, group] of one.groups.entries()) {
        const rows = await rowsOf(group.typical.slice(0, EXAMPLES));
        if (open !== one.name) return;
        fill(examples[place], rows.filter(Boolean).map((row) => h("div", { class: "tile" }, tile(row))));
      }
    } catch (error) {
      toast(error.message, "error");
    }
  }

  // How many rows each group shares with each cluster.
  function overlap(one) {
    const head = h("tr", {}, h("th", { scope: "col" }, S.groupings.shared), one.clusters.map((cluster) => h("th", { scope: "col" }, nameOf(cluster))));
    const line = (counts, place) =>
      h("tr", {}, h("th", { scope: "row" }, S.groupings.group(place)), counts.map((n) => h("td", { class: "number", style: { "--share": `${Math.round((100 * n) / Math.max(one.groups[place].size, 1))}%`, "--colour": colourOf(one.groups[place].id + FIRST_COLOUR) } }, n.toLocaleString())));
    return h("div", { class: "overlap" }, h("table", { class: "log" }, h("thead", {}, head), h("tbody", {}, one.overlap.map(line))));
  }

  async function add() {
    const name = h("input", { type: "text", maxlength: "200", autofocus: true, placeholder: S.groupings.nameHint, "aria-label": S.groupings.name });
    const number = h("input", { type: "number", min: "2", max: "1000", "aria-label": S.groupings.number });
    const given = () => ({ name: name.value.trim() || null, n_clusters: number.value === "" ? null : Number(number.value) });
    const wanted = await dialog.ask(S.groupings.make, (choose) => {
      for (const field of [name, number]) field.onkeydown = (event) => event.key === "Enter" && choose(given());
      return [
        h("p", {}, S.groupings.explained),
        h("label", { class: "field" }, S.groupings.name, name),
        h("label", { class: "field" }, S.groupings.number, number),
        h("p", { class: "hint" }, S.groupings.numberHint),
      ];
    }, [[S.cancel, null], [S.groupings.find, given, "primary"]]);
    if (wanted === null) return;
    make.disabled = true;
    fill(make, S.working);
    try {
      const made = await api.regroup({ ...wanted, annotator: state.annotator });
      await load();
      await show(made);
    } catch (error) {
      toast(error.message, "error");
    }
    make.disabled = false;
    fill(make, S.groupings.make);
  }

  async function remove(one) {
    try {
      await api.removeGrouping({ name: one.name, annotator: state.annotator });
      toast(S.groupings.removed, "good");
      open = null;
      await load();
      onOpen(null);
    } catch (error) {
      toast(error.message, "error");
    }
  }

  return {
    element,
    load,
    isOpen: () => open !== null,
    close() {
      open = null;
      draw();
    },
  };
}
