// SPDX-License-Identifier: Apache-2.0
// Push for SDKs in pages: the client asks again as soon as its flags may have changed. It polls as before.
//
//   import { follow } from "https://flags.example.com/api/frontend/live.js";
//   const stop = follow(client, { url, clientKey }); // the options of the client
//
// The tabs of a site share one stream: the tab that holds a lock has it, and tells the others. A hidden tab lets go of it.

const HIDDEN_MS = 60_000; // so long a hidden tab keeps its stream
const SILENT_MS = 45_000; // a stream that is silent for so long is broken
const FULL_MS = 30_000; // the wait where there is no room
const MAX_MS = 60_000; // the longest wait after failures
const AGAIN_MS = 6_000; // so long after a hint every replica behind a balancer has the change
const LATER_MS = 240_000; // the wait after an answer that is no stream: in a deploy, in a change of keys, where streams are off

const late = (ms) => ms * (1 + Math.random());
const backOff = (tries) => Math.min(MAX_MS, 1000 * 2 ** tries) * (0.5 + Math.random() / 2);

const sleep = (ms, signal) => new Promise((resolve) => {
  setTimeout(resolve, signal.aborted ? 0 : ms);
  signal.addEventListener("abort", resolve, { once: true });
});

// The name of the lock, which does not show the key. Empty where tabs cannot share, so that each has a stream of its own.
async function nameOf(...parts) {
  if (!navigator.locks || !globalThis.crypto?.subtle || !globalThis.BroadcastChannel) return "";
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(parts)));
  return `flags ${btoa(String.fromCharCode(...new Uint8Array(digest)))}`;
}

export function follow(client, { url, clientKey, headerName = "Authorization", customHeaders }) {
  const headers = { ...customHeaders, [headerName]: clientKey };
  const address = new URL(url, location.href);
  address.pathname = address.pathname.replace(/(\/all)?\/*$/, "/stream");
  const life = new AbortController();
  let session, channel, name, hiding; // a session lasts while the page is shown
  let heard, again; // the newest version, and the timer that asks again
  let leads = false, due = false, updating = false, told = false, tries = 0, retry = 1000;

  async function update() {
    due = true;
    if (updating) return;
    updating = true;
    for (let failures = 0; session && due; ) {
      const { signal } = session;
      due = false;
      const asked = Promise.resolve().then(() => client.updateToggles());
      if (!await asked.then(() => client.getError?.(), (error) => error)) { failures = 0; continue; }
      due = true;
      await sleep(backOff(++failures), signal);
    }
    updating = false;
  }

  function hear(version) {
    if (heard !== version) {
      heard = version;
      update();
      clearTimeout(again);
      again = setTimeout(update, late(AGAIN_MS));
    }
    if (leads) channel?.postMessage(version);
  }

  function read(line) {
    const [field, value] = line.split(": ");
    if (field === "retry") retry = Number(value) || retry;
    if (field === "id") [tries] = [0, hear(value)];
  }

  // Returns the milliseconds until the next attempt. Rejects if the connection fails.
  async function listen(signal) {
    const attempt = new AbortController(), end = () => attempt.abort();
    let timer = setTimeout(end, SILENT_MS);
    signal.addEventListener("abort", end);
    try {
      address.search = heard ? `?at=${heard}` : "";
      const answer = await fetch(address, { headers, cache: "no-store", signal: attempt.signal });
      if (answer.status === 429) return late(answer.headers.get("retry-after") * 1000 || FULL_MS);
      if (answer.status >= 500) return backOff(++tries);
      if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) {
        if (!told) console.info(`flags: no stream (${answer.status}), so the client only polls for now`);
        told = true;
        return late(LATER_MS);
      }
      const decoder = new TextDecoder(), reader = answer.body.getReader();
      for (let rest = "", part = {}; !part.done; part = await reader.read()) {
        clearTimeout(timer);
        timer = setTimeout(end, SILENT_MS);
        const lines = (rest + decoder.decode(part.value, { stream: true })).split("\n");
        rest = lines.pop();
        lines.forEach(read);
      }
      return retry;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      end();
    }
  }

  async function lead(signal) {
    for (leads = true; !signal.aborted; ) await sleep(await listen(signal).catch(() => backOff(++tries)), signal);
    leads = false;
  }

  async function open() {
    if (session || life.signal.aborted) return;
    session = new AbortController();
    const { signal } = session;
    name ??= await nameOf(address.href, headers).catch(() => "");
    if (!name || signal.aborted) return lead(signal);
    channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => { if (data) hear(data); else if (leads && heard) channel?.postMessage(heard); };
    channel.postMessage(""); // asks the others for the version
    await navigator.locks.request(name, { signal }, () => lead(signal)).catch(() => {}); // closed while it waited
  }

  function close() {
    clearTimeout(again);
    session?.abort();
    channel?.close();
    session = channel = heard = undefined;
  }

  async function turn() {
    clearTimeout(hiding);
    if (!document.hidden) return open();
    hiding = setTimeout(close, HIDDEN_MS);
    const { pending } = leads && name ? await navigator.locks.query() : { pending: [] };
    if (document.hidden && pending.some((each) => each.name === name)) close();
  }

  function stop() {
    life.abort();
    clearTimeout(hiding);
    close();
  }

  document.addEventListener("visibilitychange", turn, { signal: life.signal });
  for (const [type, act] of [["pagehide", close], ["pageshow", turn]]) addEventListener(type, act, { signal: life.signal });
  turn();
  return stop;
}
