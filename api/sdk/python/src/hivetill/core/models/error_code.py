from typing import Literal

ErrorCode = Literal['API_ERROR', 'AUTHENTICATION_ERROR', 'FORBIDDEN_ERROR', 'NOT_FOUND_ERROR', 'RATE_LIMIT_ERROR', 'SERVER_ERROR', 'VALIDATION_ERROR']

ERROR_CODE_VALUES: set[ErrorCode] = { 'API_ERROR', 'AUTHENTICATION_ERROR', 'FORBIDDEN_ERROR', 'NOT_FOUND_ERROR', 'RATE_LIMIT_ERROR', 'SERVER_ERROR', 'VALIDATION_ERROR',  }

def check_error_code(value: str) -> ErrorCode:
    if value in ERROR_CODE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ERROR_CODE_VALUES!r}")
