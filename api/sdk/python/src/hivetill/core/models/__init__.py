""" Contains all the data models used in inputs/outputs """

from .account_challenge import AccountChallenge
from .account_challenge_transfer import AccountChallengeTransfer
from .account_event import AccountEvent
from .account_event_data import AccountEventData
from .account_event_data_change import AccountEventDataChange
from .account_event_type import AccountEventType
from .account_proof import AccountProof
from .admin_billing_period import AdminBillingPeriod
from .admin_billing_period_status import AdminBillingPeriodStatus
from .admin_billing_periods_status import AdminBillingPeriodsStatus
from .admin_billing_summary import AdminBillingSummary
from .admin_billing_summary_current_month import AdminBillingSummaryCurrentMonth
from .admin_merchants_export_format import AdminMerchantsExportFormat
from .alive import Alive
from .alive_status import AliveStatus
from .amount import Amount
from .amount_currency import AmountCurrency
from .api_key import ApiKey
from .api_key_scopes_item import ApiKeyScopesItem
from .api_keys import ApiKeys
from .assign import Assign
from .audit_entry import AuditEntry
from .audit_entry_actor import AuditEntryActor
from .audit_entry_changes_item import AuditEntryChangesItem
from .audit_page import AuditPage
from .billing_overview import BillingOverview
from .billing_overview_merchants_item import BillingOverviewMerchantsItem
from .billing_overview_totals import BillingOverviewTotals
from .billing_period import BillingPeriod
from .billing_period_page import BillingPeriodPage
from .billing_period_page_pagination import BillingPeriodPagePagination
from .billing_period_status import BillingPeriodStatus
from .billing_summary import BillingSummary
from .billing_summary_current_month import BillingSummaryCurrentMonth
from .cancel_form import CancelForm
from .cancel_requested import CancelRequested
from .cancel_requested_status import CancelRequestedStatus
from .candidates import Candidates
from .candidates_data_item import CandidatesDataItem
from .candidates_data_item_matches_item import CandidatesDataItemMatchesItem
from .change_status import ChangeStatus
from .change_status_role import ChangeStatusRole
from .clear_hold import ClearHold
from .compliance_status import ComplianceStatus
from .compliance_status_clearances_item import ComplianceStatusClearancesItem
from .create_key import CreateKey
from .create_key_scopes_item import CreateKeyScopesItem
from .create_payment import CreatePayment
from .create_payment_currency import CreatePaymentCurrency
from .create_webhook_endpoint import CreateWebhookEndpoint
from .create_webhook_endpoint_events_item import CreateWebhookEndpointEventsItem
from .created import Created
from .created_currency import CreatedCurrency
from .created_short import CreatedShort
from .created_status import CreatedStatus
from .crossing import Crossing
from .crossing_window import CrossingWindow
from .current_status import CurrentStatus
from .current_status_status import CurrentStatusStatus
from .delivery import Delivery
from .delivery_list import DeliveryList
from .delivery_status import DeliveryStatus
from .delivery_trigger import DeliveryTrigger
from .delivery_with_attempts import DeliveryWithAttempts
from .delivery_with_attempts_attempt_log_item import DeliveryWithAttemptsAttemptLogItem
from .delivery_with_attempts_attempt_log_item_request_headers import DeliveryWithAttemptsAttemptLogItemRequestHeaders
from .delivery_with_attempts_attempt_log_item_trigger import DeliveryWithAttemptsAttemptLogItemTrigger
from .delivery_with_attempts_status import DeliveryWithAttemptsStatus
from .delivery_with_attempts_trigger import DeliveryWithAttemptsTrigger
from .description import Description
from .description_components import DescriptionComponents
from .description_info import DescriptionInfo
from .description_paths import DescriptionPaths
from .description_servers_item import DescriptionServersItem
from .description_tags_item import DescriptionTagsItem
from .description_webhooks import DescriptionWebhooks
from .enable_webhook import EnableWebhook
from .enabled_webhook import EnabledWebhook
from .enabled_webhook_events_item import EnabledWebhookEventsItem
from .enabled_webhook_status import EnabledWebhookStatus
from .error import Error
from .error_code import ErrorCode
from .error_details_item import ErrorDetailsItem
from .event_list import EventList
from .fee_rate import FeeRate
from .fee_tier import FeeTier
from .fee_tiers import FeeTiers
from .generate_invoices import GenerateInvoices
from .generated_invoices import GeneratedInvoices
from .generated_invoices_details_item import GeneratedInvoicesDetailsItem
from .health import Health
from .health_network import HealthNetwork
from .health_status import HealthStatus
from .ignore import Ignore
from .issue_challenge import IssueChallenge
from .live_status import LiveStatus
from .live_status_phase import LiveStatusPhase
from .live_status_status import LiveStatusStatus
from .made_key import MadeKey
from .made_webhook_endpoint import MadeWebhookEndpoint
from .merchant import Merchant
from .merchant_account_verification import MerchantAccountVerification
from .merchant_account_verified_by_type_1 import MerchantAccountVerifiedByType1
from .merchant_account_verified_by_type_2_type_1 import MerchantAccountVerifiedByType2Type1
from .merchant_account_verified_by_type_3_type_1 import MerchantAccountVerifiedByType3Type1
from .merchant_network import MerchantNetwork
from .merchant_page import MerchantPage
from .merchant_page_pagination import MerchantPagePagination
from .merchant_privileges_item import MerchantPrivilegesItem
from .merchant_webhook_events_item import MerchantWebhookEventsItem
from .metadata import Metadata
from .networks_item import NetworksItem
from .node import Node
from .node_condition import NodeCondition
from .nodes import Nodes
from .not_ready_type_0 import NotReadyType0
from .not_ready_type_0_status import NotReadyType0Status
from .paid import Paid
from .paid_status import PaidStatus
from .payment import Payment
from .payment_cancelled_by_type_1 import PaymentCancelledByType1
from .payment_cancelled_by_type_2_type_1 import PaymentCancelledByType2Type1
from .payment_cancelled_by_type_3_type_1 import PaymentCancelledByType3Type1
from .payment_currency import PaymentCurrency
from .payment_dossier import PaymentDossier
from .payment_dossier_timeline_item import PaymentDossierTimelineItem
from .payment_event import PaymentEvent
from .payment_event_data import PaymentEventData
from .payment_event_data_exceptions_item import PaymentEventDataExceptionsItem
from .payment_event_data_new_exceptions_item import PaymentEventDataNewExceptionsItem
from .payment_event_data_previous_status import PaymentEventDataPreviousStatus
from .payment_event_data_provider_id import PaymentEventDataProviderId
from .payment_event_data_refund import PaymentEventDataRefund
from .payment_event_data_refund_currency import PaymentEventDataRefundCurrency
from .payment_event_data_status import PaymentEventDataStatus
from .payment_event_type import PaymentEventType
from .payment_exceptions_item import PaymentExceptionsItem
from .payment_page import PaymentPage
from .payment_page_pagination import PaymentPagePagination
from .payment_previous_status_type_1 import PaymentPreviousStatusType1
from .payment_previous_status_type_2_type_1 import PaymentPreviousStatusType2Type1
from .payment_previous_status_type_3_type_1 import PaymentPreviousStatusType3Type1
from .payment_provider_id import PaymentProviderId
from .payment_refunds_item import PaymentRefundsItem
from .payment_required import PaymentRequired
from .payment_required_accepts_item import PaymentRequiredAcceptsItem
from .payment_required_accepts_item_extra import PaymentRequiredAcceptsItemExtra
from .payment_required_accepts_item_network import PaymentRequiredAcceptsItemNetwork
from .payment_required_accepts_item_scheme import PaymentRequiredAcceptsItemScheme
from .payment_required_accepts_item_x402_version import PaymentRequiredAcceptsItemX402Version
from .payment_required_code import PaymentRequiredCode
from .payment_required_x402_version import PaymentRequiredX402Version
from .payment_resolution_type_0 import PaymentResolutionType0
from .payment_resolution_type_0_kind import PaymentResolutionType0Kind
from .payment_status import PaymentStatus
from .payment_status_reason_type_1 import PaymentStatusReasonType1
from .payment_status_reason_type_2_type_1 import PaymentStatusReasonType2Type1
from .payment_status_reason_type_3_type_1 import PaymentStatusReasonType3Type1
from .payments_export_currency import PaymentsExportCurrency
from .payments_export_format import PaymentsExportFormat
from .payments_list_alias_currency import PaymentsListAliasCurrency
from .payments_list_currency import PaymentsListCurrency
from .payments_prepare_refund_currency import PaymentsPrepareRefundCurrency
from .pending_account import PendingAccount
from .proven_account import ProvenAccount
from .ready import Ready
from .ready_node import ReadyNode
from .ready_node_condition import ReadyNodeCondition
from .ready_status import ReadyStatus
from .reason import Reason
from .reconciliation_day import ReconciliationDay
from .reconciliation_day_findings_item import ReconciliationDayFindingsItem
from .reconciliation_day_findings_item_extra_item import ReconciliationDayFindingsItemExtraItem
from .reconciliation_day_findings_item_missing_item import ReconciliationDayFindingsItemMissingItem
from .reconciliation_day_outcome import ReconciliationDayOutcome
from .reconciliation_page import ReconciliationPage
from .refund_plan import RefundPlan
from .refund_plan_operation_item_type_1 import RefundPlanOperationItemType1
from .refund_plan_owed_item import RefundPlanOwedItem
from .register import Register
from .registered import Registered
from .reissued import Reissued
from .replay_webhooks import ReplayWebhooks
from .replayed import Replayed
from .resolve import Resolve
from .resolve_kind import ResolveKind
from .restart_form import RestartForm
from .roll_key import RollKey
from .rotate_secret import RotateSecret
from .sale import Sale
from .sale_event import SaleEvent
from .sale_event_data import SaleEventData
from .sale_event_data_currency import SaleEventDataCurrency
from .sale_event_type import SaleEventType
from .sale_kind import SaleKind
from .sale_list import SaleList
from .secret import Secret
from .set_active import SetActive
from .set_fee_tiers import SetFeeTiers
from .set_limits_type_1 import SetLimitsType1
from .settled import Settled
from .settled_extensions import SettledExtensions
from .settled_network import SettledNetwork
from .sum_ import Sum
from .sum_currency import SumCurrency
from .supported import Supported
from .supported_kinds_item import SupportedKindsItem
from .supported_kinds_item_extra import SupportedKindsItemExtra
from .supported_kinds_item_network import SupportedKindsItemNetwork
from .supported_kinds_item_scheme import SupportedKindsItemScheme
from .supported_kinds_item_x402_version import SupportedKindsItemX402Version
from .supported_signers import SupportedSigners
from .test_webhook import TestWebhook
from .test_webhook_status import TestWebhookStatus
from .test_webhook_type import TestWebhookType
from .thresholds import Thresholds
from .transfer import Transfer
from .transfer_disposition import TransferDisposition
from .transfer_finality import TransferFinality
from .transfer_list import TransferList
from .transfer_route import TransferRoute
from .unmatched import Unmatched
from .unmatched_event import UnmatchedEvent
from .unmatched_event_data import UnmatchedEventData
from .unmatched_event_data_currency import UnmatchedEventDataCurrency
from .unmatched_event_data_reason import UnmatchedEventDataReason
from .unmatched_event_type import UnmatchedEventType
from .unmatched_list import UnmatchedList
from .unmatched_reason import UnmatchedReason
from .unmatched_status import UnmatchedStatus
from .update_merchant import UpdateMerchant
from .update_merchant_webhook_events_item import UpdateMerchantWebhookEventsItem
from .update_webhook_endpoint import UpdateWebhookEndpoint
from .update_webhook_endpoint_events_item import UpdateWebhookEndpointEventsItem
from .verified import Verified
from .volume import Volume
from .volume_days_item import VolumeDaysItem
from .webhook_deliveries_export_format import WebhookDeliveriesExportFormat
from .webhook_endpoint import WebhookEndpoint
from .webhook_endpoint_events_item import WebhookEndpointEventsItem
from .webhook_endpoint_status import WebhookEndpointStatus
from .webhook_endpoints import WebhookEndpoints
from .x402_health import X402Health
from .x402_health_network import X402HealthNetwork
from .x402_health_status import X402HealthStatus
from .x402_request import X402Request
from .x402_request_payment_payload import X402RequestPaymentPayload
from .x402_request_payment_requirements import X402RequestPaymentRequirements

