// The checkout page's comfort: live status, Keychain, copying. Everything else works without it.
(() => {
  "use strict";
  const page = document.body.dataset;
  const $ = (id) => document.getElementById(id);

  // Live status: a stream where the browser has one, asking again where not.
  const QUIET = new Set(["waiting", "seen"]);
  let remaining = null;
  function show(live) {
    const calm = live.phase === page.phase || (QUIET.has(live.phase) && QUIET.has(page.phase));
    const grown = remaining !== null && remaining !== live.amountRemaining;
    remaining = live.amountRemaining;
    if (!calm || grown) return location.replace(page.reload);
    if ($("headline").textContent !== live.headline) $("headline").textContent = live.headline;
    if ($("message").textContent !== live.message) $("message").textContent = live.message;
  }
  async function ask() {
    try {
      const answer = await fetch(page.path + "/status", { headers: { accept: "application/json" }, cache: "no-store" });
      if (answer.ok) show(await answer.json());
    } catch { /* the next turn asks again */ }
  }
  function poll() {
    ask();
    setTimeout(poll, document.hidden ? 30000 : 3000);
  }
  if (page.live === "true") {
    if (window.EventSource) {
      const events = new EventSource(page.path + "/events");
      let failures = 0;
      events.addEventListener("status", (event) => { failures = 0; show(JSON.parse(event.data)); });
      events.onerror = () => {
        ask();
        failures += 1;
        if (failures === 3) { events.close(); poll(); }
      };
    } else {
      poll();
    }
  }

  // Keychain: the extension may arrive a little after the page.
  const box = $("keychain");
  if (box) {
    const button = $("keychain-pay");
    const reveal = () => { if (window.hive_keychain) box.hidden = false; };
    window.addEventListener("hive-keychain-loaded", reveal);
    for (let wait = 0; wait <= 2000; wait += 200) setTimeout(reveal, wait);
    button.addEventListener("click", () => {
      const want = button.dataset;
      // A second request would replace the first, so there is none while one is open.
      button.disabled = true;
      $("keychain-answer").textContent = "Please confirm in Keychain.";
      window.hive_keychain.requestTransfer(null, want.to, want.amount, want.memo, want.currency, (answer) => {
        if (answer.success) {
          $("keychain-answer").textContent = "Sent. Waiting for the ledger.";
          ask();
        } else {
          button.disabled = false;
          $("keychain-answer").textContent =
            answer.error === "user_cancel" ? "Not sent." : "Not sent: " + (answer.message || "Keychain refused.");
        }
      }, false);
    });
  }

  // Copying.
  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) break;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  // The last five minutes are counted; the count ends 15 s early, for the ledger needs a block.
  const countdown = $("countdown");
  if (countdown) {
    const end = Date.parse(page.expires) - 15000;
    const tick = () => {
      const left = Math.floor((end - Date.now()) / 1000);
      if (left <= 300) {
        countdown.textContent = left > 0
          ? Math.floor(left / 60) + ":" + String(left % 60).padStart(2, "0") + " left." : "Time is over.";
      }
      if (left > 0) setTimeout(tick, 1000);
    };
    tick();
  }

  // Back to the shop after five seconds, unless the customer stays.
  const onward = $("onward");
  if (onward && onward.dataset.automatic === "true") {
    const stay = $("onward-stay");
    $("onward-notice").textContent = "You are taken back in 5 seconds.";
    stay.hidden = false;
    const timer = setTimeout(() => location.assign(onward.href), 5000);
    stay.addEventListener("click", () => {
      clearTimeout(timer);
      stay.hidden = true;
      $("onward-notice").textContent = "";
    });
  }
})();
