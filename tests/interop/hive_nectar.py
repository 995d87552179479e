"""Pays with hive-nectar, unmodified, and reads what its users read every day. Prints one line of JSON.

    python hive_nectar.py --rpc URL --from NAME --to NAME --amount 1.500 --currency HBD --memo M    (the key: HIVETILL_KEY)
"""

import argparse
import json
import os
import time

from nectar import Hive
from nectar.account import Account
from nectar.blockchain import Blockchain


def main():
    parser = argparse.ArgumentParser()
    for name in ("rpc", "from", "to", "amount", "currency", "memo"):
        parser.add_argument(f"--{name}", required=True)
    given = vars(parser.parse_args())
    # With few tries a node without a method is given up at once: the calls below would all fail.
    hive = Hive(node=[given["rpc"]], keys=[os.environ["HIVETILL_KEY"]], num_retries=2, num_retries_call=2, timeout=20)
    payer = Account(given["from"], blockchain_instance=hive)
    # It takes entry number 0 of a history for an empty history: the payment is to be a later one.
    payer.transfer(given["to"], 0.001, given["currency"], "")
    paid = payer.transfer(given["to"], float(given["amount"]), given["currency"], given["memo"])
    funds = hive.get_reward_funds()
    schedule = hive.get_witness_schedule()
    manabar = payer.get_manabar()
    credits = payer.get_rc_manabar()
    chain = Blockchain(blockchain_instance=hive)
    head = chain.get_current_block()
    deadline = time.monotonic() + 30
    history = []
    while not history and time.monotonic() < deadline:
        history = [entry for entry in payer.history_reverse(batch_size=50) if entry.get("memo") == given["memo"]]
        time.sleep(0.1)
    only = [entry["type"] for entry in payer.history(only_ops=["transfer"], batch_size=50)]
    print(json.dumps({
        "txId": paid["trx_id"],
        "fund": (funds.get("funds") or [funds])[0]["name"],
        "witnesses": len(schedule["current_shuffled_witnesses"]),
        "mana": manabar["max_mana"],
        "credits": credits["max_mana"],
        "head": head.block_num,
        "history": [{"to": entry["to"], "amount": entry["amount"], "txId": entry["trx_id"]} for entry in history],
        "onlyTransfers": sorted(set(only)),
    }))


main()
