//! A copy of the workspace that contains every mutant, each behind a switch that is read at run time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Result,
    rules::{self, Mutant, Place},
};

/// The mutated sources: the payment core, the actors around it, and the commit path of the embedded store.
const SOURCES: &[&str] = &[
    "engine/src/payment/",
    "engine/src/x402/",
    "engine/src/webhook/",
    "actors/src/chain/",
    "actors/src/payments/",
    "actors/src/scanner/",
    "actors/src/webhooks/",
    "actors/src/x402/",
    "storage/src/batch.rs",
    "storage/src/embedded/commit/",
    "storage/src/embedded/wal/",
];

/// Files of [`SOURCES`] that are left out: HTTP, which a simulation replaces, with tests of its own; log lines; and the
/// threads of the writer, whose interleavings loom explores.
const LEFT_OUT: &[&str] = &[
    "actors/src/chain/hive_rpc.rs",
    "actors/src/webhooks/addresses.rs",
    "actors/src/webhooks/http.rs",
    "actors/src/payments/transfer_log.rs",
    "actors/src/scanner/unknown_operations.rs",
    "storage/src/embedded/commit/interleavings",
    "storage/src/embedded/commit/queue.rs",
];

/// The switch, in the copy of `engine`: `RECORD` has every mutant off and prints each that is passed for the first time.
const SWITCH: &str = r#"
/// The switch of mechanical mutants.
pub mod mechanical {
    use std::sync::{LazyLock, atomic::{AtomicBool, Ordering}};
    const COUNT: usize = @COUNT@;
    const RECORD: usize = usize::MAX;
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
    static CHOSEN: LazyLock<usize> = LazyLock::new(|| match std::env::var("HIVETILL_MECHANICAL").as_deref() {
        Ok("record") => RECORD,
        Ok(number) => number.parse().unwrap_or(COUNT),
        Err(_) => COUNT,
    });
    /// Whether it is on.
    #[must_use]
    #[inline]
    pub fn is(number: usize) -> bool {
        let chosen = *CHOSEN;
        if chosen == RECORD && !REACHED[number].swap(true, Ordering::Relaxed) {
            println!("reached {number}");
        }
        chosen == number
    }
}
"#;

/// Returns every file that is mutated, with what is in it, and every mutant.
pub(crate) fn find(root: &Path) -> Result<(BTreeMap<String, String>, Vec<Mutant>)> {
    let (mut sources, mut mutants) = (BTreeMap::new(), Vec::new());
    for file in tracked(root)? {
        let is_in = |paths: &[&str]| paths.iter().any(|path| file.starts_with(path));
        if is_in(SOURCES) && !is_in(LEFT_OUT) && file.ends_with(".rs") && !file.contains("test") {
            let source = fs::read_to_string(root.join(&file))?;
            mutants.extend(rules::mutants_of(&file, &source)?);
            sources.insert(file, source);
        }
    }
    Ok((sources, mutants))
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()?;
    Ok(String::from_utf8(listed.stdout)?.lines().map(str::to_owned).collect())
}

/// Copies the workspace, writes the mutants into it, and leaves out those that do not compile. Returns the others.
pub(crate) fn grow(root: &Path, tree: &Path, report: impl Fn(&str)) -> Result<Vec<Mutant>> {
    let (sources, mutants) = find(root)?;
    report(&format!("{} mutants in {} files", mutants.len(), sources.len()));
    for file in tracked(root)? {
        let (from, to) = (root.join(&file), tree.join(&file));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        if from.is_file() && !sources.contains_key(&file) {
            write_changed(&to, &fs::read(&from)?)?;
        }
    }
    let mut out: BTreeSet<usize> = BTreeSet::new();
    loop {
        let mut written = BTreeMap::new();
        for (file, source) in &sources {
            let page = Page::render(file, source, &mutants, &out);
            write_changed(&tree.join(file), page.text.as_bytes())?;
            written.insert(file.clone(), page);
        }
        let lib = fs::read_to_string(root.join("engine/src/lib.rs"))?;
        write_changed(
            &tree.join("engine/src/lib.rs"),
            format!("{lib}{}", SWITCH.replace("@COUNT@", &mutants.len().to_string())).as_bytes(),
        )?;
        let errors = check(tree)?;
        if errors.is_empty() {
            break;
        }
        let before = out.len();
        for spans in &errors {
            // The primary span; otherwise, for a value that is moved or not set, the spans of its notes.
            let owners = |own: bool| {
                let page =
                    |(file, at): &(String, Range<usize>)| written.get(file).and_then(|page| page.owners(at, own));
                spans.iter().filter_map(page).min_by_key(|(size, _)| *size)
            };
            let near = || spans.iter().find_map(|(file, at)| Some((0, written.get(file)?.near(at))));
            let found = owners(true).or_else(|| owners(false)).or_else(near);
            out.extend(found.into_iter().flat_map(|(_, numbers)| numbers));
        }
        report(&format!("{} errors; {} of {} mutants do not compile", errors.len(), out.len(), mutants.len()));
        if out.len() == before {
            return Err(format!("these errors belong to no mutant: {errors:?}").into());
        }
    }
    let mut number = 0..;
    let kept: Vec<_> = mutants
        .iter()
        .zip(&mut number)
        .filter(|(_, number)| !out.contains(number))
        .map(|(one, _)| one.clone())
        .collect();
    // Numbered anew, without gaps.
    for (file, source) in &sources {
        write_changed(&tree.join(file), Page::render(file, source, &kept, &BTreeSet::new()).text.as_bytes())?;
    }
    Ok(kept)
}

/// What did not change keeps its time, so that it is not compiled again.
fn write_changed(path: &PathBuf, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    Ok(fs::write(path, content)?)
}

