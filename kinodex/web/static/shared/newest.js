// Work that only its newest call needs: a search while somebody types.

/**
 * A function that runs `work` for its arguments and passes the result to `show`, an error to `fail`. One call runs at a
 * time; of those that come meanwhile only the last is run, and the results of older ones are dropped.
 */
export function newest(work, show, fail) {
  let calls = 0;
  let running = null;
  let waiting = null;

  async function run(mine, given) {
    try {
      const result = await work(...given);
      if (mine === calls) show(result, ...given);
    } catch (error) {
      if (mine === calls) fail(error, ...given);
    }
  }

  async function drain() {
    while (waiting) {
      const [mine, given] = waiting;
      waiting = null;
      await run(mine, given);
    }
    running = null;
  }

  const start = (...given) => {
    waiting = [(calls += 1), given];
    running ??= drain();
    return running;
  };
  /** What runs or waits is no longer shown. */
  start.forget = () => {
    calls += 1;
    waiting = null;
  };
  return start;
}
