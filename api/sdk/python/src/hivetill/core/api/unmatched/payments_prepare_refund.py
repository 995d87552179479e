from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...types import Response, UNSET
from ... import errors

from ...models.error import Error
from ...models.payments_prepare_refund_currency import check_payments_prepare_refund_currency
from ...models.payments_prepare_refund_currency import PaymentsPrepareRefundCurrency
from ...models.refund_plan import RefundPlan
from ...types import UNSET, Unset
from typing import cast



def _get_kwargs(
    id: str,
    *,
    amount: str | Unset = UNSET,
    currency: PaymentsPrepareRefundCurrency | Unset = UNSET,
    to: str | Unset = UNSET,

) -> dict[str, Any]:
    

    

    params: dict[str, Any] = {}

    params["amount"] = amount

    json_currency: str | Unset = UNSET
    if not isinstance(currency, Unset):
        json_currency = currency

    params["currency"] = json_currency

    params["to"] = to


    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}


    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/api/public/payments/{id}/refund".format(id=quote(str(id), safe=""),),
        "params": params,
    }


    return _kwargs



def _parse_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Error | RefundPlan | None:
    if response.status_code == 200:
        response_200 = RefundPlan.from_dict(response.json())



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


def _build_response(*, client: AuthenticatedClient | Client, response: httpx.Response) -> Response[Error | RefundPlan]:
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
    amount: str | Unset = UNSET,
    currency: PaymentsPrepareRefundCurrency | Unset = UNSET,
    to: str | Unset = UNSET,

) -> Response[Error | RefundPlan]:
    """ Prepare a refund for signing

     Returns the transfer that refunds the payment, for your wallet to sign. The gateway holds no keys.
    The gateway recognizes the refund on the ledger by its memo, `refund-<payment id>`. The amount owed
    is known once the block of the transfer is irreversible; before that, the call requires an `amount`.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        amount (str | Unset):
        currency (PaymentsPrepareRefundCurrency | Unset):
        to (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Error | RefundPlan]
     """


    kwargs = _get_kwargs(
        id=id,
amount=amount,
currency=currency,
to=to,

    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)

def sync(
    id: str,
    *,
    client: AuthenticatedClient,
    amount: str | Unset = UNSET,
    currency: PaymentsPrepareRefundCurrency | Unset = UNSET,
    to: str | Unset = UNSET,

) -> Error | RefundPlan | None:
    """ Prepare a refund for signing

     Returns the transfer that refunds the payment, for your wallet to sign. The gateway holds no keys.
    The gateway recognizes the refund on the ledger by its memo, `refund-<payment id>`. The amount owed
    is known once the block of the transfer is irreversible; before that, the call requires an `amount`.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        amount (str | Unset):
        currency (PaymentsPrepareRefundCurrency | Unset):
        to (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Error | RefundPlan
     """


    return sync_detailed(
        id=id,
client=client,
amount=amount,
currency=currency,
to=to,

    ).parsed

async def asyncio_detailed(
    id: str,
    *,
    client: AuthenticatedClient,
    amount: str | Unset = UNSET,
    currency: PaymentsPrepareRefundCurrency | Unset = UNSET,
    to: str | Unset = UNSET,

) -> Response[Error | RefundPlan]:
    """ Prepare a refund for signing

     Returns the transfer that refunds the payment, for your wallet to sign. The gateway holds no keys.
    The gateway recognizes the refund on the ledger by its memo, `refund-<payment id>`. The amount owed
    is known once the block of the transfer is irreversible; before that, the call requires an `amount`.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        amount (str | Unset):
        currency (PaymentsPrepareRefundCurrency | Unset):
        to (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Error | RefundPlan]
     """


    kwargs = _get_kwargs(
        id=id,
amount=amount,
currency=currency,
to=to,

    )

    response = await client.get_async_httpx_client().request(
        **kwargs
    )

    return _build_response(client=client, response=response)

async def asyncio(
    id: str,
    *,
    client: AuthenticatedClient,
    amount: str | Unset = UNSET,
    currency: PaymentsPrepareRefundCurrency | Unset = UNSET,
    to: str | Unset = UNSET,

) -> Error | RefundPlan | None:
    """ Prepare a refund for signing

     Returns the transfer that refunds the payment, for your wallet to sign. The gateway holds no keys.
    The gateway recognizes the refund on the ledger by its memo, `refund-<payment id>`. The amount owed
    is known once the block of the transfer is irreversible; before that, the call requires an `amount`.

    The API key needs the scope `payments:read`.

    Args:
        id (str):
        amount (str | Unset):
        currency (PaymentsPrepareRefundCurrency | Unset):
        to (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Error | RefundPlan
     """


    return (await asyncio_detailed(
        id=id,
client=client,
amount=amount,
currency=currency,
to=to,

    )).parsed
