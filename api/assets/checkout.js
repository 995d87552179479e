// The checkout page's comfort: live status, Keychain, copying, the way back. Everything else works without it.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const page = () => $("page").dataset;
  const words = (phrase, name, value) => phrase.replace("{" + name + "}", () => value);

  // A page that would show something else is fetched and put in place of this one, and told once.
  let busy = false;
  async function show(live) {
    if (busy || live.version === page().version) return;
    busy = true;
    try {
      const answer = await fetch(page().reload, { headers: { accept: "text/html" }, cache: "no-store" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = fresh.getElementById("page");
      if (!next) return;
      const held = $("page").contains(document.activeElement);
      $("page").replaceWith(next);
      document.title = fresh.title;
      $("live").textContent = live.headline + ". " + live.message;
      if (held) $("headline").focus();
      begin();
    } catch { /* the next event or turn tries again */ } finally {
      busy = false;
    }
  }

  async function ask() {
    try {
      const { path, query } = page();
      const token = new URLSearchParams(page().reload.split("?")[1]).get("t");
      const answer = await fetch(path + "/status" + query + (token ? "&t=" + token : ""), { cache: "no-store" });
      if (answer.ok) await show(await answer.json());
    } catch { /* the next turn asks again */ }
  }

  // Live status: a stream where the browser has one, asking again where not.
  let events = null;
  let polling = false;
  function poll() {
    if (page().live !== "true") { polling = false; return; }
    polling = true;
    ask();
    setTimeout(poll, document.hidden ? 30000 : 3000);
  }
  function listen() {
    if (page().live !== "true") {
      if (events) events.close();
      return;
    }
    if (events || polling) return;
    if (!window.EventSource) return poll();
    events = new EventSource(page().path + "/events" + page().query);
    let failures = 0;
    events.addEventListener("status", (event) => { failures = 0; show(JSON.parse(event.data)); });
    events.onerror = () => {
      ask();
      failures += 1;
      if (failures >= 3 && !polling) { events.close(); poll(); }
    };
  }

  // Keychain: the extension may arrive a little after the page.
  const reveal = () => {
    if (!$("keychain") || !window.hive_keychain) return;
    $("keychain").hidden = false;
    $("keychain-missing").hidden = true;
  };
  window.addEventListener("hive-keychain-loaded", reveal);
  for (let wait = 0; wait <= 2000; wait += 200) setTimeout(reveal, wait);
  setTimeout(() => { if ($("keychain") && !window.hive_keychain) $("keychain-missing").hidden = false; }, 2100);

  function pay() {
    const button = $("keychain-pay");
    const want = button.dataset;
    const payer = $("payer");
    const say = (text) => { if ($("answer")) $("answer").textContent = text; };
    if (payer && !payer.value.trim()) {
      say(payer.dataset.need);
      payer.focus();
      return;
    }
    // A second request would replace the first, so there is none while one is open.
    button.disabled = true;
    say(want.confirm);
    const done = (answer) => {
      if (answer.success) {
        say(answer.result && answer.result.isUsingMultisig ? want.more : want.sent);
        ask();
        return;
      }
      button.disabled = false;
      if (answer.error === "pending_multisig") return say(want.more);
      const why = answer.error === "user_cancel" || answer.error === "ignored" ? "" : answer.message;
      say(want.nothing + (why ? " " + words(want.refused, "why", why) : ""));
    };
    try {
      if (!payer) {
        window.hive_keychain.requestTransfer(null, want.to, want.amount, want.memo, want.currency, done, false);
        return;
      }
      const from = payer.value.trim().replace(/^@/, "").toLowerCase();
      const fee = payer.dataset;
      const transfer = (to, amount, memo) => ["transfer", { from, to, amount, memo }];
      const both = [transfer(want.to, fee.net, want.memo), transfer(fee.feeTo, fee.fee, fee.feeMemo)];
      window.hive_keychain.requestBroadcast(from, both, "Active", done);
    } catch (error) {
      done({ success: false, message: String(error) });
    }
  }

  // The last five minutes are counted; the count ends 15 s early, for the ledger needs a block.
  let ends = 0;
  let ticker = 0;
  function tick() {
    const left = Math.floor((ends - performance.now()) / 1000);
    const box = $("countdown");
    if (box && left <= 315) {
      const shown = Math.max(0, left - 15);
      const time = Math.floor(shown / 60) + ":" + String(shown % 60).padStart(2, "0");
      box.hidden = false;
      box.textContent = shown > 0 ? words(box.dataset.words, "time", time) : box.dataset.over;
    }
    if (left < 0 && page().live === "true") ask();
    if (box) ticker = setTimeout(tick, left < 0 ? 5000 : 1000);
  }

  // Back to the shop after some seconds, unless the customer stays.
  let leaving = 0;
  function lead() {
    const onward = $("onward");
    if (!onward || !onward.dataset.seconds) return;
    const notice = $("onward-notice");
    $("onward-box").hidden = false;
    notice.textContent = words(onward.dataset.words, "seconds", onward.dataset.seconds);
    leaving = setTimeout(() => location.assign(onward.href), onward.dataset.seconds * 1000);
    $("onward-stay").addEventListener("click", () => {
      clearTimeout(leaving);
      $("onward-box").hidden = true;
      onward.focus();
    });
  }

  // What a page needs once it is in place.
  function begin() {
    clearTimeout(ticker);
    clearTimeout(leaving);
    ends = performance.now() + page().left * 1000;
    reveal();
    if ($("keychain-pay")) $("keychain-pay").addEventListener("click", pay);
    if ($("print")) {
      $("print").hidden = false;
      $("print").addEventListener("click", () => window.print());
    }
    for (const button of document.querySelectorAll("[data-copy]")) {
      if (!navigator.clipboard) break;
      button.hidden = false;
      const word = button.textContent;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = button.dataset.copied;
        setTimeout(() => { button.textContent = word; }, 2000);
      });
    }
    tick();
    lead();
    listen();
  }
  begin();
})();
