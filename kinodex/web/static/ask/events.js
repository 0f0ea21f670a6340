// Events of one question as the server sends them; the browser takes up a connection that broke by itself.

const ENDED = ["done", "failed"];

/**
 * Follows a question; `on` holds `progress(facts)`, `state({state, error})`, `waiting()` while a broken connection is
 * taken up again, and `gone()` when it cannot be. Returns a function that ends it.
 */
export function follow(question, on) {
  const source = new EventSource(`/data/questions/${question}/events`);
  const close = () => source.close();
  source.addEventListener("progress", (event) => on.progress(JSON.parse(event.data)));
  source.addEventListener("state", (event) => {
    const facts = JSON.parse(event.data);
    if (ENDED.includes(facts.state)) close();
    on.state(facts);
  });
  source.addEventListener("error", () => (source.readyState === EventSource.CLOSED ? on.gone() : on.waiting()));
  window.addEventListener("hashchange", close, { once: true });
  return close;
}

/** A function that calls `work` at most once in `pause_ms`, and once more for calls in between; one runs at a time. */
export function seldom(work, pause_ms) {
  let running = false;
  let again = false;
  return async function call() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        await work();
        await new Promise((rest) => setTimeout(rest, pause_ms));
      } while (again);
    } finally {
      running = false;
    }
  };
}
