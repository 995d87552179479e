// Live status, Keychain, copying, local times and the redirect to the shop. The page works without this script.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const page = () => $("page").dataset;
  const words = (phrase, name, value) => phrase.replace("{" + name + "}", () => value);

  // Replaces the page when its state changed, announces the state once, and keeps open what the visitor had opened.
  let busy = false;
  async function show(live) {
    if (busy || live.version === page().version) return;
    busy = true;
    try {
      const answer = await fetch(page().reload, { headers: { accept: "text/html" }, cache: "no-store" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = fresh.getElementById("page");
      if (!next) return;
      const ends = page().live === "true" && next.dataset.live !== "true";
      const held = $("page").contains(document.activeElement);
      for (const { id, open } of document.querySelectorAll("#page details[id]")) {
        const same = next.querySelector("#" + id);
        if (same && id !== "cancel-box") same.open = open;
      }
      $("page").replaceWith(next);
      document.title = fresh.title;
      $("live").textContent = live.headline + ". " + live.message;
      if (held) $("headline").focus();
      begin();
      if (ends) lead();
    } catch { /* the next event or turn tries again */ } finally {
      busy = false;
    }
  }

  // A failed request shows that the connection is lost; the next one that succeeds hides it.
  const connected = (is) => { $("connection").hidden = is; };
  async function ask() {
    try {
      const { path, query } = page();
      const answer = await fetch(path + "/status" + query, { cache: "no-store" });
      connected(answer.status < 500);
      if (answer.ok) await show(await answer.json());
    } catch {
      connected(false);
    }
  }
  let retry = 0;
  function reconnect() {
    clearTimeout(retry);
    ask().then(() => { if (!$("connection").hidden) retry = setTimeout(reconnect, 3000); });
  }
  window.addEventListener("offline", () => connected(false));
  window.addEventListener("online", reconnect);

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
    events.addEventListener("status", (event) => { failures = 0; connected(true); show(JSON.parse(event.data)); });
    events.onerror = () => {
      reconnect();
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

  // A wallet that is opened is reported, so that a cancellation leaves its payment the time to arrive. Resolves to
  // whether the wallet may open: the server refuses it for a payment that is over.
  async function report() {
    if (page().reports === undefined) return true;
    showCancel(false);
    try {
      const signal = window.AbortSignal && AbortSignal.timeout ? AbortSignal.timeout(3000) : undefined;
      const answer = await fetch(page().path + "/wallet", { method: "POST", keepalive: true, signal });
      return answer.status !== 409 && answer.status !== 410;
    } catch {
      return true;
    }
  }
  function showCancel(shown) {
    if ($("cancel-box")) $("cancel-box").hidden = !shown;
  }

  // A link that no wallet handles does nothing at all: the page stays in front, and says so after two seconds.
  function openWallet() {
    report();
    let left = false;
    const leave = () => { left = true; };
    for (const event of ["blur", "pagehide"]) window.addEventListener(event, leave, { once: true });
    setTimeout(() => {
      for (const event of ["blur", "pagehide"]) window.removeEventListener(event, leave);
      if (left || document.hidden || !$("no-wallet")) return;
      $("no-wallet").hidden = false;
      if ($("scan")) $("scan").open = true;
    }, 2000);
  }

  async function pay() {
    const button = $("keychain-pay");
    const want = button.dataset;
    const payer = $("payer");
    const say = (text) => { if ($("answer")) $("answer").textContent = text; };
    // Who may have paid is offered no other way to pay.
    const over = (text) => { say(text); if ($("ways")) $("ways").hidden = true; };
    if (payer && !payer.value.trim()) {
      say(payer.dataset.need);
      payer.focus();
      return;
    }
    // A second request would replace the first, so there is none while one is open.
    button.disabled = true;
    if (!(await report())) {
      ask();
      return;
    }
    say(want.confirm);
    const done = (answer) => {
      if (answer.success) {
        over(answer.result && answer.result.isUsingMultisig ? want.more : want.sent);
        ask();
        return;
      }
      if (answer.error === "pending_multisig") return over(want.more);
      // Keychain answers these before anything is signed. After any other error a node may have the payment.
      if (["user_cancel", "ignored", "incomplete"].includes(answer.error)) {
        button.disabled = false;
        showCancel(true);
        return say(want.nothing);
      }
      over(want.unknown + (answer.message ? " " + words(want.refused, "why", answer.message) : ""));
      ask();
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

  // The count ends 15 s early, because the ledger needs a block. The last five minutes stand out.
  let ends = 0;
  let ticker = 0;
  function tick() {
    const left = Math.floor((ends - performance.now()) / 1000);
    const box = $("countdown");
    if (box) {
      const shown = Math.max(0, left - 15);
      const two = (number) => String(number).padStart(2, "0");
      const [hours, minutes] = [Math.floor(shown / 3600), Math.floor(shown / 60) % 60];
      const time = (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(shown % 60);
      box.hidden = false;
      box.classList.toggle("soon", shown <= 300);
      box.textContent = shown > 0 ? words(box.dataset.words, "time", time) : box.dataset.over;
    }
    if (left < 0 && page().live === "true") ask();
    if (box) ticker = setTimeout(tick, left < 0 ? 5000 : 1000);
  }

  // Back to the shop some seconds after the payment ended here, unless the customer stays.
  let leaving = 0;
  let waiting = 0;
  function lead() {
    const onward = $("onward");
    if (!onward || !onward.dataset.seconds) return;
    const notice = $("onward-notice");
    $("onward-box").hidden = false;
    notice.textContent = onward.dataset.notice;
    leaving = setTimeout(() => location.assign(onward.href), onward.dataset.seconds * 1000);
    $("onward-stay").addEventListener("click", () => {
      clearTimeout(leaving);
      $("onward-box").hidden = true;
      onward.focus();
    });
  }

  // Times in the visitor's language and time zone; the server writes them in UTC.
  function localize() {
    const language = document.documentElement.lang;
    const format = new Intl.DateTimeFormat(language === "ar" ? "ar-u-nu-latn" : language, { dateStyle: "medium", timeStyle: "short" });
    for (const time of document.querySelectorAll("time[datetime]")) {
      time.title = time.textContent;
      time.textContent = format.format(new Date(time.dateTime));
    }
  }

  // What a page needs once it is in place.
  function begin() {
    clearTimeout(ticker);
    clearTimeout(leaving);
    clearTimeout(waiting);
    ends = performance.now() + page().left * 1000;
    localize();
    reveal();
    if ($("keychain-pay")) $("keychain-pay").addEventListener("click", pay);
    if ($("hivesigner")) $("hivesigner").addEventListener("click", report);
    for (const id of ["open-wallet", "qr"]) if ($(id)) $(id).addEventListener("click", openWallet);
    if (page().cameBack !== undefined) report();
    const leave = document.querySelector("[data-after-ms]");
    if (leave) waiting = setTimeout(() => { leave.hidden = false; }, Number(leave.dataset.afterMs));
    if ($("print")) {
      $("print").hidden = false;
      $("print").addEventListener("click", () => window.print());
    }
    for (const button of document.querySelectorAll("[data-copy]")) {
      if (!navigator.clipboard) break;
      button.hidden = false;
      const word = button.textContent;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(button.dataset.copy);
        } catch {
          // The browser does not allow it: the text is selected, to copy it by hand.
          window.getSelection().selectAllChildren(button.previousElementSibling);
          return;
        }
        button.textContent = button.dataset.copied;
        setTimeout(() => { button.textContent = word; }, 2000);
      });
    }
    tick();
    listen();
  }
  // A phone shows its wallet's button first: the code is for other devices.
  if ($("scan") && window.matchMedia("(max-width: 719px)").matches) $("scan").open = false;
  begin();
})();
