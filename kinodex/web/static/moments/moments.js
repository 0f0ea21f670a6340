// When does something happen: a form, and the moments of a library; the address holds the fields and the question.

import { fieldsOf, momentsAddress } from "viewer/moments/address.js";
import { ask, byAgent, bySearch } from "viewer/moments/find.js";
import { momentsForm } from "viewer/moments/form.js";
import { result, verdict } from "viewer/moments/result.js";
import { el } from "viewer/shared/dom.js";
import { lookButton } from "viewer/shared/look.js";

/** The form and the place of its result as `elements`, for the library's page; `filled` is a promise of the result. */
export function moments(key, inner, there) {
  const place = (fields) => history.pushState(null, "", momentsAddress(key, fields));
  return finder(key, fieldsOf(inner), there, place, { where: ({ video }) => (video ? `“${video}”` : "these videos") });
}

/**
 * The same for any page. `keep(fields)` puts a search into the address; `of` holds `where(fields)`, the words for what is
 * searched, and for the page of one video its id as `video`, `seek(time)` and `drawn(found)`.
 */
export function finder(key, fields, there, keep, of) {
  const status = el("div", { class: "moments-status", role: "status" });
  const progress = el("div");
  const shown = el("div", { class: "moments" });
  let searches = 0;

  const say = (...parts) => status.replaceChildren(...parts.filter(Boolean));

  function draw(found, asked) {
    const all = [...found.ranges, ...found.weaker];
    const looked = (claim) => draw({ ...found, claim, ranges: all.filter((each) => each.present !== false), weaker: all.filter((each) => each.present === false) }, asked);
    const look = found.by === "search" ? lookButton(key, there?.serve?.looks, found.text, all, looked) : null;
    say(verdict(found, of.where(asked)), look);
    shown.replaceChildren(...result(key, found, asked, of.seek));
    of.drawn?.(found);
  }

  async function find(asked) {
    const mine = (searches += 1);
    const wanted = of.video ? { ...asked, video: of.video } : asked;
    shown.replaceChildren();
    progress.replaceChildren();
    say(el("p", { class: "quiet" }, "Looking…"));
    try {
      const found = asked.by ? await agents(asked, wanted, mine) : await bySearch(key, wanted);
      if (mine !== searches) return;
      draw(found, asked);
    } catch (error) {
      if (mine !== searches) return;
      say();
      shown.replaceChildren(el("div", { class: "banner", role: "alert" }, error.message));
    } finally {
      if (mine === searches) progress.replaceChildren();
    }
  }

  /** Follows the question of the address, or begins one, and puts it there: a reload goes on with it. */
  async function agents(asked, wanted, mine) {
    const question = asked.question ?? (await ask(key, wanted));
    if (mine !== searches) return null;
    keep({ ...asked, question });
    const followed = byAgent(question);
    progress.replaceChildren(followed.element);
    return followed.found;
  }

  const form = momentsForm(key, fields, there?.serve, (asked) => (asked.by ? null : keep(asked), find(asked)), !of.video);
  const filled = fields.text ? find(fields) : null;
  return { elements: [form, status, progress, shown], form, filled };
}
