//! Streams of whole lists, for exports.

use std::{collections::VecDeque, sync::Arc};

use actors::EngineError;
use futures_util::stream::{self, BoxStream, StreamExt};
use storage::{Page, PageAt};
use tonic::Status;

use super::convert::error;

/// Returns a stream of the rows of a list, read page by page. Each page is read from a new snapshot, after the last row of
/// the previous page: no row occurs twice, and a slow reader keeps no snapshot open. Pages before the last may be empty.
pub(super) fn rows<T, F>(read: impl Fn(PageAt) -> F + Send + Sync + 'static) -> BoxStream<'static, Result<T, Status>>
where
    T: Send + 'static,
    F: Future<Output = Result<Page<T>, EngineError>> + Send + 'static,
{
    let start = (VecDeque::new(), Some(u128::MAX));
    let read = Arc::new(read);
    stream::try_unfold((start, read), |((mut page, mut next), read)| async move {
        while let (true, Some(last)) = (page.is_empty(), next) {
            let read = read(PageAt::Following(last)).await.map_err(|refused| Status::from(error(refused)))?;
            (page, next) = (VecDeque::from(read.items), read.next);
        }
        Ok(page.pop_front().map(|row| (row, ((page, next), read))))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_short_or_empty_page_is_not_the_end_of_an_export() {
        let page = |items: &[u64], next| Page { next, ..Page::of(items.to_vec(), 0) };
        let rows = rows(move |at| {
            let page = match at {
                PageAt::Following(u128::MAX) => page(&[9], Some(8)),
                PageAt::Following(8) => page(&[], Some(5)),
                PageAt::Following(5) => page(&[], Some(3)),
                PageAt::Following(3) => page(&[2, 1], None),
                other => panic!("{other:?}"),
            };
            async move { Ok(page) }
        });
        let rows: Vec<u64> = rows.map(|row| row.expect("a row")).collect().await;
        assert_eq!(rows, [9, 2, 1]);
    }
}
