// Adds to pages that are complete without it: copy buttons, and the old page dimmed while the next one loads.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  // navigator.clipboard is absent on plain http from another host; the selection of a text box still works there.
  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const box = document.createElement("textarea");
    box.value = text;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    await copy(button.dataset.copy);
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  });

  // A menu closes when something else is touched, or with Escape.
  const close = (except) => document.querySelectorAll("details.more[open]").forEach((menu) => menu !== except && menu.removeAttribute("open"));
  document.addEventListener("click", (event) => close(event.target.closest("details.more")));
  document.addEventListener("keydown", (event) => event.key === "Escape" && close(null));

  const leave = () => root.classList.add("leaving");
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const plain = !event.defaultPrevented && event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (!link || !plain || link.target || link.hasAttribute("download") || link.dataset.file !== undefined) return;
    const href = link.href.baseVal ?? link.href;
    const to = new URL(href, location.href);
    if (to.origin === location.origin && (to.pathname !== location.pathname || to.search !== location.search)) leave();
  });
  document.addEventListener("submit", leave);
  window.addEventListener("pageshow", () => root.classList.remove("leaving"));
})();
