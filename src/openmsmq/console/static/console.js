"use strict";
// Looks at the page again every few seconds and puts in what has changed. Without it, pages show
// the same and stay as they are.
(() => {
  const EVERY_MS = 5000;
  const KEY = "openmsmq-live";
  const places = () => [...document.querySelectorAll("[data-live]")];
  const button = document.querySelector("button.live");
  const wanted = () => localStorage.getItem(KEY) !== "off";
  const show = () => {
    button.setAttribute("aria-pressed", String(wanted()));
    button.textContent = wanted() ? "Live" : "Paused";
  };
  const look = async () => {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" }, redirect: "error" });
    if (answer.status === 401) { location.assign("/sign-in"); return; }
    if (!answer.ok) return;
    const news = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const place of places()) {
      const fresh = news.getElementById(place.id);
      // Whoever is about to press something there keeps it.
      if (fresh && !place.contains(document.activeElement)) {
        place.replaceChildren(...document.importNode(fresh, true).childNodes);
      }
    }
  };
  if (button && places().length) {
    button.hidden = false;
    show();
    button.addEventListener("click", () => {
      localStorage.setItem(KEY, wanted() ? "off" : "on");
      show();
    });
    setInterval(() => {
      if (wanted() && document.visibilityState === "visible") look().catch(() => {});
    }, EVERY_MS);
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select");
    const find = document.getElementById("find");
    if (event.key === "/" && find && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      find.focus();
      find.select();
    }
  });
})();
