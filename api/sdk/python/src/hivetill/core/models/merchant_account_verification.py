from typing import Literal

MerchantAccountVerification = Literal['stale', 'unverified', 'verified']

MERCHANT_ACCOUNT_VERIFICATION_VALUES: set[MerchantAccountVerification] = { 'stale', 'unverified', 'verified',  }

def check_merchant_account_verification(value: str) -> MerchantAccountVerification:
    if value in MERCHANT_ACCOUNT_VERIFICATION_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {MERCHANT_ACCOUNT_VERIFICATION_VALUES!r}")
