from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.error import Error
from ...models.payment_page import PaymentPage
from ...models.payments_list_currency import check_payments_list_currency
from ...models.payments_list_currency import PaymentsListCurrency
from ...types import UNSET, Unset
from typing import cast
import datetime



def _get_kwargs(
    *,
    page: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    status: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    currency: PaymentsListCurrency | Unset = UNSET,
    min_amount: str | Unset = UNSET,
    max_amount: str | Unset = UNSET,
    unusual: bool | Unset = UNSET,
    ids: str | Unset = UNSET,
    query: str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    params["page"] = page

    params["limit"] = limit

    params["cursor"] = cursor

    params["status"] = status

    json_from_: str | Unset = UNSET
    if not isinstance(from_, Unset):
        json_from_ = from_.isoformat()
    params["from"] = json_from_

    json_to: str | Unset = UNSET
    if not isinstance(to, Unset):
        json_to = to.isoformat()
    params["to"] = json_to

    json_currency: str | Unset = UNSET
    if not isinstance(currency, Unset):
        json_currency = currency

    params["currency"] = json_currency

    params["minAmount"] = min_amount

    params["maxAmount"] = max_amount

    params["unusual"] = unusual

    params["ids"] = ids

    params["query"] = query


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/public/payments",
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Error | PaymentPage | None:
    if response.status_code == 200:
        response_200 = PaymentPage.from_dict(response.json())



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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Error | PaymentPage]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    status: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    currency: PaymentsListCurrency | Unset = UNSET,
    min_amount: str | Unset = UNSET,
    max_amount: str | Unset = UNSET,
    unusual: bool | Unset = UNSET,
    ids: str | Unset = UNSET,
    query: str | Unset = UNSET,

) -> Response[Error | PaymentPage]:
    """ List payments, newest first

     Lists the merchant's payments, newest first, in numbered pages or by cursor. Cursors are fast at any
    depth, but return no totals. A page may be shorter than `limit`, even empty, and still have a
    `nextCursor`, because filters by amount or words read a bounded number of payments at a time.
    `query` is a prefix search: each of its words must be the beginning of a word of the payment.
    Punctuation separates words, so `A-1` also finds `A-17` and `apple 12`: compare the field you need.

    The API key needs the scope `payments:read`.

    Args:
        page (int | Unset):
        limit (int | Unset):
        cursor (str | Unset):
        status (str | Unset):
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        currency (PaymentsListCurrency | Unset):
        min_amount (str | Unset):
        max_amount (str | Unset):
        unusual (bool | Unset):
        ids (str | Unset):
        query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Error | PaymentPage]
     """


    kwargs = _get_kwargs(
        page=page,
limit=limit,
cursor=cursor,
status=status,
from_=from_,
to=to,
currency=currency,
min_amount=min_amount,
max_amount=max_amount,
unusual=unusual,
ids=ids,
query=query,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    status: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    currency: PaymentsListCurrency | Unset = UNSET,
    min_amount: str | Unset = UNSET,
    max_amount: str | Unset = UNSET,
    unusual: bool | Unset = UNSET,
    ids: str | Unset = UNSET,
    query: str | Unset = UNSET,

) -> Error | PaymentPage | None:
    """ List payments, newest first

     Lists the merchant's payments, newest first, in numbered pages or by cursor. Cursors are fast at any
    depth, but return no totals. A page may be shorter than `limit`, even empty, and still have a
    `nextCursor`, because filters by amount or words read a bounded number of payments at a time.
    `query` is a prefix search: each of its words must be the beginning of a word of the payment.
    Punctuation separates words, so `A-1` also finds `A-17` and `apple 12`: compare the field you need.

    The API key needs the scope `payments:read`.

    Args:
        page (int | Unset):
        limit (int | Unset):
        cursor (str | Unset):
        status (str | Unset):
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        currency (PaymentsListCurrency | Unset):
        min_amount (str | Unset):
        max_amount (str | Unset):
        unusual (bool | Unset):
        ids (str | Unset):
        query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Error | PaymentPage
     """


    return sync_detailed(
        client=client,
page=page,
limit=limit,
cursor=cursor,
status=status,
from_=from_,
to=to,
currency=currency,
min_amount=min_amount,
max_amount=max_amount,
unusual=unusual,
ids=ids,
query=query,

    ).parsed

async def asyncio_detailed(
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    status: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    currency: PaymentsListCurrency | Unset = UNSET,
    min_amount: str | Unset = UNSET,
    max_amount: str | Unset = UNSET,
    unusual: bool | Unset = UNSET,
    ids: str | Unset = UNSET,
    query: str | Unset = UNSET,

) -> Response[Error | PaymentPage]:
    """ List payments, newest first

     Lists the merchant's payments, newest first, in numbered pages or by cursor. Cursors are fast at any
    depth, but return no totals. A page may be shorter than `limit`, even empty, and still have a
    `nextCursor`, because filters by amount or words read a bounded number of payments at a time.
    `query` is a prefix search: each of its words must be the beginning of a word of the payment.
    Punctuation separates words, so `A-1` also finds `A-17` and `apple 12`: compare the field you need.

    The API key needs the scope `payments:read`.

    Args:
        page (int | Unset):
        limit (int | Unset):
        cursor (str | Unset):
        status (str | Unset):
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        currency (PaymentsListCurrency | Unset):
        min_amount (str | Unset):
        max_amount (str | Unset):
        unusual (bool | Unset):
        ids (str | Unset):
        query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Error | PaymentPage]
     """


    kwargs = _get_kwargs(
        page=page,
limit=limit,
cursor=cursor,
status=status,
from_=from_,
to=to,
currency=currency,
min_amount=min_amount,
max_amount=max_amount,
unusual=unusual,
ids=ids,
query=query,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    *,
    client: AuthenticatedClient,
    page: int | Unset = UNSET,
    limit: int | Unset = UNSET,
    cursor: str | Unset = UNSET,
    status: str | Unset = UNSET,
    from_: datetime.datetime | Unset = UNSET,
    to: datetime.datetime | Unset = UNSET,
    currency: PaymentsListCurrency | Unset = UNSET,
    min_amount: str | Unset = UNSET,
    max_amount: str | Unset = UNSET,
    unusual: bool | Unset = UNSET,
    ids: str | Unset = UNSET,
    query: str | Unset = UNSET,

) -> Error | PaymentPage | None:
    """ List payments, newest first

     Lists the merchant's payments, newest first, in numbered pages or by cursor. Cursors are fast at any
    depth, but return no totals. A page may be shorter than `limit`, even empty, and still have a
    `nextCursor`, because filters by amount or words read a bounded number of payments at a time.
    `query` is a prefix search: each of its words must be the beginning of a word of the payment.
    Punctuation separates words, so `A-1` also finds `A-17` and `apple 12`: compare the field you need.

    The API key needs the scope `payments:read`.

    Args:
        page (int | Unset):
        limit (int | Unset):
        cursor (str | Unset):
        status (str | Unset):
        from_ (datetime.datetime | Unset):
        to (datetime.datetime | Unset):
        currency (PaymentsListCurrency | Unset):
        min_amount (str | Unset):
        max_amount (str | Unset):
        unusual (bool | Unset):
        ids (str | Unset):
        query (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Error | PaymentPage
     """


    return (await asyncio_detailed(
        client=client,
page=page,
limit=limit,
cursor=cursor,
status=status,
from_=from_,
to=to,
currency=currency,
min_amount=min_amount,
max_amount=max_amount,
unusual=unusual,
ids=ids,
query=query,

    )).parsed
