from typing import Literal

PaymentRequiredCode = Literal['API_ERROR', 'AUTHENTICATION_ERROR', 'FORBIDDEN_ERROR', 'NOT_FOUND_ERROR', 'RATE_LIMIT_ERROR', 'SERVER_ERROR', 'VALIDATION_ERROR']

PAYMENT_REQUIRED_CODE_VALUES: set[PaymentRequiredCode] = { 'API_ERROR', 'AUTHENTICATION_ERROR', 'FORBIDDEN_ERROR', 'NOT_FOUND_ERROR', 'RATE_LIMIT_ERROR', 'SERVER_ERROR', 'VALIDATION_ERROR',  }

def check_payment_required_code(value: str) -> PaymentRequiredCode:
    if value in PAYMENT_REQUIRED_CODE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {PAYMENT_REQUIRED_CODE_VALUES!r}")
