from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.created_short import CreatedShort
from ...models.error import Error
from typing import cast



def _get_kwargs(
    slug: str,

) -> dict[str, Any]:
    

    

    

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/for/{slug}/restart".format(slug=quote(str(slug), safe=""),),
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Any | CreatedShort | Error | None:
    if response.status_code == 200:
        response_200 = CreatedShort.from_dict(response.json())



        return response_200

    if response.status_code == 303:
        response_303 = cast(Any, None)
        return response_303

    if response.status_code == 400:
        response_400 = Error.from_dict(response.json())



        return response_400

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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Any | CreatedShort | Error]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    slug: str,
    *,
    client: AuthenticatedClient | Client,

) -> Response[Any | CreatedShort | Error]:
    """ Start an expired payment again as the customer

     Creates a payment with the terms of an expired one: amount, description, metadata, URLs and
    lifetime. Its metadata names the expired payment (`restartOf`). Repeated requests return the same
    payment. The merchant must allow it (`restartEnabled`); possible for 24 hours after the expiry,
    unless a transfer names the expired payment.

    Args:
        slug (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CreatedShort | Error]
     """


    kwargs = _get_kwargs(
        slug=slug,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    slug: str,
    *,
    client: AuthenticatedClient | Client,

) -> Any | CreatedShort | Error | None:
    """ Start an expired payment again as the customer

     Creates a payment with the terms of an expired one: amount, description, metadata, URLs and
    lifetime. Its metadata names the expired payment (`restartOf`). Repeated requests return the same
    payment. The merchant must allow it (`restartEnabled`); possible for 24 hours after the expiry,
    unless a transfer names the expired payment.

    Args:
        slug (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CreatedShort | Error
     """


    return sync_detailed(
        slug=slug,
client=client,

    ).parsed

async def asyncio_detailed(
    slug: str,
    *,
    client: AuthenticatedClient | Client,

) -> Response[Any | CreatedShort | Error]:
    """ Start an expired payment again as the customer

     Creates a payment with the terms of an expired one: amount, description, metadata, URLs and
    lifetime. Its metadata names the expired payment (`restartOf`). Repeated requests return the same
    payment. The merchant must allow it (`restartEnabled`); possible for 24 hours after the expiry,
    unless a transfer names the expired payment.

    Args:
        slug (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | CreatedShort | Error]
     """


    kwargs = _get_kwargs(
        slug=slug,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    slug: str,
    *,
    client: AuthenticatedClient | Client,

) -> Any | CreatedShort | Error | None:
    """ Start an expired payment again as the customer

     Creates a payment with the terms of an expired one: amount, description, metadata, URLs and
    lifetime. Its metadata names the expired payment (`restartOf`). Repeated requests return the same
    payment. The merchant must allow it (`restartEnabled`); possible for 24 hours after the expiry,
    unless a transfer names the expired payment.

    Args:
        slug (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | CreatedShort | Error
     """


    return (await asyncio_detailed(
        slug=slug,
client=client,

    )).parsed
