//! Seeded randomness: one stream per concern, so that an additional draw in one place changes no other stream.

/// A stream of numbers that follows from its seed (SplitMix64). Rates are in parts per million, since floats may differ by platform.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins a stream.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Begins an independent stream for a concern; this stream does not advance.
    #[must_use]
    pub fn fork(&self, tag: &str) -> Self {
        let mut hash = self.0 ^ 0xcbf2_9ce4_8422_2325;
        for byte in tag.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut fork = Self(hash);
        fork.draw();
        fork
    }

    /// Draws 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let wide = u128::from(self.draw()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Draws a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low).saturating_add(1))
    }

    /// Returns `true` `ppm` times in a million. A rate of 0 draws nothing.
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }

    /// Picks an index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Picks one.
    ///
    /// # Panics
    /// If there is nothing to pick from.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// Picks an index by weight.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.below(weights.iter().map(|weight| u64::from(*weight)).sum());
        for (at, weight) in weights.iter().enumerate() {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        0
    }

    /// Draws a latency of at most `max_ms`: often none, mostly short, seldom long, so that concurrent calls overlap.
    pub fn wait_ms(&mut self, max_ms: u64) -> u64 {
        if max_ms == 0 {
            return 0;
        }
        match self.below(8) {
            0..3 => 0,
            3..6 => self.below(max_ms / 16 + 1),
            6 => self.below(max_ms / 4 + 1),
            _ => self.below(max_ms + 1),
        }
    }

    /// Fills bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.draw().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_another_stream_and_leaves_its_parent_alone() {
        let root = Random::new(7);
        let (mut a, mut b, mut again) = (root.fork("ledger"), root.fork("disk"), root.fork("ledger"));
        let first = a.draw();
        assert_ne!(first, b.draw());
        assert_eq!(first, again.draw());
    }

    #[test]
    fn draws_stay_in_their_bounds_and_rates_are_about_right() {
        let mut random = Random::new(1);
        assert!((0..1_000).all(|_| (3..=5).contains(&random.between(3, 5))));
        let hits = (0..100_000).filter(|_| random.chance(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
        assert!(!random.chance(0));
        assert!((0..1_000).all(|_| random.weighted(&[0, 3, 0, 1]) % 2 == 1));
    }
}
