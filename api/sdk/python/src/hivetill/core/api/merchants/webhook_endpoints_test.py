from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.delivery import Delivery
from ...models.error import Error
from ...models.test_webhook import TestWebhook
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    id: str,
    endpoint: str,
    *,
    body: TestWebhook | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,

) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["Idempotency-Key"] = idempotency_key



    

    

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/api/public/merchants/{id}/webhook-endpoints/{endpoint}/test".format(id=quote(str(id), safe=""),endpoint=quote(str(endpoint), safe=""),),
    }

    
    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Delivery | Error | None:
    if response.status_code == 200:
        response_200 = Delivery.from_dict(response.json())



        return response_200

    if response.status_code == 400:
        response_400 = Error.from_dict(response.json())



        return response_400

    if response.status_code == 401:
        response_401 = Error.from_dict(response.json())



        return response_401

    if response.status_code == 403:
        response_403 = Error.from_dict(response.json())



        return response_403

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Delivery | Error]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    endpoint: str,
    *,
    client: AuthenticatedClient,
    body: TestWebhook | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,

) -> Response[Delivery | Error]:
    """ Send a test event to a webhook endpoint

     Sends a test event to a webhook endpoint once, as `POST …/webhook-test` does to the default one.

    The API key needs the scope `merchant:write`.

    Args:
        id (str):
        endpoint (str):
        idempotency_key (str | Unset):
        body (TestWebhook | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Delivery | Error]
     """


    kwargs = _get_kwargs(
        id=id,
endpoint=endpoint,
body=body,
idempotency_key=idempotency_key,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    id: str,
    endpoint: str,
    *,
    client: AuthenticatedClient,
    body: TestWebhook | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,

) -> Delivery | Error | None:
    """ Send a test event to a webhook endpoint

     Sends a test event to a webhook endpoint once, as `POST …/webhook-test` does to the default one.

    The API key needs the scope `merchant:write`.

    Args:
        id (str):
        endpoint (str):
        idempotency_key (str | Unset):
        body (TestWebhook | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Delivery | Error
     """


    return sync_detailed(
        id=id,
endpoint=endpoint,
client=client,
body=body,
idempotency_key=idempotency_key,

    ).parsed

async def asyncio_detailed(
    id: str,
    endpoint: str,
    *,
    client: AuthenticatedClient,
    body: TestWebhook | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,

) -> Response[Delivery | Error]:
    """ Send a test event to a webhook endpoint

     Sends a test event to a webhook endpoint once, as `POST …/webhook-test` does to the default one.

    The API key needs the scope `merchant:write`.

    Args:
        id (str):
        endpoint (str):
        idempotency_key (str | Unset):
        body (TestWebhook | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Delivery | Error]
     """


    kwargs = _get_kwargs(
        id=id,
endpoint=endpoint,
body=body,
idempotency_key=idempotency_key,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    id: str,
    endpoint: str,
    *,
    client: AuthenticatedClient,
    body: TestWebhook | Unset = UNSET,
    idempotency_key: str | Unset = UNSET,

) -> Delivery | Error | None:
    """ Send a test event to a webhook endpoint

     Sends a test event to a webhook endpoint once, as `POST …/webhook-test` does to the default one.

    The API key needs the scope `merchant:write`.

    Args:
        id (str):
        endpoint (str):
        idempotency_key (str | Unset):
        body (TestWebhook | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Delivery | Error
     """


    return (await asyncio_detailed(
        id=id,
endpoint=endpoint,
client=client,
body=body,
idempotency_key=idempotency_key,

    )).parsed
