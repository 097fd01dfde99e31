// What pages do beyond plain HTML: keys, local times, forms that change the page in place, and parts that follow changes.
"use strict";

// Moments in words, as times.py writes them, but in local time. The clock of the page is the server's.
const MINUTE_MS = 60000, HOUR_MS = 3600000, DAY_MS = 86400000, SLACK_MS = 5000, MOST_DAYS = 30;
const UNITS = [[HOUR_MS, MINUTE_MS, "minute"], [DAY_MS, HOUR_MS, "hour"]];
const AHEAD_MS = Number(document.body.dataset.now || Date.now() / 1000) * 1000 - Date.now();

function localText(moment) {
  return new Date(moment - moment.getTimezoneOffset() * MINUTE_MS).toISOString();
}

function counted(number, word, isPast) {
  const words = `${number} ${word}${number === 1 ? "" : "s"}`;
  return isPast ? `${words} ago` : `in ${words}`;
}

function inWords(moment, now) {
  const isPast = moment - now <= SLACK_MS, distance = Math.abs(now - moment);
  if (distance < MINUTE_MS) return isPast ? "just now" : "in a moment";
  for (const [limit, unit, word] of UNITS) if (distance < limit) return counted(Math.floor(distance / unit), word, isPast);
  const [day, time] = localText(moment).split("T");
  const days = Math.abs(Date.parse(day) - Date.parse(localText(now).slice(0, 10))) / DAY_MS;
  if (days === 1) return `${isPast ? "yesterday" : "tomorrow"}, ${time.slice(0, 5)}`;
  return days < MOST_DAYS ? counted(days, "day", isPast) : day;
}

function localTimes() {
  const now = new Date(Date.now() + AHEAD_MS);
  for (const each of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(each.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    const words = inWords(moment, now);
    if (each.textContent !== words) each.textContent = words;
    each.title = moment.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
}

// The hours of charts and of their tables in local time.
const LOCAL = {
  hour: (moment) => moment.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }).replace(":00", ""),
  moment: (moment) => moment.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }),
};

function localHours() {
  for (const each of document.querySelectorAll("[data-local]")) each.textContent = LOCAL[each.dataset.local](new Date(each.dataset.moment));
  for (const each of document.querySelectorAll("[data-zone]")) each.textContent = "local time";
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

// The palette. Its script is loaded when it is first wanted; without an answer, its page opens instead.
function openPalette(event) {
  const link = document.querySelector("[data-palette]");
  if (!link) return;
  event.preventDefault();
  import(link.dataset.palette).then((palette) => palette.open(link)).catch(() => window.location.assign(link.href));
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") openPalette(event);
});
document.addEventListener("click", (event) => {
  const wantsTab = event.ctrlKey || event.metaKey || event.shiftKey;
  if (!wantsTab && event.target.closest("[data-palette]")) openPalette(event);
});

// The code of a sign-in link is in the fragment, which no server sees. A button uses it up, so that no preview of the link does.
function takeCode() {
  const field = document.getElementById("token");
  if (field && window.location.hash.length > 1) {
    field.value = decodeURIComponent(window.location.hash.slice(1));
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
  }
}

// Nothing is silent. A button is busy until its answer comes, and takes no second press meanwhile. Without an answer, a sentence
// beside the button says so, and what was typed stays.
const WAIT_MS = 10000;
const SILENT = "the server did not answer. Try again.";
const ENDED = "your session has ended.";
const GATEWAY = [502, 504]; // what a proxy in front answers where the server does not

function wordsOf(button, reason) {
  return `${button?.matches(".switch") ? "Not switched" : "Not sent"}: ${reason} `;
}

function signInLink(inNewTab) {
  const link = document.createElement("a");
  link.href = `${document.body.dataset.pages}/sign-in?next=${encodeURIComponent(pageBelow())}`;
  link.textContent = inNewTab ? "Sign in in a new tab, and press again" : "Sign in";
  if (inNewTab) link.target = "_blank";
  return link;
}

function pageBelow() {
  return window.location.pathname.slice(document.body.dataset.pages.length) + window.location.search;
}

function say(button, form, reason) {
  unsay();
  const line = document.createElement("span");
  line.className = "problem unsent";
  line.setAttribute("role", "alert");
  line.append(wordsOf(button, reason), ...(reason === ENDED ? [signInLink(true)] : []));
  (button ?? form.lastElementChild).after(line);
}

function unsay() {
  document.querySelectorAll(".unsent").forEach((each) => each.remove());
}

function setBusy(button, is) {
  button?.toggleAttribute("data-busy", is);
  if (is) button?.setAttribute("aria-disabled", "true");
  else button?.removeAttribute("aria-disabled");
}

// Ask whether the server answers, and whether the session goes on. Returns the reason why a form cannot be sent; empty if it can.
async function obstacle() {
  try {
    const answer = await fetch(document.body.dataset.alive, { cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(WAIT_MS) });
    if (GATEWAY.includes(answer.status)) return SILENT;
    return answer.status === 401 || answer.type === "opaqueredirect" ? ENDED : "";
  } catch {
    return SILENT;
  }
}

