"""An MCP server with a paid tool, of the official Python packages of MCP and x402; a gateway is its facilitator. Prints
its port as one line of JSON.

    python seller.py    (HIVETILL_API, HIVETILL_API_KEY, HIVETILL_ACCOUNT)
"""

import asyncio
import json
import os
import socket

import uvicorn
from mcp.server.fastmcp import FastMCP
from x402 import ResourceConfig, x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.mcp import create_payment_wrapper
from x402.schemas import AssetAmount, ResourceInfo

from hive import DECIMALS, NETWORK

API, KEY, ACCOUNT = (os.environ[name] for name in ("HIVETILL_API", "HIVETILL_API_KEY", "HIVETILL_ACCOUNT"))


class ExactHiveServerScheme:
    """Prices in HBD and HIVE."""

    scheme = "exact"
    default_asset_transfer_method = "default"
    payment_flows = {"default": {"supported": ["authorization", "upfront"], "default": "authorization"}}

    def parse_price(self, price, network):
        return price

    def enhance_payment_requirements(self, requirements, kind, extensions):
        return requirements


def headers():
    authorization = {"authorization": f"Bearer {KEY}"}
    return {"verify": authorization, "settle": authorization, "supported": authorization}


facilitator = HTTPFacilitatorClient({"url": f"{API}/api/public/x402", "create_headers": headers})
resources = x402ResourceServer(facilitator)
resources.register(NETWORK, ExactHiveServerScheme())
resources.initialize()
price = AssetAmount(amount="50", asset="HBD")
accepts = resources.build_payment_requirements(
    ResourceConfig(scheme="exact", network=NETWORK, pay_to=ACCOUNT, price=price, max_timeout_seconds=60)
)
resource = ResourceInfo(url="mcp://tool/report", description="A report", mime_type="application/json")
server = FastMCP("seller", stateless_http=True, json_response=True)
calls = []


@server.tool()
@create_payment_wrapper(resources, accepts=accepts, resource=resource)
async def report(topic: str) -> str:
    calls.append(topic)
    return json.dumps({"report": f"{topic} are up 3 %", "calls": len(calls)})


@server.tool()
async def greet() -> str:
    return "Hello"


async def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    print(json.dumps({"listening": listener.getsockname()[1]}), flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
