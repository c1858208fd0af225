// Each cell carries the heading of its column, which site.css shows where rows are stacked;
// long names in tables may be broken after an underscore or a dot.
for (const table of document.querySelectorAll("article table")) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr"))
    [...row.cells].forEach((cell, i) => heads[i] && (cell.dataset.head = heads[i]));
  for (const name of table.querySelectorAll("code span.pre"))
    name.innerHTML = name.textContent.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/[_.(=]/g, "$&<wbr>");
}