__all__ = (
    "AccountChallenge",
    "AccountChallengeTransfer",
    "AccountEvent",
    "AccountEventData",
    "AccountEventDataChange",
    "AccountEventType",
    "AccountProof",
    "AdminBillingPeriod",
    "AdminBillingPeriodsStatus",
    "AdminBillingPeriodStatus",
    "AdminBillingSummary",
    "AdminBillingSummaryCurrentMonth",
    "AdminMerchantsExportFormat",
    "Alive",
    "AliveStatus",
    "Amount",
    "AmountCurrency",
    "ApiKey",
    "ApiKeys",
    "ApiKeyScopesItem",
    "Assign",
    "AuditEntry",
    "AuditEntryActor",
    "AuditEntryChangesItem",
    "AuditPage",
    "BillingOverview",
    "BillingOverviewMerchantsItem",
    "BillingOverviewTotals",
    "BillingPeriod",
    "BillingPeriodPage",
    "BillingPeriodPagePagination",
    "BillingPeriodStatus",
    "BillingSummary",
    "BillingSummaryCurrentMonth",
    "CancelForm",
    "CancelRequested",
    "CancelRequestedStatus",
    "Candidates",
    "CandidatesDataItem",
    "CandidatesDataItemMatchesItem",
    "ChangeStatus",
    "ChangeStatusRole",
    "ClearHold",
    "ComplianceStatus",
    "ComplianceStatusClearancesItem",
    "Created",
    "CreatedCurrency",
    "CreatedShort",
    "CreatedStatus",
    "CreateKey",
    "CreateKeyScopesItem",
    "CreatePayment",
    "CreatePaymentCurrency",
    "CreateWebhookEndpoint",
    "CreateWebhookEndpointEventsItem",
    "Crossing",
    "CrossingWindow",
    "CurrentStatus",
    "CurrentStatusStatus",
    "Delivery",
    "DeliveryList",
    "DeliveryStatus",
    "DeliveryTrigger",
    "DeliveryWithAttempts",
    "DeliveryWithAttemptsAttemptLogItem",
    "DeliveryWithAttemptsAttemptLogItemRequestHeaders",
    "DeliveryWithAttemptsAttemptLogItemTrigger",
    "DeliveryWithAttemptsStatus",
    "DeliveryWithAttemptsTrigger",
    "Description",
    "DescriptionComponents",
    "DescriptionInfo",
    "DescriptionPaths",
    "DescriptionServersItem",
    "DescriptionTagsItem",
    "DescriptionWebhooks",
    "EnabledWebhook",
    "EnabledWebhookEventsItem",
    "EnabledWebhookStatus",
    "EnableWebhook",
    "Error",
    "ErrorCode",
    "ErrorDetailsItem",
    "EventList",
    "FeeRate",
    "FeeTier",
    "FeeTiers",
    "GeneratedInvoices",
    "GeneratedInvoicesDetailsItem",
    "GenerateInvoices",
    "Health",
    "HealthNetwork",
    "HealthStatus",
    "Ignore",
    "IssueChallenge",
    "LiveStatus",
    "LiveStatusPhase",
    "LiveStatusStatus",
    "MadeKey",
    "MadeWebhookEndpoint",
    "Merchant",
    "MerchantAccountVerification",
    "MerchantAccountVerifiedByType1",
    "MerchantAccountVerifiedByType2Type1",
    "MerchantAccountVerifiedByType3Type1",
    "MerchantNetwork",
    "MerchantPage",
    "MerchantPagePagination",
    "MerchantPrivilegesItem",
    "MerchantWebhookEventsItem",
    "Metadata",
    "NetworksItem",
    "Node",
    "NodeCondition",
    "Nodes",
    "NotReadyType0",
    "NotReadyType0Status",
    "Paid",
    "PaidStatus",
    "Payment",
    "PaymentCancelledByType1",
    "PaymentCancelledByType2Type1",
    "PaymentCancelledByType3Type1",
    "PaymentCurrency",
    "PaymentDossier",
    "PaymentDossierTimelineItem",
    "PaymentEvent",
    "PaymentEventData",
    "PaymentEventDataExceptionsItem",
    "PaymentEventDataNewExceptionsItem",
    "PaymentEventDataPreviousStatus",
    "PaymentEventDataProviderId",
    "PaymentEventDataRefund",
    "PaymentEventDataRefundCurrency",
    "PaymentEventDataStatus",
    "PaymentEventType",
    "PaymentExceptionsItem",
    "PaymentPage",
    "PaymentPagePagination",
    "PaymentPreviousStatusType1",
    "PaymentPreviousStatusType2Type1",
    "PaymentPreviousStatusType3Type1",
    "PaymentProviderId",
    "PaymentRefundsItem",
    "PaymentRequired",
    "PaymentRequiredAcceptsItem",
    "PaymentRequiredAcceptsItemExtra",
    "PaymentRequiredAcceptsItemNetwork",
    "PaymentRequiredAcceptsItemScheme",
    "PaymentRequiredAcceptsItemX402Version",
    "PaymentRequiredCode",
    "PaymentRequiredX402Version",
    "PaymentResolutionType0",
    "PaymentResolutionType0Kind",
    "PaymentsExportCurrency",
    "PaymentsExportFormat",
    "PaymentsListAliasCurrency",
    "PaymentsListCurrency",
    "PaymentsPrepareRefundCurrency",
    "PaymentStatus",
    "PaymentStatusReasonType1",
    "PaymentStatusReasonType2Type1",
    "PaymentStatusReasonType3Type1",
    "PendingAccount",
    "ProvenAccount",
    "Ready",
    "ReadyNode",
    "ReadyNodeCondition",
    "ReadyStatus",
    "Reason",
    "ReconciliationDay",
    "ReconciliationDayFindingsItem",
    "ReconciliationDayFindingsItemExtraItem",
    "ReconciliationDayFindingsItemMissingItem",
    "ReconciliationDayOutcome",
    "ReconciliationPage",
    "RefundPlan",
    "RefundPlanOperationItemType1",
    "RefundPlanOwedItem",
    "Register",
    "Registered",
    "Reissued",
    "Replayed",
    "ReplayWebhooks",
    "Resolve",
    "ResolveKind",
    "RestartForm",
    "RollKey",
    "RotateSecret",
    "Sale",
    "SaleEvent",
    "SaleEventData",
    "SaleEventDataCurrency",
    "SaleEventType",
    "SaleKind",
    "SaleList",
    "Secret",
    "SetActive",
    "SetFeeTiers",
    "SetLimitsType1",
    "Settled",
    "SettledExtensions",
    "SettledNetwork",
    "Sum",
    "SumCurrency",
    "Supported",
    "SupportedKindsItem",
    "SupportedKindsItemExtra",
    "SupportedKindsItemNetwork",
    "SupportedKindsItemScheme",
    "SupportedKindsItemX402Version",
    "SupportedSigners",
    "TestWebhook",
    "TestWebhookStatus",
    "TestWebhookType",
    "Thresholds",
    "Transfer",
    "TransferDisposition",
    "TransferFinality",
    "TransferList",
    "TransferRoute",
    "Unmatched",
    "UnmatchedEvent",
    "UnmatchedEventData",
    "UnmatchedEventDataCurrency",
    "UnmatchedEventDataReason",
    "UnmatchedEventType",
    "UnmatchedList",
    "UnmatchedReason",
    "UnmatchedStatus",
    "UpdateMerchant",
    "UpdateMerchantWebhookEventsItem",
    "UpdateWebhookEndpoint",
    "UpdateWebhookEndpointEventsItem",
    "Verified",
    "Volume",
    "VolumeDaysItem",
    "WebhookDeliveriesExportFormat",
    "WebhookEndpoint",
    "WebhookEndpointEventsItem",
    "WebhookEndpoints",
    "WebhookEndpointStatus",
    "X402Health",
    "X402HealthNetwork",
    "X402HealthStatus",
    "X402Request",
    "X402RequestPaymentPayload",
    "X402RequestPaymentRequirements",
)
