// The address of the view, so that a place can be bookmarked, sent, and found again after a reload.

const PAUSE_MS = 250;
let waiting = 0;

/** Puts a place into the address once the reader rests there: browsers refuse many changes. */
export function keep(place) {
  const before = location.hash;
  clearTimeout(waiting);
  waiting = setTimeout(() => location.hash === before && history.replaceState(null, "", place), PAUSE_MS);
}
