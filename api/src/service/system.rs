//! The fee rate, and the health of the engine and its nodes.

use actors::{EngineError, NodeState};
use proto::v1::{self, Health, fee_service_server::FeeService, system_service_server::SystemService};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{error, ledger_network, timestamp},
};

#[tonic::async_trait]
impl FeeService for Service {
    async fn get_fee_rate(
        &self,
        _: Request<v1::GetFeeRateRequest>,
    ) -> Result<Response<v1::GetFeeRateResponse>, Status> {
        let fee_percent_ten_thousandths = self.engine.fee_percent().ten_thousandths();
        Ok(Response::new(v1::GetFeeRateResponse { fee_percent_ten_thousandths }))
    }
}

#[tonic::async_trait]
impl SystemService for Service {
    async fn get_health(&self, _: Request<v1::GetHealthRequest>) -> Result<Response<v1::GetHealthResponse>, Status> {
        let network = self.engine.network();
        let report = match self.engine.operations.health().await {
            Ok(report) => report,
            Err(EngineError::StoreFailed) => {
                return Ok(Response::new(v1::GetHealthResponse {
                    health: Health::Unavailable.into(),
                    network: ledger_network(network).into(),
                    livemode: network.is_live(),
                    ..v1::GetHealthResponse::default()
                }));
            }
            Err(other) => return Err(error(other).into()),
        };
        let is_available = report.store_unavailable.is_none();
        let is_healthy = report.ledger.is_reachable && report.is_following;
        let (nodes, needed) = self.engine.chain.nodes();
        Ok(Response::new(v1::GetHealthResponse {
            health: match is_available {
                false => Health::Unavailable,
                true if is_healthy => Health::Ok,
                true => Health::Degraded,
            }
            .into(),
            ledger_reachable: report.ledger.is_reachable,
            ledger_followed: report.is_following,
            head_block: report.ledger.head_num,
            irreversible_block: report.ledger.irreversible_num,
            scanned_block: report.ledger.scanned_num,
            active_sessions: report.active as u64,
            damaged_rows: report.damaged_rows,
            nodes: nodes.into_iter().map(ledger_node).collect(),
            nodes_needed: u32::try_from(needed).unwrap_or(u32::MAX),
            head_age_seconds: self.engine.chain.head_age().map(|age| age.as_secs()),
            network: ledger_network(network).into(),
            livemode: network.is_live(),
        }))
    }

    async fn list_nodes(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        self.admin(&request).await?;
        let (nodes, needed) = self.engine.chain.nodes();
        let nodes = nodes.into_iter().map(ledger_node);
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        Ok(Response::new(v1::ListNodesResponse { nodes: nodes.collect(), needed }))
    }
}

fn ledger_node(node: NodeState) -> v1::LedgerNode {
    v1::LedgerNode {
        name: node.name,
        failures: node.failures,
        last_response_at: node.answered_at.map(timestamp),
        backoff_until: node.backoff_until.map(timestamp),
        condition: super::enums::condition(node.condition).into(),
        head_block: node.head_num,
    }
}
