from typing import Literal

CandidatesDataItemMatchesItem = Literal['amount', 'payer', 'time']

CANDIDATES_DATA_ITEM_MATCHES_ITEM_VALUES: set[CandidatesDataItemMatchesItem] = { 'amount', 'payer', 'time',  }

def check_candidates_data_item_matches_item(value: str) -> CandidatesDataItemMatchesItem:
    if value in CANDIDATES_DATA_ITEM_MATCHES_ITEM_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CANDIDATES_DATA_ITEM_MATCHES_ITEM_VALUES!r}")
