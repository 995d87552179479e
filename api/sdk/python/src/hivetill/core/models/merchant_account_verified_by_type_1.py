from typing import Literal

MerchantAccountVerifiedByType1 = Literal['operator', 'signature', 'transfer']

MERCHANT_ACCOUNT_VERIFIED_BY_TYPE_1_VALUES: set[MerchantAccountVerifiedByType1] = { 'operator', 'signature', 'transfer',  }

def check_merchant_account_verified_by_type_1(value: str) -> MerchantAccountVerifiedByType1:
    if value in MERCHANT_ACCOUNT_VERIFIED_BY_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MERCHANT_ACCOUNT_VERIFIED_BY_TYPE_1_VALUES!r}")
