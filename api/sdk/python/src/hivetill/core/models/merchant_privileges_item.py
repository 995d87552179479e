from typing import Literal

MerchantPrivilegesItem = Literal['admin']

MERCHANT_PRIVILEGES_ITEM_VALUES: set[MerchantPrivilegesItem] = { 'admin',  }

def check_merchant_privileges_item(value: str) -> MerchantPrivilegesItem:
    if value in MERCHANT_PRIVILEGES_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MERCHANT_PRIVILEGES_ITEM_VALUES!r}")
