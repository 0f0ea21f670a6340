// Positions in sorted rows, found by halving: videos have tens of thousands of them.

/** The first position whose value by `of` is at least `wanted`. */
export function firstFrom(rows, wanted, of = (each) => each) {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(rows[middle]) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The position of the number nearest to `wanted`; -1 of none. */
export function nearest(numbers, wanted) {
  const at = firstFrom(numbers, wanted);
  if (at === 0) return numbers.length ? 0 : -1;
  return at < numbers.length && numbers[at] - wanted < wanted - numbers[at - 1] ? at : at - 1;
}
