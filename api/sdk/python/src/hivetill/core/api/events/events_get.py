from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.account_event import AccountEvent
from ...models.error import Error
from ...models.payment_event import PaymentEvent
from ...models.sale_event import SaleEvent
from ...models.unmatched_event import UnmatchedEvent
from typing import cast



def _get_kwargs(
    event: str,

) -> dict[str, Any]:
    

    

    

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/public/events/{event}".format(event=quote(str(event), safe=""),),
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error | None:
    if response.status_code == 200:
        def _parse_response_200(data: object) -> AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_type_0 = PaymentEvent.from_dict(data)



                return componentsschemas_event_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_type_1 = SaleEvent.from_dict(data)



                return componentsschemas_event_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_type_2 = AccountEvent.from_dict(data)



                return componentsschemas_event_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_event_type_3 = UnmatchedEvent.from_dict(data)



            return componentsschemas_event_type_3

        response_200 = _parse_response_200(response.json())

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    event: str,
    *,
    client: AuthenticatedClient,

) -> Response[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error]:
    """ Get an event

     Returns one event: the body of its webhook. 404 if it is older than the retention.

    The API key needs the scope `payments:read`.

    Args:
        event (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error]
     """


    kwargs = _get_kwargs(
        event=event,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    event: str,
    *,
    client: AuthenticatedClient,

) -> AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error | None:
    """ Get an event

     Returns one event: the body of its webhook. 404 if it is older than the retention.

    The API key needs the scope `payments:read`.

    Args:
        event (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error
     """


    return sync_detailed(
        event=event,
client=client,

    ).parsed

async def asyncio_detailed(
    event: str,
    *,
    client: AuthenticatedClient,

) -> Response[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error]:
    """ Get an event

     Returns one event: the body of its webhook. 404 if it is older than the retention.

    The API key needs the scope `payments:read`.

    Args:
        event (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error]
     """


    kwargs = _get_kwargs(
        event=event,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    event: str,
    *,
    client: AuthenticatedClient,

) -> AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error | None:
    """ Get an event

     Returns one event: the body of its webhook. 404 if it is older than the retention.

    The API key needs the scope `payments:read`.

    Args:
        event (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AccountEvent | PaymentEvent | SaleEvent | UnmatchedEvent | Error
     """


    return (await asyncio_detailed(
        event=event,
client=client,

    )).parsed
