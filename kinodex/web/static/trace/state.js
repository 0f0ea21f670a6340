// The state of candidates after each round.

/** For each step a map of every segment's last score by then, with the step that gave it. */
export function scoresAt(steps) {
  let scores = new Map();
  return steps.map((step, at) => {
    const ranked = step.ranked.map((each) => [
      each.number,
      { number: each.number, reward: null, query_score: each.similarity, fused: each.similarity, explanation: "", at },
    ]);
    const scored = (step.scored?.candidates ?? []).map((each) => [each.number, { ...each, at }]);
    scores = new Map([...scores, ...ranked, ...scored]);
    return scores;
  });
}

const LEAST_WINDOW_S = 2;

/** The window of a time line around a segment with some room; null, all of it, without one. */
export function windowAround(node) {
  if (!node) return null;
  const margin = Math.max((node.end_s - node.start_s) * 0.1, LEAST_WINDOW_S / 2);
  return [node.start_s - margin, node.end_s + margin];
}

/** Segments that exist after a round. */
export const present = (nodes, round) => nodes.filter((node) => node.made_in <= round);

/** True if a segment is still undivided after a round. */
export const isOpen = (node, round) => node.opened_in === null || node.opened_in > round;