/// The file and bytes of one error of the compiler, then those of its notes.
type Spans = Vec<(String, Range<usize>)>;

/// Returns a command of cargo about the copy, in one profile, so that macros and build scripts are compiled once.
pub(crate) fn cargo(command: &str, tree: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([command, "--quiet", "--release", "-p", "simulations", "--example", "mechanical"]).current_dir(tree);
    // Full optimization is not worth its compile time here; overflow must be detected.
    cargo.env("RUSTFLAGS", "-A warnings").env("CARGO_PROFILE_RELEASE_LTO", "off");
    cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16").env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    cargo
}

/// Compiles, and returns where the errors are.
fn check(tree: &Path) -> Result<Vec<Spans>> {
    let output = cargo("check", tree).args(["--message-format=json", "--keep-going"]).output()?;
    let mut errors = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let of = |message: &serde_json::Value| message["spans"].as_array().cloned().unwrap_or_default();
        let mut spans = of(message);
        spans.sort_by_key(|span| !span["is_primary"].as_bool().unwrap_or(false));
        spans.extend(message["children"].as_array().into_iter().flatten().flat_map(of));
        let spans: Vec<_> = spans.iter().flat_map(with_expansions).filter_map(place).collect();
        // A message without a span has only the number of errors.
        if !spans.is_empty() {
            errors.push(spans);
        }
    }
    if errors.is_empty() && !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(errors)
}

/// Returns a span and those of the macro expansions around it.
fn with_expansions(span: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    std::iter::successors(Some(span), |span| Some(&span["expansion"]["span"]).filter(|outer| outer.is_object()))
}

/// Returns the file and the bytes of a span.
fn place(span: &serde_json::Value) -> Option<(String, Range<usize>)> {
    let at = |name: &str| usize::try_from(span[name].as_u64()?).ok();
    Some((span["file_name"].as_str()?.to_owned(), at("byte_start")?..at("byte_end")?))
}

/// A file with mutants written into it.
struct Page {
    text: String,
    parts: Vec<Part>,
}

/// Where mutants are in a page.
struct Part {
    range: Range<usize>,
    mutants: Vec<usize>,
    /// Whether it is what a mutant puts there, not the whole place with what was there before.
    is_own: bool,
}

impl Page {
    fn render(file: &str, source: &str, mutants: &[Mutant], out: &BTreeSet<usize>) -> Self {
        let mut sites: Vec<(Range<usize>, Place, Vec<usize>)> = Vec::new();
        for (number, one) in
            mutants.iter().enumerate().filter(|(number, one)| one.file == file && !out.contains(number))
        {
            match sites.last_mut() {
                Some((range, place, numbers)) if *range == one.range && *place == one.place => numbers.push(number),
                _ => sites.push((one.range.clone(), one.place, vec![number])),
            }
        }
        let mut page = Self { text: String::new(), parts: Vec::new() };
        let path = if file.starts_with("engine/") { "crate" } else { "engine" };
        page.write(source, 0..source.len(), &sites, mutants, path);
        page
    }

    fn write(
        &mut self,
        source: &str,
        range: Range<usize>,
        sites: &[(Range<usize>, Place, Vec<usize>)],
        mutants: &[Mutant],
        path: &str,
    ) {
        let (mut at, mut next) = (range.start, 0);
        while let Some((place_range, place, numbers)) = sites.get(next) {
            let inner = sites[next + 1..]
                .iter()
                .take_while(|(one, ..)| one.end <= place_range.end && one.start < place_range.end)
                .count();
            self.text.push_str(&source[at..place_range.start]);
            let begun = self.text.len();
            if *place == Place::Arm {
                let number = numbers.first().copied().unwrap_or_default();
                let _ = write!(self.text, " if !{path}::mechanical::is({number})");
            } else {
                if *place == Place::Expression {
                    self.text.push('(');
                }
                for number in numbers {
                    let _ = write!(self.text, "if {path}::mechanical::is({number}) {{ ");
                    let own = self.text.len();
                    self.text.push_str(&mutants[*number].after);
                    self.parts.push(Part { range: own..self.text.len(), mutants: vec![*number], is_own: true });
                    self.text.push_str(" } else ");
                }
                self.text.push_str("{ ");
                self.write(source, place_range.clone(), &sites[next + 1..=next + inner], mutants, path);
                self.text.push_str(if *place == Place::Expression { " })" } else { " }" });
            }
            self.parts.push(Part {
                range: begun..self.text.len(),
                mutants: numbers.clone(),
                is_own: *place == Place::Arm,
            });
            at = place_range.end;
            next += inner + 1;
        }
        self.text.push_str(&source[at..range.end]);
    }

    /// Returns the mutants of the smallest part that an error lies in, with its size. With `own` only what a mutant puts
    /// there is looked at, not what surrounds it.
    fn owners(&self, error: &Range<usize>, own: bool) -> Option<(usize, Vec<usize>)> {
        let around = self.parts.iter().filter(|part| part.range.start <= error.start && error.end <= part.range.end);
        let smallest = around.filter(|part| part.is_own || !own).min_by_key(|part| part.range.len())?;
        Some((smallest.range.len(), smallest.mutants.clone()))
    }

    /// Returns the mutants inside an error, or the nearest before it.
    fn near(&self, error: &Range<usize>) -> Vec<usize> {
        let inside = self.parts.iter().filter(|part| error.start <= part.range.start && part.range.end <= error.end);
        let inside: Vec<usize> = inside.flat_map(|part| part.mutants.clone()).collect();
        if !inside.is_empty() {
            return inside;
        }
        let before = self.parts.iter().filter(|part| part.range.end <= error.start);
        before.max_by_key(|part| part.range.end).map(|part| part.mutants.clone()).unwrap_or_default()
    }
}
