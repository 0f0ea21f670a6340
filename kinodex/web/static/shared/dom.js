// Elements with text as text: nothing here or in another module reads a string as HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `properties` are attributes, event listeners (onclick), or `style` as CSS properties. */
export function el(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function svg(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** A button; `properties` may give it another class, a title or a name. */
export const button = (shown, onclick, properties = {}) =>
  el("button", { type: "button", class: "plain", onclick, ...properties }, shown);

/** A choice of `[value, shown]` pairs, one of which may be chosen already. */
export const select = (properties, pairs, chosen) =>
  el("select", properties, pairs.map(([value, shown]) => el("option", { value, selected: `${value}` === `${chosen}` }, shown)));

/** A field with its name in small letters. */
export const labelled = (name, ...field) => el("label", {}, el("span", { class: "quiet" }, name), ...field);

/** Puts the first `most` of some items into a list; gives a button that adds the rest, or null where there is none. */
export function listed(list, items, most, words) {
  list.append(...items.slice(0, most));
  const rest = items.slice(most);
  if (!rest.length) return null;
  const more = button(words(rest.length), () => {
    list.children[most - 1].after(...rest);
    more.remove();
    rest[0].querySelector("a, button")?.focus();
  });
  return more;
}

/** A name that may break after its signs, before it has to within a word. */
export const breakable = (name) => name.split(/(?<=[_./-])/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));

/** Says something for a moment, to eyes and to screen readers. */
export function tell(text) {
  const note = el("div", { class: "toast", role: "status" }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), 2500);
}

/** A button that copies a position; it shows the time alone. */
export const copier = (position, shown) =>
  button([copySign(), shown], () => copy(position), { class: "chip", title: `Copy ${position}` });

const copySign = () =>
  svg("svg", { class: "icon", viewBox: "0 0 12 12", "aria-hidden": "true" }, svg("path", { d: "M4 4V1h7v7H8M1 4h7v7H1z" }));

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`Copied: ${text}`);
  } catch {
    tell(`This browser does not let a page copy: ${text}`);
  }
}
