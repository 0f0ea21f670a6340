// Looks for the moments of a text: by search alone, at once, or by an agent, whose progress is shown meanwhile.

import { follow } from "viewer/ask/events.js";
import { stateLine } from "viewer/ask/state_line.js";
import { tell } from "viewer/shared/dom.js";
import { load, send } from "viewer/shared/source.js";

/** What was found by search alone. */
export function bySearch(key, { text, video, in: kind, where }) {
  const query = new URLSearchParams({ text });
  if (video) query.set("videos", video);
  if (kind) query.set("in", kind);
  if (where) query.set("where", where);
  return load(`libraries/${key}/moments?${query}`);
}

/** Begins to ask an agent; the key of the question. */
export async function ask(key, { text, video, by, where }) {
  const { key: question } = await send(`libraries/${key}/moments`, { text, agent: by, videos: video ? [video] : [], where: where || null });
  return question;
}

/** The progress of a question as `element`, and `found`, a promise of what it found. */
export function byAgent(question) {
  const line = stateLine(() => send(`questions/${question}/stop`, {}).catch((error) => tell(error.message)));
  const found = new Promise((done, fail) => {
    const end = () => load(`questions/${question}/moments`).then(done, fail);
    line.begin();
    follow(question, {
      progress: line.show,
      state({ state, error, remedy }) {
        if (state === "stopping") line.stopping();
        if (state === "failed") fail(new Error(`There is no answer: ${error}. ${remedy ?? ""}`));
        if (state === "done") end();
      },
      waiting: line.waiting,
      gone: end,
    });
  }).finally(() => line.end());
  return { element: line.element, found };
}
