//! A page of a list.

use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema,
        schema::{SchemaType, Type},
    },
};

/// Returns the token of the next page, if there is one.
pub(crate) fn token(token: &str) -> Option<&str> {
    Some(token).filter(|token| !token.is_empty())
}

/// A page of records.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    data: Vec<T>,
    pagination: Pagination,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Pagination {
    page: u32,
    limit: u32,
    /// Only for lists that were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total_pages: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    total_is_lower_bound: bool,
}

impl<T: ToSchema> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let text = SchemaType::from_iter([Type::String, Type::Null]);
        ObjectBuilder::new()
            .property("data", ArrayBuilder::new().items(Ref::from_schema_name(T::name())))
            .required("data")
            .property("pagination", Pagination::schema())
            .required("pagination")
            .property("nextCursor", ObjectBuilder::new().schema_type(text))
            .into()
    }
}

impl<T: ToSchema> ToSchema for Page<T> {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
    }
}

impl<T> Page<T> {
    pub(crate) fn new(data: Vec<T>, page: u32, limit: u32, total: u64, next_cursor: Option<String>) -> Self {
        let page = Self::uncounted(data, page, limit, next_cursor);
        page.counted(total, false)
    }

    /// Returns a page of a list without a total.
    pub(crate) const fn uncounted(data: Vec<T>, page: u32, limit: u32, next_cursor: Option<String>) -> Self {
        let pagination = Pagination { page, limit, total: None, total_pages: None, total_is_lower_bound: false };
        Self { data, pagination, next_cursor }
    }

    /// Adds the total, which is exact or a lower bound.
    pub(crate) fn counted(mut self, total: u64, is_lower_bound: bool) -> Self {
        let pages = total.div_ceil(u64::from(self.pagination.limit.max(1)));
        (self.pagination.total, self.pagination.total_pages) = (Some(total), Some(pages));
        self.pagination.total_is_lower_bound = is_lower_bound;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_count_from_the_total() {
        for (total, limit, pages) in [(0, 20, 0), (1, 20, 1), (20, 20, 1), (21, 20, 2)] {
            let page = Page::<()>::new(Vec::new(), 1, limit, total, None);
            assert_eq!(page.pagination.total_pages, Some(pages));
        }
    }
}
