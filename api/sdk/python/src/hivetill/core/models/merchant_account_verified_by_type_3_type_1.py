from typing import Literal

MerchantAccountVerifiedByType3Type1 = Literal['operator', 'signature', 'transfer']

MERCHANT_ACCOUNT_VERIFIED_BY_TYPE_3_TYPE_1_VALUES: set[MerchantAccountVerifiedByType3Type1] = { 'operator', 'signature', 'transfer',  }

def check_merchant_account_verified_by_type_3_type_1(value: str) -> MerchantAccountVerifiedByType3Type1:
    if value in MERCHANT_ACCOUNT_VERIFIED_BY_TYPE_3_TYPE_1_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MERCHANT_ACCOUNT_VERIFIED_BY_TYPE_3_TYPE_1_VALUES!r}")
