from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.delivery_list import DeliveryList
from ...models.error import Error
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    id: str,
    *,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    status: str | Unset = UNSET,
    event_id: str | Unset = UNSET,
    payment_id: str | Unset = UNSET,
    endpoint_id: str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    params["cursor"] = cursor

    params["limit"] = limit

    params["status"] = status

    params["eventId"] = event_id

    params["paymentId"] = payment_id

    params["endpointId"] = endpoint_id


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/public/merchants/{id}/webhook-deliveries".format(id=quote(str(id), safe=""),),
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> DeliveryList | Error | None:
    if response.status_code == 200:
        response_200 = DeliveryList.from_dict(response.json())



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

    if response.status_code == 414:
        response_414 = Error.from_dict(response.json())



        return response_414

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[DeliveryList | Error]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    status: str | Unset = UNSET,
    event_id: str | Unset = UNSET,
    payment_id: str | Unset = UNSET,
    endpoint_id: str | Unset = UNSET,

) -> Response[DeliveryList | Error]:
    """ List webhook deliveries, newest first

     Lists the deliveries of events to the endpoint, newest first.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        cursor (str | Unset):
        limit (int | Unset):
        status (str | Unset):
        event_id (str | Unset):
        payment_id (str | Unset):
        endpoint_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DeliveryList | Error]
     """


    kwargs = _get_kwargs(
        id=id,
cursor=cursor,
limit=limit,
status=status,
event_id=event_id,
payment_id=payment_id,
endpoint_id=endpoint_id,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    id: str,
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    status: str | Unset = UNSET,
    event_id: str | Unset = UNSET,
    payment_id: str | Unset = UNSET,
    endpoint_id: str | Unset = UNSET,

) -> DeliveryList | Error | None:
    """ List webhook deliveries, newest first

     Lists the deliveries of events to the endpoint, newest first.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        cursor (str | Unset):
        limit (int | Unset):
        status (str | Unset):
        event_id (str | Unset):
        payment_id (str | Unset):
        endpoint_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DeliveryList | Error
     """


    return sync_detailed(
        id=id,
client=client,
cursor=cursor,
limit=limit,
status=status,
event_id=event_id,
payment_id=payment_id,
endpoint_id=endpoint_id,

    ).parsed

async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    status: str | Unset = UNSET,
    event_id: str | Unset = UNSET,
    payment_id: str | Unset = UNSET,
    endpoint_id: str | Unset = UNSET,

) -> Response[DeliveryList | Error]:
    """ List webhook deliveries, newest first

     Lists the deliveries of events to the endpoint, newest first.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        cursor (str | Unset):
        limit (int | Unset):
        status (str | Unset):
        event_id (str | Unset):
        payment_id (str | Unset):
        endpoint_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[DeliveryList | Error]
     """


    kwargs = _get_kwargs(
        id=id,
cursor=cursor,
limit=limit,
status=status,
event_id=event_id,
payment_id=payment_id,
endpoint_id=endpoint_id,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient,
    cursor: str | Unset = UNSET,
    limit: int | Unset = UNSET,
    status: str | Unset = UNSET,
    event_id: str | Unset = UNSET,
    payment_id: str | Unset = UNSET,
    endpoint_id: str | Unset = UNSET,

) -> DeliveryList | Error | None:
    """ List webhook deliveries, newest first

     Lists the deliveries of events to the endpoint, newest first.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        cursor (str | Unset):
        limit (int | Unset):
        status (str | Unset):
        event_id (str | Unset):
        payment_id (str | Unset):
        endpoint_id (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        DeliveryList | Error
     """


    return (await asyncio_detailed(
        id=id,
client=client,
cursor=cursor,
limit=limit,
status=status,
event_id=event_id,
payment_id=payment_id,
endpoint_id=endpoint_id,

    )).parsed
