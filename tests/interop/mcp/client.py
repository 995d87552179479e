"""An agent and a merchant in one session, with the official Python SDK. Prints what it saw as one line of JSON.

    python client.py http URL TOKEN PAY_URL NEXT_URL TOOL_URL | python client.py stdio BINARY WALLET PAY_URL NEXT_URL TOOL_URL
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

mode, where, secret, pay_url, next_url, tool_url = sys.argv[1:7]


def server():
    if mode == "http":
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {secret}"}, timeout=60)
        return streamable_http_client(where, http_client=http)
    names = ("HIVETILL_KEY", "HIVETILL_API", "HIVETILL_API_KEY")
    env = {name: os.environ[name] for name in names}
    return StdioServerParameters(command=where, args=["mcp", "--wallet", secret], env=env)


async def main():
    progress = []

    async def on_progress(done, total, message):
        progress.append(message)

    async with Client(server()) as client:
        async def call(name, arguments, **more):
            result = await client.call_tool(name, arguments, **more)
            content = result.structured_content
            assert json.loads(result.content[0].text) == content, result
            return {"isError": bool(result.is_error), **content}

        tools = [tool.name for tool in (await client.list_tools()).tools]
        offer = await call("pay_url", {"url": pay_url})
        before = await call("wallet_status", {})
        arguments = {"url": pay_url, "confirm": True, "maxAmount": offer["amount"]}
        paid = await call("pay_url", arguments, progress_callback=on_progress)
        again = await call("pay_url", {"url": pay_url, "confirm": True})
        receipt = await call("get_receipt", {"id": paid["entry"]})
        following = await call("pay_url", {"url": next_url, "confirm": True})
        report = {"server": tool_url, "tool": "report", "arguments": {"topic": "Mugs"}}
        tool_offer = await call("pay_tool", report)
        tool_paid = await call("pay_tool", {**report, "confirm": True, "maxAmount": tool_offer["amount"]})
        tool_again = await call("pay_tool", {**report, "confirm": True})
        tool_wrong = await call("pay_tool", {**report, "server": "ftp://127.0.0.1/"})
        wrong = await call("pay_url", {"url": pay_url, "confrm": True})
        order = {"amount": "0.500 HBD", "description": "A mug", "idempotencyKey": f"order-{mode}"}
        created = await call("create_payment", order)
        repeated = await call("create_payment", order)
        payment = await call("get_payment", {"id": created["id"]})
        listed = await call("list_payments", {"status": "pending", "limit": 1})
        missing = await call("get_payment", {"id": "pay_00000000000000000000000000"})
        plan = await call("refund_plan", {"id": created["id"]})
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
        stored = json.loads((await client.read_resource(f"hivetill://receipts/{paid['entry']}")).contents[0].text)
        page = (await client.read_resource("hivetill://reference/wallet")).contents[0].text[:14]
    print(json.dumps({
        "tools": tools, "offer": offer, "before": before, "progress": progress, "paid": paid, "again": again,
        "receipt": receipt, "next": following, "wrong": wrong, "created": created, "repeated": repeated,
        "payment": payment, "listed": listed, "missing": missing, "plan": plan, "resources": resources,
        "stored": stored, "page": page, "toolOffer": tool_offer, "toolPaid": tool_paid, "toolAgain": tool_again,
        "toolWrong": tool_wrong,
    }))


asyncio.run(main())
