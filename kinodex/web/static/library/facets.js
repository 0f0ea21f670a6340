// What the columns of videos hold, to choose from: each choice is a part of the condition that stands in a field.

import { el, labelled } from "viewer/shared/dom.js";
import { load } from "viewer/shared/source.js";
import { amount } from "viewer/shared/words.js";

const AND = " AND ";

/** The field of a condition as a label, its input, and the columns to choose from, folded unless one is chosen. */
export function whereField(key, where = "", columnsOf = load(`libraries/${key}/facets`), what = "videos") {
  const input = el("input", {
    type: "search",
    name: "where",
    value: where,
    maxlength: 2000,
    size: 34,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: what === "videos" ? "camera = 'front'" : null,
    title: `A condition in SQL on the columns of ${what}`,
  });
  const label = labelled(`only ${what} where`, input);
  const columns = el("div", { class: "facets" });
  const choices = el("details", { class: "filters", hidden: true, open: Boolean(where) }, el("summary", {}, `Which ${what}`), columns);

  function choose(change) {
    input.value = change(clauses(input.value)).join(AND);
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function offer({ facets }) {
    const draw = () => columns.replaceChildren(...facets.map((each) => facet(each, clauses(input.value), choose)));
    choices.hidden = !facets.length;
    draw();
    input.addEventListener("change", (event) => event.isTrusted && draw());
  }

  columnsOf.then(offer, () => null); // without columns a condition can still be written
  return { label, input, choices };
}

const clauses = (where) => where.split(AND).map((each) => each.trim()).filter(Boolean);

/** One column: a box for each of its values with the number of videos, or from where to where. */
function facet(column, held, choose) {
  const parts = column.values.length ? values(column, held, choose) : column.least !== null ? ends(column, held, choose) : [];
  if (!parts.length) return el("span", { hidden: true });
  return el("fieldset", {}, el("legend", {}, column.name), parts);
}

function values(column, held, choose) {
  const chosen = new Set(column.values.filter(({ text }) => isChosen(column, literal(column, text), held)).map(({ text }) => text));
  return column.values.map(({ text, videos }) =>
    el(
      "label",
      { class: "value" },
      el("input", {
        type: "checkbox",
        checked: chosen.has(text),
        onchange: (event) => {
          event.stopPropagation();
          if (event.target.checked) chosen.add(text);
          else chosen.delete(text);
          const literals = column.values.filter((each) => chosen.has(each.text)).map((each) => literal(column, each.text));
          choose((before) => [...before.filter((each) => !isOf(column, each)), ...oneOf(column, literals)]);
        },
      }),
      el("bdi", {}, text),
      el("span", { class: "quiet" }, amount(videos)),
    ),
  );
}

function ends(column, held, choose) {
  return [
    ["from", ">=", column.least],
    ["to", "<=", column.most],
  ].map(([name, sign, usual]) => {
    const start = `${column.sql} ${sign} `;
    const set = held.find((each) => each.startsWith(start))?.slice(start.length) ?? "";
    return el(
      "label",
      { class: "value" },
      el("span", { class: "quiet" }, name),
      el("input", {
        type: "text",
        placeholder: usual,
        value: set.replace(/^'|'$/g, ""),
        autocomplete: "off",
        "aria-label": `${column.name} ${name}`,
        onchange: (event) => {
          event.stopPropagation();
          const value = event.target.value.trim();
          choose((before) => [...before.filter((each) => !each.startsWith(start)), ...(value ? [start + literal(column, value)] : [])]);
        },
      }),
    );
  });
}

const oneOf = (column, literals) =>
  column.kind === "list"
    ? literals.map((each) => `array_has(${column.sql}, ${each})`)
    : literals.length > 1
      ? [`${column.sql} IN (${literals.join(", ")})`]
      : literals.map((each) => `${column.sql} = ${each}`);

const isOf = (column, clause) => [`${column.sql} IN (`, `${column.sql} = `, `array_has(${column.sql}, `].some((start) => clause.startsWith(start));

const isChosen = (column, written, held) =>
  held.some((each) => oneOf(column, [written]).includes(each) || (each.startsWith(`${column.sql} IN (`) && each.slice(0, -1).split(/ IN \(|, /).includes(written)));

/** A value as a condition has it. */
const literal = (column, text) => (column.kind === "number" ? text.toLowerCase() : `'${text.replaceAll("'", "''")}'`);
