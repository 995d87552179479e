//! The embedded store behaves like the model.

use proptest::prelude::*;
use storage::{Batch, Store as _, Write};

use crate::{
    disk::Gate,
    model::{Model, batch_of, batches, compare, outcome},
    samples::*,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_store_behaves_like_its_model(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = in_memory();
            let mut model = Model::default();
            for tries in batches {
                let batch = batch_of(&tries, &model);
                let expected = model.commit(&batch);
                let got = store.commit(batch).await;
                assert_eq!(outcome(&got), outcome(&expected));
                compare(&store, &model).await;
            }
        });
    }
    #[test]
    fn a_group_has_the_same_outcomes_as_sequential_batches(batches in batches()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let gate = Gate::default();
            let store = gate.open(100);
            let mut model = Model::default();
            let (mut written, mut expected) = (Vec::new(), Vec::new());
            for tries in &batches {
                let batch = batch_of(tries, &model);
                expected.push(outcome(&model.commit(&batch)));
                written.push(batch);
            }
            gate.block();
            let mut first = store.commit(Batch::of(Write::Note { name: "first", value: Vec::new(), expected: None }));
            assert!(futures_util::poll!(&mut first).is_pending());
            gate.sync_is_blocked().await;
            let before = gate.syncs();
            let mut group = Box::pin(futures_util::future::join_all(written.into_iter().map(|batch| store.commit(batch))));
            let _ = futures_util::poll!(&mut group);
            gate.unblock();
            first.await.unwrap();
            let outcomes: Vec<String> = group.await.iter().map(outcome).collect();
            assert_eq!(outcomes, expected);
            assert!(gate.syncs() <= before + 2, "all of them are one group");
            compare(&store, &model).await;
        });
    }
}
