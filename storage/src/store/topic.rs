//! The macro that declares a topic: it turns the topic's reads into a trait, and implements the trait for every
//! [`Wrapped`] store.

/// Declares the trait of a topic. Each read takes `&self` and returns a [`Read`](crate::Read) of the type after the
/// arrow.
macro_rules! topic {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$read_doc:meta])* $read:ident($($argument:ident: $type:ty),* $(,)?) -> $answer:ty;)+
    }) => {
        $(#[$doc])*
        pub trait $name: Send + Sync {
            $($(#[$read_doc])* fn $read(&self, $($argument: $type),*) -> Read<'_, $answer>;)+
        }

        impl<W: Wrapped> $name for W
        where
            W::Inner: $name,
        {
            $(fn $read(&self, $($argument: $type),*) -> Read<'_, $answer> {
                let call = Call { name: stringify!($read), arguments: &[$(&$argument),*] };
                match self.before(&call) {
                    Ok(()) => self.around(stringify!($read), move || self.inner().$read($($argument.clone()),*)),
                    Err(error) => Box::pin(std::future::ready(Err(error))),
                }
            })+
        }
    };
}
pub(crate) use topic;
