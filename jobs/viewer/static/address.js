// The address says where the reader is, so that a place can be kept, sent, and is there again after a reload.

const PAUSE_MS = 250;
let waiting = 0;

/** Puts a place of the view on the page into the address once the reader rests there: browsers refuse many changes. */
export function keep(place) {
  const before = location.hash;
  clearTimeout(waiting);
  waiting = setTimeout(() => location.hash === before && history.replaceState(null, "", place), PAUSE_MS);
}
