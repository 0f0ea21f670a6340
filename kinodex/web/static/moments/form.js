// The form that asks when something happens: a text, a video, where to look, and who looks.

import { explained } from "viewer/ask/agents.js";
import { whereField } from "viewer/library/facets.js";
import { titleField } from "viewer/library/title_field.js";
import { el, labelled, select } from "viewer/shared/dom.js";
import { term } from "viewer/shared/terms.js";

const KINDS = { "": "pictures and words", frames: "pictures", words: "words said or written" };
/** Agents that look at no picture and read no line: they have no moments to show. */
const LOOK_AT_NOTHING = new Set(["blind", "random"]);

/**
 * A form filled with `fields`; `submit(fields)` gets those that are filled. `offer` is what the server says can be asked
 * of this library (null: nothing), and `videos` is true where a video can be chosen.
 */
export function momentsForm(key, fields, offer, submit, videos = true) {
  const text = el("input", {
    type: "search",
    name: "text",
    required: true,
    maxlength: 2000,
    placeholder: "what happens: a boat passes the bridge",
    autocomplete: "off",
  });
  const agents = offer?.agents.filter((each) => !LOOK_AT_NOTHING.has(each.name)) ?? [];
  const by = agents.length ? select({ name: "by", id: "moments-by" }, [["", "the search alone"], ...names(agents)]) : null;
  const kind = select({ name: "in" }, Object.entries(KINDS));
  const said = el("p", { class: "quiet", hidden: true });
  const where = videos ? whereField(key, fields.where) : null;
  const form = el(
    "form",
    {
      class: "search card pad moments-form",
      role: "search",
      "aria-label": "Find moments",
      onsubmit: (event) => (event.preventDefault(), submit(read(form))),
      onchange: () => say(),
    },
    labelled("What happens", text),
    labelled("look at", kind),
    by ? el("div", { class: "field" }, el("span", { class: "quiet" }, el("label", { for: "moments-by" }, "who looks"), " ", term("agent", "?")), by) : null,
    videos ? labelled("of video", ...titleField(key, "moments-titles")) : null,
    where?.label,
    el("button", { type: "submit", class: "plain strong" }, "Find moments"),
    where?.choices,
    said,
  );
  for (const [name, value] of Object.entries(fields)) if (form.elements[name]) form.elements[name].value = value;

  /** An agent decides for itself where to look; what it does, and what that takes, stands below. */
  function say() {
    const agent = agents.find((each) => each.name === by?.value);
    kind.disabled = Boolean(agent);
    said.hidden = !agent;
    if (agent) said.replaceChildren(`${explained(agent).plain} It asks a model, which takes longer than a search and may cost money.`);
  }
  say();
  return form;
}

const names = (agents) => agents.map((each) => [each.name, `the method ${each.name}`]);

const read = (form) => Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value));
