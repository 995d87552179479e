"""Pays a tool of an MCP server with the official Python packages of MCP and x402. Prints what it saw as one line of
JSON.

    python tool.py MCP_URL TOOL    (HIVETILL_RPC, HIVETILL_ACCOUNT, HIVETILL_KEY)
"""

import asyncio
import json
import os
import sys
from types import SimpleNamespace

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from x402 import x402Client
from x402.mcp import x402MCPClient

from hive import NETWORK, ExactHiveScheme

URL, TOOL = sys.argv[1:3]
ARGUMENTS = {"topic": "Mugs"}


class Session:
    """The session with the call signature and the result that the package of x402 reads."""

    def __init__(self, session):
        self._session = session

    async def call_tool(self, params, **options):
        result = await self._session.call_tool(params["name"], params["arguments"], meta=params.get("_meta"), **options)
        return SimpleNamespace(
            content=[block.model_dump() for block in result.content],
            isError=result.isError,
            structuredContent=result.structuredContent,
            _meta=result.meta or {},
        )


async def main():
    scheme = ExactHiveScheme(os.environ["HIVETILL_ACCOUNT"], os.environ["HIVETILL_KEY"], os.environ["HIVETILL_RPC"])
    payer = x402Client()
    payer.register(NETWORK, scheme)
    async with streamablehttp_client(URL) as (receive, send, _), ClientSession(receive, send) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        adapter = Session(session)
        client = x402MCPClient(adapter, payer)
        required = await client.get_tool_payment_requirements(TOOL, ARGUMENTS)
        paid = await client.call_tool(TOOL, ARGUMENTS)
        payload = await payer.create_payment_payload(required)
        first = await client.call_tool_with_payment(TOOL, ARGUMENTS, payload)
        used = await client.call_tool_with_payment(TOOL, ARGUMENTS, payload)
        bad = payload.model_copy(update={"payload": {**payload.payload, "nonce": ""}})
        invalid = await client.call_tool_with_payment(TOOL, ARGUMENTS, bad)
    describe = lambda result: {
        "isError": result.is_error,
        "content": result.content,
        "receipt": result.payment_response and result.payment_response.model_dump(by_alias=True, exclude_none=True),
    }
    print(json.dumps({
        "tools": tools, "required": required.model_dump(by_alias=True, exclude_none=True), "paid": describe(paid),
        "paymentMade": paid.payment_made, "first": describe(first), "used": describe(used),
        "invalid": describe(invalid),
    }))


asyncio.run(main())