// Send a form as its button does. The page that answers takes the place of this page; a file and another tab leave it.
function send(form, button) {
  const action = form.getAttribute("action");
  if (button && !("file" in form.dataset)) window.sessionStorage.setItem(PRESSED, JSON.stringify([goalOf(button), button.value]));
  const field = document.createElement("input");
  field.type = "hidden";
  if (button?.name) {
    field.name = button.name;
    field.value = button.value;
    form.append(field);
  }
  if (button?.hasAttribute("formaction")) form.action = button.formAction;
  form.target = button?.formTarget ?? "";
  form.submit();
  field.remove();
  form.setAttribute("action", action);
  if ("file" in form.dataset || form.target) setBusy(button, false);
  form.target = "";
}

// The page after a press has the focus at the button that was pressed, or at the one that takes its place, and says its notice aloud.
const PRESSED = "flagsvc-pressed", ALOUD_MS = 300;
const TURN = /\/(on|off|switch|up|down|deprecate|reactivate)$/;

function goalOf(button) {
  return button.hasAttribute("formaction") ? button.formAction : button.form.action;
}

function comeBack() {
  const [goal, value] = JSON.parse(window.sessionStorage.getItem(PRESSED) ?? "[]");
  window.sessionStorage.removeItem(PRESSED);
  if (!goal || window.location.hash || document.querySelector("[autofocus], main [role=alert]")) return;
  const buttons = [...document.querySelectorAll("main button:not([disabled])")].filter((each) => each.form);
  const near = buttons.filter((each) => goalOf(each).replace(TURN, "/") === goal.replace(TURN, "/"));
  const same = near.filter((each) => goalOf(each) === goal);
  (same.find((each) => each.value === value) ?? same[0] ?? near[0])?.focus();
  sayAloud(document.querySelector("#notice .done span"));
}

function sayAloud(notice) {
  if (!notice) return;
  const aloud = document.createElement("p");
  aloud.className = "hidden";
  aloud.setAttribute("role", "status");
  document.querySelector("main").append(aloud);
  window.setTimeout(() => { aloud.textContent = notice.innerText; }, ALOUD_MS);
}

document.addEventListener("submit", async (event) => {
  const { target: form, submitter: button } = event;
  if (button?.hasAttribute("data-busy")) {
    event.preventDefault();
    event.stopImmediatePropagation();
  } else if ((form.method === "post" || button?.matches(".switch")) && !form.closest(".who")) {
    unsay();
    setBusy(button, true);
    if (form.dataset.hxBoost || !document.body.dataset.alive) return;
    event.preventDefault();
    const reason = await obstacle();
    if (reason) {
      setBusy(button, false);
      say(button, form, reason);
    } else {
      send(form, button);
    }
  }
}, true);

// A button may change a part of the page by itself. What was typed stays.
const buttonOf = (part, event) => (part.matches("button") ? part : event?.submitter);
const isPressed = (part) => part.matches("button") || Boolean(part.dataset.hxBoost);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-hx-post]");
  if (button?.hasAttribute("data-busy")) {
    event.preventDefault();
    event.stopImmediatePropagation();
  } else if (button) {
    unsay();
    setBusy(button, true);
  }
}, true);

// A theme counts at once. The cookie of the answer keeps it for other pages.
document.addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (!form.matches(".theme")) return;
  event.preventDefault();
  const sent = new FormData(form, button);
  document.documentElement.dataset.theme = button.value;
  form.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
  fetch(form.action, { method: "POST", body: new URLSearchParams(sent), redirect: "manual" }).catch(() => {});
});

// Copy what a button names. The button is shown where the browser can copy.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const word = button.querySelector("span");
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    word.textContent = "Copied";
  } catch {
    word.textContent = "Not copied: select the text";
  }
});

function showCopying(root) {
  if (navigator.clipboard) root.querySelectorAll("[data-copy]").forEach((each) => { each.hidden = false; });
}

document.addEventListener("htmx:finally:request", (event) => {
  const { sourceElement: part, sourceEvent } = event.detail.ctx;
  setBusy(buttonOf(part, sourceEvent), false);
});
window.addEventListener("pageshow", () => document.querySelectorAll("[data-busy]").forEach((each) => setBusy(each, false)));

function reconnecting(is) {
  const strip = document.getElementById("connection");
  const text = is ? "Reconnecting: the server does not answer, and this page may be old." : "";
  if (strip && !strip.querySelector("a") && strip.textContent !== text) strip.textContent = text;
}

document.addEventListener("htmx:error", (event) => {
  const { sourceElement: part, sourceEvent, response } = event.detail.ctx ?? {};
  if (!part || response) return;
  if (isPressed(part)) say(buttonOf(part, sourceEvent), part, SILENT);
  else reconnecting(true);
});

