// A click on a column's head sorts its table by it, and a second one the other way round.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending" || (column === 0 && !head.hasAttribute("aria-sort"));
      const value = (row) => row.cells[column].dataset.value;
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === undefined || y === undefined) {
          return (x === undefined) - (y === undefined);
        }
        const difference = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return up ? difference : -difference;
      };
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    });
  });
}
