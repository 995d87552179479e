from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.error import Error
from ...models.settled import Settled
from ...models.x402_request import X402Request
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    *,
    body: X402Request,
    idempotency_key: str | Unset = UNSET,

) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key



    

    

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/public/x402/settle",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Error | Settled | None:
    if response.status_code == 200:
        response_200 = Settled.from_dict(response.json())



        return response_200

    if response.status_code == 400:
        response_400 = Error.from_dict(response.json())



        return response_400

    if response.status_code == 401:
        response_401 = Error.from_dict(response.json())



        return response_401

    if response.status_code == 404:
        response_404 = Error.from_dict(response.json())



        return response_404

    if response.status_code == 408:
        response_408 = Error.from_dict(response.json())



        return response_408

    if response.status_code == 409:
        response_409 = Error.from_dict(response.json())



        return response_409

    if response.status_code == 413:
        response_413 = Error.from_dict(response.json())



        return response_413

    if response.status_code == 414:
        response_414 = Error.from_dict(response.json())



        return response_414

    if response.status_code == 415:
        response_415 = Error.from_dict(response.json())



        return response_415

    if response.status_code == 422:
        response_422 = Error.from_dict(response.json())



        return response_422

    if response.status_code == 429:
        response_429 = Error.from_dict(response.json())



        return response_429

    if response.status_code == 431:
        response_431 = Error.from_dict(response.json())



        return response_431

    if response.status_code == 500:
        response_500 = Error.from_dict(response.json())



        return response_500

    if response.status_code == 503:
        response_503 = Error.from_dict(response.json())



        return response_503

    if client.raise_on_unexpected_status:
        raise errors.UnexpectedStatus(response.status_code, response.content)
    else:
        return None


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Error | Settled]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: X402Request,
    idempotency_key: str | Unset = UNSET,

) -> Response[Error | Settled]:
    """ Verify a payment and broadcast it

     Checks a signed payment, broadcasts it and waits for the ledger. A transaction succeeds once. To
    retry safely after a lost response, a seller sends its API key and an `Idempotency-Key` for each
    inbound request. A refusal has status 200 and `success: false`.

    Args:
        idempotency_key (str | Unset):
        body (X402Request): A payment for a payment of this gateway (`sessionId`) or for another
            server (`paymentRequirements`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Error | Settled]
     """


    kwargs = _get_kwargs(
        body=body,
idempotency_key=idempotency_key,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    *,
    client: AuthenticatedClient | Client,
    body: X402Request,
    idempotency_key: str | Unset = UNSET,

) -> Error | Settled | None:
    """ Verify a payment and broadcast it

     Checks a signed payment, broadcasts it and waits for the ledger. A transaction succeeds once. To
    retry safely after a lost response, a seller sends its API key and an `Idempotency-Key` for each
    inbound request. A refusal has status 200 and `success: false`.

    Args:
        idempotency_key (str | Unset):
        body (X402Request): A payment for a payment of this gateway (`sessionId`) or for another
            server (`paymentRequirements`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Error | Settled
     """


    return sync_detailed(
        client=client,
body=body,
idempotency_key=idempotency_key,

    ).parsed

async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: X402Request,
    idempotency_key: str | Unset = UNSET,

) -> Response[Error | Settled]:
    """ Verify a payment and broadcast it

     Checks a signed payment, broadcasts it and waits for the ledger. A transaction succeeds once. To
    retry safely after a lost response, a seller sends its API key and an `Idempotency-Key` for each
    inbound request. A refusal has status 200 and `success: false`.

    Args:
        idempotency_key (str | Unset):
        body (X402Request): A payment for a payment of this gateway (`sessionId`) or for another
            server (`paymentRequirements`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Error | Settled]
     """


    kwargs = _get_kwargs(
        body=body,
idempotency_key=idempotency_key,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: X402Request,
    idempotency_key: str | Unset = UNSET,

) -> Error | Settled | None:
    """ Verify a payment and broadcast it

     Checks a signed payment, broadcasts it and waits for the ledger. A transaction succeeds once. To
    retry safely after a lost response, a seller sends its API key and an `Idempotency-Key` for each
    inbound request. A refusal has status 200 and `success: false`.

    Args:
        idempotency_key (str | Unset):
        body (X402Request): A payment for a payment of this gateway (`sessionId`) or for another
            server (`paymentRequirements`).

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Error | Settled
     """


    return (await asyncio_detailed(
        client=client,
body=body,
idempotency_key=idempotency_key,

    )).parsed