// Events tell what has changed; a part with such a trigger then asks for its page again. Without a stream, it asks every 5 s.
const EVENTS = ["revision", "arrived", "second"];
const QUIET_MS = 20000; // the server says something every 15 s
let stream = null;
let polling = 0;
let heard = 0;

function tell(name) {
  document.body.dispatchEvent(new CustomEvent(`live-${name}`));
}

function tellAll() {
  EVENTS.forEach(tell);
}

// A browser opens a broken stream again by itself, but neither a refused one (503: too many are open) nor one that says nothing.
function pollOnce() {
  tellAll();
  if (stream.readyState !== EventSource.CONNECTING) openStream();
}

function poll(wanted) {
  window.clearInterval(polling);
  polling = wanted ? window.setInterval(pollOnce, 5000) : 0;
}

function hear() {
  window.clearTimeout(heard);
  heard = window.setTimeout(() => { if (!polling) poll(true); }, QUIET_MS);
}

function openStream() {
  stream?.close();
  stream = new EventSource(document.body.dataset.live);
  for (const name of EVENTS) stream.addEventListener(name, () => { hear(); tell(name); });
  stream.addEventListener("beat", hear);
  stream.addEventListener("open", () => { hear(); if (polling) tellAll(); poll(false); reconnecting(false); });
  stream.addEventListener("error", () => { if (!polling) poll(true); });
}

function follow() {
  stream?.close();
  window.clearTimeout(heard);
  poll(false);
  if (!document.hidden) openStream();
}

// An answer without the part is an error, or the sign-in. It changes nothing, and the page says that the session has ended. A form
// that did nothing by another error is sent again, without this script, so that the page of the error is seen.
document.addEventListener("htmx:after:request", (event) => {
  const { sourceElement: part, sourceEvent, response, text } = event.detail.ctx;
  const target = (part.dataset.hxTarget ?? "").slice(1) || part.id;
  const status = response.raw.status;
  if (!isPressed(part)) reconnecting(status >= 500);
  if (!part.dataset.hxSelect || text.includes(`id="${target}"`)) return;
  event.preventDefault();
  if (isPressed(part) && (status === 401 || GATEWAY.includes(status))) {
    say(buttonOf(part, sourceEvent), part, status === 401 ? ENDED : SILENT);
  } else if (isPressed(part)) {
    send(part.closest("form"), buttonOf(part, sourceEvent));
  } else if (response.raw.redirected) {
    poll(false);
    stream?.close();
    document.getElementById("connection").replaceChildren("Your session has ended. ", signInLink(false));
  }
});

if (document.body.dataset.live) {
  follow();
  document.addEventListener("visibilitychange", () => { follow(); if (!document.hidden) tellAll(); });
  window.addEventListener("pagehide", () => stream?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) { follow(); tellAll(); } });
}

// Flags of the list that are ticked: how many, all of the page at once, and still ticked after the list was fetched again.
const TICKS = "#list [type=checkbox][form=ticked]";
const ticked = new Set();

function countTicked() {
  const boxes = [...document.querySelectorAll(`${TICKS}[name=flag]`)];
  const count = boxes.filter((each) => each.checked).length;
  const all = document.querySelector("[data-all]");
  const words = document.querySelector("#ticked b");
  const whole = document.querySelector(`${TICKS}[name=all]:checked`);
  if (words) words.textContent = whole ? "All flags that fit" : `${count} flag${count === 1 ? "" : "s"} ticked`;
  if (!all) return;
  all.hidden = false;
  all.checked = count > 0 && count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
}

function tickAgain() {
  for (const each of document.querySelectorAll(TICKS)) each.checked = ticked.has(each.value);
  countTicked();
}

document.addEventListener("change", ({ target }) => {
  const changed = target.matches("[data-all]") ? document.querySelectorAll(`${TICKS}[name=flag]`) : target.matches(TICKS) ? [target] : [];
  for (const each of changed) {
    each.checked = target.checked;
    if (each.checked) ticked.add(each.value);
    else ticked.delete(each.value);
  }
  if (changed.length) countTicked();
});

window.addEventListener("pageshow", () => {
  document.querySelectorAll("[data-busy]").forEach((each) => setBusy(each, false));
  for (const each of document.querySelectorAll(`${TICKS}:checked`)) ticked.add(each.value);
  countTicked();
});

// A panel over the page closes by Escape, and by a click beside it.
document.addEventListener("click", ({ target }) => closePanels((each) => !each.contains(target)));
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") closePanels(() => true); });

function closePanels(which) {
  for (const each of [...document.querySelectorAll("details.drop[open]")].filter(which)) {
    if (each.contains(document.activeElement)) each.querySelector("summary").focus();
    each.open = false;
  }
}

// On a phone the sections are a row that scrolls.
function showSection() {
  const here = document.querySelector(".side [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetWidth / 2;
}

function finish() {
  localTimes();
  localHours();
  showCopying(document);
}

showSection();
takeCode();
comeBack();
document.addEventListener("htmx:after:swap", () => { finish(); tickAgain(); });
finish();
window.setInterval(localTimes, 20000);
