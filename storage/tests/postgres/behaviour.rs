//! The PostgreSQL store behaves like the model and like the embedded store.

use std::sync::Arc;

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestCaseError, TestRunner},
};
use storage::{Batch, PostgresStore, Store};

use crate::{
    model::{Model, Try, batch_of, batches, compare, outcome, tries},
    runtime,
    samples::in_memory,
    store,
};

crate::tests!(both_stores_behave_like_the_model, a_group_has_the_same_outcomes_as_sequential_batches);

/// The number of cases of proptest unless `PROPTEST_CASES` is set.
const DEFAULT_CASES: u32 = 256;
/// The number of cases here unless `PROPTEST_CASES` is set: each case makes thousands of round trips.
const CASES: u32 = 12;

pub(crate) fn runner() -> TestRunner {
    let default = Config::default();
    let cases = if default.cases == DEFAULT_CASES { CASES } else { default.cases };
    TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 200, ..default })
}

fn both_stores_behave_like_the_model() {
    let runtime = runtime();
    let tried = runner().run(&batches(), |batches| {
        runtime.block_on(async {
            let (embedded, postgres) = (in_memory(), store().await);
            let mut model = Model::default();
            for tries in batches {
                let batch = batch_of(&tries, &model);
                let expected = outcome(&model.commit(&batch));
                assert_eq!(outcome(&embedded.commit(batch.clone()).await), expected);
                assert_eq!(outcome(&postgres.commit(batch).await), expected);
                compare(&*postgres, &model).await;
            }
            compare(&embedded, &model).await;
            postgres.close().await;
        });
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}

/// Commits batches that are all in the queue before the first of them is done: they form groups, in their order.
async fn together(store: &Arc<PostgresStore>, batches: Vec<Batch>) -> Vec<String> {
    let commits = batches.into_iter().map(|batch| store.commit(batch));
    futures_util::future::join_all(commits).await.iter().map(outcome).collect()
}

fn a_group_has_the_same_outcomes_as_sequential_batches() {
    let runtime = runtime();
    let groups = proptest::collection::vec(proptest::collection::vec(tries(), 1..5), 20..40);
    let tried = runner().run(&groups.boxed(), |tries: Vec<Vec<Try>>| {
        runtime.block_on(async {
            let store = store().await;
            let mut model = Model::default();
            let (mut batches, mut expected) = (Vec::new(), Vec::new());
            for tries in &tries {
                let batch = batch_of(tries, &model);
                expected.push(outcome(&model.commit(&batch)));
                batches.push(batch);
            }
            let outcomes = together(&store, batches).await;
            if outcomes != expected {
                return Err(TestCaseError::fail(format!("{outcomes:?} instead of {expected:?}")));
            }
            compare(&*store, &model).await;
            store.close().await;
            Ok(())
        })
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
}
