// What pages do beyond plain HTML: keys, local times, forms that change the page in place, and parts that follow changes.
"use strict";

function localTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(each.dateTime);
    if (!Number.isNaN(moment.valueOf())) {
      each.title = each.dateTime;
      const time = moment.toLocaleTimeString().replaceAll(" ", "\u00a0"); // a line does not end before "PM"
      each.textContent = `${moment.toLocaleDateString()} ${time}`;
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

// Events tell what has changed; a part with such a trigger then asks for its page again. Without a stream, it asks every 5 s.
const EVENTS = ["revision", "arrived", "second"];
let stream = null;
let polling = 0;

function tell(name) {
  document.body.dispatchEvent(new CustomEvent(`live-${name}`));
}

function tellAll() {
  EVENTS.forEach(tell);
}

// A browser opens a broken stream again by itself, but not one that was refused (503: too many are open).
function pollOnce() {
  tellAll();
  if (stream.readyState === EventSource.CLOSED) openStream();
}

function poll(wanted) {
  window.clearInterval(polling);
  polling = wanted ? window.setInterval(pollOnce, 5000) : 0;
}

function openStream() {
  stream = new EventSource(document.body.dataset.live);
  for (const name of EVENTS) stream.addEventListener(name, () => tell(name));
  stream.addEventListener("open", () => { if (polling) tellAll(); poll(false); });
  stream.addEventListener("error", () => { if (!polling) poll(true); });
}

function follow() {
  stream?.close();
  poll(false);
  if (!document.hidden) openStream();
}

// An answer without the part is an error, or the sign-in. It changes nothing, and the page goes to the sign-in. A form that did
// nothing by that is sent again, without this script, so that the page of the error is seen.
document.addEventListener("htmx:after:request", (event) => {
  const { sourceElement: part, response, text } = event.detail.ctx;
  const target = (part.dataset.hxTarget ?? "").slice(1) || part.id;
  if (!part.dataset.hxSelect || text.includes(`id="${target}"`)) return;
  event.preventDefault();
  if (part.dataset.hxBoost) {
    part.action = event.detail.ctx.sourceEvent.submitter.formAction;
    part.submit();
  } else if (response.raw.redirected) {
    window.location.reload();
  }
});

if (document.body.dataset.live) {
  follow();
  document.addEventListener("visibilitychange", () => { follow(); if (!document.hidden) tellAll(); });
  window.addEventListener("pagehide", () => stream?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) { follow(); tellAll(); } });
}

takeCode();
document.addEventListener("htmx:after:swap", () => localTimes(document));
localTimes(document);
