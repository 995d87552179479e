"""Pays a gate with the official Python packages of x402, over httpx and over requests. Prints ok.

    python gate.py GATE    (HIVETILL_RPC, HIVETILL_ACCOUNT, HIVETILL_KEY)
"""

import asyncio
import os
import sys

from hive import NETWORK, ExactHiveScheme
from x402 import x402Client, x402ClientSync
from x402.http import decode_payment_response_header
from x402.http.clients.httpx import x402HttpxClient
from x402.http.clients.requests import x402_requests

ACCOUNT = os.environ["HIVETILL_ACCOUNT"]
URL = f"{sys.argv[1]}/report"


def registered(client):
    client.register(NETWORK, ExactHiveScheme(ACCOUNT, os.environ["HIVETILL_KEY"], os.environ["HIVETILL_RPC"]))
    return client


def check(response):
    assert response.status_code == 200, response.text
    assert response.json() == {"report": "Mugs are up 3 %"}, response.text
    settled = decode_payment_response_header(response.headers["payment-response"])
    assert settled.success and settled.payer == ACCOUNT and settled.network == NETWORK, settled
    assert len(settled.transaction) == 40, settled
    return settled.transaction


async def over_httpx():
    async with x402HttpxClient(registered(x402Client()), timeout=60) as http:
        return check(await http.get(URL))


def over_requests():
    with x402_requests(registered(x402ClientSync())) as http:
        return check(http.get(URL, timeout=60))


assert asyncio.run(over_httpx()) != over_requests(), "each request has a payment of its own"
print("ok")
