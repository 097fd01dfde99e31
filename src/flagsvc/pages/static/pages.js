// What pages do beyond plain HTML: keys, local times, and forms that change the page in place.
"use strict";

function localTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(each.dateTime);
    if (!Number.isNaN(moment.valueOf())) {
      each.title = each.dateTime;
      each.textContent = moment.toLocaleString();
    }
  }
}

function isTyping(target) {
  return target.closest("input, select, textarea, [contenteditable]") !== null;
}

const GOES_TO = { f: "/flags", h: "/history", t: "/try", s: "/segments" };
let afterG = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const search = document.getElementById("search");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  } else if (afterG && event.key in GOES_TO) {
    const home = document.querySelector("a.brand");
    window.location.assign(home.getAttribute("href") + GOES_TO[event.key]);
  }
  afterG = event.key === "g";
});

// The code of a sign-in link is in the fragment, which no server sees. A button uses it up, so that no preview of the link does.
function takeCode() {
  const field = document.getElementById("token");
  if (field && window.location.hash.length > 1) {
    field.value = decodeURIComponent(window.location.hash.slice(1));
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }
}

takeCode();
document.addEventListener("htmx:after:swap", () => localTimes(document));
localTimes(document);
