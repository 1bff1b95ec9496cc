"use strict";
(() => {
  const form = document.querySelector("form.filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("tr[data-q],tr[data-l],tr[data-h],tr[data-f]")];
  const selects = [...form.querySelectorAll("select")];
  const said = form.querySelector("output");
  const ledger = rows.filter((row) => row.dataset.n);
  const total = Number(form.dataset.total);
  const count = (number) => number.toLocaleString("en");
  const fits = (row, select) => {
    const has = row.dataset[select.name];
    // A row that says nothing about it stays.
    return select.value === "" || has === undefined || has.split(" ").includes(select.value);
  };
  const apply = () => {
    const active = selects.some((select) => select.value !== "");
    for (const row of rows) row.hidden = !selects.every((select) => fits(row, select));
    for (const select of selects) select.classList.toggle("active", select.value !== "");
    const shown = ledger.filter((row) => !row.hidden);
    const sum = shown.reduce((all, row) => all + Number(row.dataset.n), 0);
    said.textContent = active
      ? `${count(sum)} of ${count(total)} messages fit, in ${count(shown.length)} rows of the ledger`
      : "";
    for (const part of document.querySelectorAll("[data-empty]")) {
      const own = [...part.querySelectorAll("tbody tr")];
      part.classList.toggle("empty", own.length > 0 && own.every((row) => row.hidden));
    }
  };
  for (const select of selects) select.addEventListener("change", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-set]");
    if (!link) return;
    const [name, value] = link.dataset.set.split("=");
    const select = selects.find((each) => each.name === name);
    if (!select) return;
    for (const each of selects) each.value = each === select ? value : "";
    apply();
  });
  form.hidden = false;
})();
