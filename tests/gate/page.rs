//! The page on an agent's wallet: its command blocks run in order as printed.

use std::process::{Command, Stdio};

use crate::{
    documentation::blocks,
    harness::{folder, shared},
};

crate::tests!(the_commands_of_the_page_on_wallets_work,);

/// Runs a script with the binary in its path, in a new folder; kills its remaining processes at the end.
#[track_caller]
fn run(script: &str, settings: &[(&str, &str)]) -> String {
    let work = folder("page");
    let program =
        std::path::Path::new(env!("CARGO_BIN_EXE_hivetill")).parent().expect("a folder").display().to_string();
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || :' EXIT\nPATH={program}:$PATH\n{script}");
    let mut command = Command::new("bash");
    command.args(["-eu", "-c", &script]).current_dir(&work).env("HOME", &work).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HIVETILL_")) {
        command.env_remove(name);
    }
    command.envs(settings.iter().copied());
    let output = command.output().expect("bash is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn the_commands_of_the_page_on_wallets_work() {
    let dev = shared();
    let (shop, alice) = (dev.shop(), dev.demo_account("alice"));
    let payment = shop.open_payment();
    let url = format!("{}/for/{}", shop.api.base, payment.slug);
    let commands = blocks("docs/how-to/agent-wallet.md", "sh");
    assert_eq!(commands.len(), 6, "the page has these blocks");
    // The payment number in the block on approvals is only an example.
    let commands: Vec<String> = commands.into_iter().filter(|block| !block.contains("approve 3")).collect();
    let settings = [
        ("URL", url.as_str()),
        ("HIVETILL_KEY", alice.key.as_str()),
        ("HIVETILL_LEDGER_NODES", dev.ledger.rpc.base.as_str()),
    ];
    let printed = run(&commands.concat(), &settings);
    let has = |text: &str| assert!(printed.contains(text), "no {text} in {printed}");
    for text in
        ["\"status\":\"offer\"", "\"status\":\"paid\"", "\"replayed\":true", "left", "0.500 HBD", "0 changed, 0 open"]
    {
        has(text);
    }
    assert!(!printed.contains(&alice.key));
    assert_eq!(shop.until_status(&payment.id, "completed")["amountPaid"], "1500");
}
