// The palette: a dialog that goes to a flag or a page by its name. The server answers with the options.
const TYPING_MS = 120;
const WAIT_MS = 10000;
let link = null;
let dialog = null;
let timer = 0;
let newest = 0;
let shown = null; // the text whose options are there

async function ask(text) {
  const query = new URLSearchParams({ part: "yes", q: text });
  const answer = await fetch(`${link.href}?${query}`, { redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(WAIT_MS) });
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.text();
}

const part = (name) => dialog.querySelector(name);
const options = () => [...dialog.querySelectorAll("[role=option]")];
const chosen = () => part("[aria-selected=true]");

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  const field = part("input");
  field.setAttribute("aria-expanded", String(Boolean(option)));
  if (!option) return field.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function say(text) {
  part("[role=status]").textContent = text;
}

async function refresh() {
  const number = ++newest;
  const typed = part("input").value;
  try {
    const text = await ask(typed);
    if (number !== newest) return;
    const found = new DOMParser().parseFromString(text, "text/html").getElementById("palette-found");
    shown = typed;
    part("#palette-found").replaceWith(found);
    choose(options()[0]);
    say(found.dataset.said);
  } catch {
    if (number === newest) say("The server did not answer. Type again.");
  }
}

const STEPS = { ArrowDown: 1, ArrowUp: -1 };

async function press(event) {
  const all = options();
  if (event.key in STEPS && all.length) {
    event.preventDefault();
    choose(all.at((all.indexOf(chosen()) + STEPS[event.key]) % all.length));
  } else if (event.key === "Enter") {
    event.preventDefault();
    window.clearTimeout(timer);
    if (part("input").value !== shown) await refresh();
    if (part("input").value === shown) chosen()?.click();
  }
}

async function build() {
  const text = await ask("");
  dialog = document.createElement("dialog");
  dialog.className = "palette-dialog";
  dialog.setAttribute("aria-label", link.querySelector("span").textContent);
  dialog.innerHTML = `${text}<p role="status" class="soft"></p>`;
  dialog.addEventListener("keydown", press);
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(refresh, TYPING_MS);
  });
  document.body.append(dialog);
}

export async function open(from) {
  link = from;
  if (!dialog) await build();
  if (!dialog.open) dialog.showModal();
  part("input").select();
  await refresh();
}
