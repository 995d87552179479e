// Signs a challenge with Keychain and submits the signature. Everything else works without it.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const button = $("keychain-sign");
  if (!button) return;
  const say = (text) => { $("answer").textContent = text; };

  // The extension may arrive a little after the page.
  const reveal = () => {
    if (!window.hive_keychain) return;
    button.hidden = false;
    $("keychain-missing").hidden = true;
  };
  window.addEventListener("hive-keychain-loaded", reveal);
  for (let wait = 0; wait <= 2000; wait += 200) setTimeout(reveal, wait);
  setTimeout(() => { if (!window.hive_keychain) $("keychain-missing").hidden = false; }, 2100);

  button.addEventListener("click", () => {
    const { account, text } = button.dataset;
    button.disabled = true;
    say("Confirm in Keychain.");
    window.hive_keychain.requestSignBuffer(account, text, "Active", (answer) => {
      button.disabled = false;
      if (!answer.success) return say("Keychain did not sign: " + (answer.message || answer.error));
      $("signatures").value = answer.result;
      $("proof").requestSubmit();
    });
  });
})();
