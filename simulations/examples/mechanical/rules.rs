//! The rules: where in a source file a mutant can be, and what it does there.

use std::ops::Range;

use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprIf, File, ImplItemFn, ItemConst, ItemFn, ItemImpl, ItemMod, ItemStatic,
    Lit, Pat, Stmt, Type, UnOp,
    spanned::Spanned,
    visit::{self, Visit},
};

/// How a mutant is written into the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A statement: `if on { after } else { before }`.
    Statement,
    /// An expression, the same in parentheses.
    Expression,
    /// A match arm without a guard: it gets one that is false while the mutant is on.
    Arm,
}

/// A mutant.
#[derive(Debug, Clone)]
pub(crate) struct Mutant {
    /// The file, from the workspace's folder.
    pub(crate) file: String,
    /// The function that it is in.
    pub(crate) function: String,
    /// Its line.
    pub(crate) line: usize,
    /// The rule that made it.
    pub(crate) rule: &'static str,
    /// Where it is written.
    pub(crate) place: Place,
    /// The bytes it replaces; none for an arm.
    pub(crate) range: Range<usize>,
    /// What is there.
    pub(crate) before: String,
    /// What is there instead while it is on.
    pub(crate) after: String,
}

/// Methods that look alike and do the opposite.
const OPPOSITES: &[(&str, &str)] = &[
    ("min", "max"),
    ("any", "all"),
    ("first", "last"),
    ("is_some", "is_none"),
    ("is_ok", "is_err"),
    ("is_some_and", "is_none_or"),
    ("and", "or"),
    ("saturating_add", "saturating_sub"),
    ("checked_add", "checked_sub"),
    ("wrapping_add", "wrapping_sub"),
    ("push_back", "push_front"),
    ("pop_front", "pop_back"),
    ("next", "next_back"),
    ("first_key_value", "last_key_value"),
];

/// Calls that only report: no behaviour depends on them.
const REPORTS: &[&str] = &[
    "metrics",
    "figures",
    "tracing::",
    "drop(",
    ".inc()",
    ".observe(",
    "probe.reach(",
    "transfer_log::",
    "unknown_operations::note(",
    "elsewhere.log(",
    "note_cancellation(",
];

/// Returns every mutant of a file, by where it is.
pub(crate) fn mutants_of(file: &str, source: &str) -> Result<Vec<Mutant>, syn::Error> {
    let parsed: File = syn::parse_file(source)?;
    let mut finder = Finder { file, source, functions: Vec::new(), found: Vec::new() };
    finder.visit_file(&parsed);
    let mut found = finder.found;
    found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end), one.place));
    Ok(found)
}

struct Finder<'a> {
    file: &'a str,
    source: &'a str,
    functions: Vec<String>,
    found: Vec<Mutant>,
}

impl Finder<'_> {
    fn text(&self, range: Range<usize>) -> &str {
        &self.source[range]
    }

    fn of(&self, node: &impl Spanned) -> &str {
        self.text(node.span().byte_range())
    }

    fn add(&mut self, rule: &'static str, place: Place, range: Range<usize>, after: String) {
        let before = self.text(range.clone()).to_owned();
        let line = self.source[..range.start].matches('\n').count() + 1;
        let function = self.functions.last().cloned().unwrap_or_default();
        self.found.push(Mutant { file: self.file.to_owned(), function, line, rule, place, range, before, after });
    }

    fn replace(&mut self, rule: &'static str, node: &impl Spanned, after: String) {
        self.add(rule, Place::Expression, node.span().byte_range(), after);
    }

    /// Leaves out what is tested, evaluated at compile time, or printed.
    fn within(&mut self, name: String, attributes: &[Attribute], is_const: bool, walk: impl FnOnce(&mut Self)) {
        if is_const || is_test(attributes) {
            return;
        }
        self.functions.push(name);
        walk(self);
        self.functions.pop();
    }

    fn binary(&mut self, node: &Expr, left: &Expr, op: &BinOp, right: &Expr) {
        if has_let(node) || is_planted(left) || is_planted(right) {
            return;
        }
        let (rule, others): (_, &[&str]) = match op {
            BinOp::Lt(_) => ("comparison", &["<=", ">"]),
            BinOp::Le(_) => ("comparison", &["<", ">"]),
            BinOp::Gt(_) => ("comparison", &[">=", "<"]),
            BinOp::Ge(_) => ("comparison", &[">", "<"]),
            BinOp::Eq(_) => ("comparison", &["!="]),
            BinOp::Ne(_) => ("comparison", &["=="]),
            BinOp::And(_) => ("logic", &["||"]),
            BinOp::Or(_) => ("logic", &["&&"]),
            BinOp::Add(_) => ("arithmetic", &["-"]),
            BinOp::Sub(_) => ("arithmetic", &["+"]),
            BinOp::Mul(_) => ("arithmetic", &["/"]),
            BinOp::Div(_) => ("arithmetic", &["*"]),
            BinOp::AddAssign(_) => ("arithmetic", &["-="]),
            BinOp::SubAssign(_) => ("arithmetic", &["+="]),
            _ => return,
        };
        for other in others {
            // An operand with another precedence keeps its parentheses.
            let after = format!("({}) {other} ({})", self.of(left), self.of(right));
            let after = if other.ends_with("-=") || other.ends_with("+=") {
                format!("{} {other} {}", self.of(left), self.of(right))
            } else {
                after
            };
            self.replace(rule, node, after);
        }
    }

    fn arguments<'b>(&mut self, node: &Expr, arguments: impl Iterator<Item = &'b Expr>) {
        let arguments: Vec<Range<usize>> = arguments.map(|one| one.span().byte_range()).collect();
        let all = node.span().byte_range();
        for pair in arguments.windows(2) {
            let [one, other] = pair else { continue };
            if self.text(one.clone()) == self.text(other.clone()) {
                continue;
            }
            let after = [
                self.text(all.start..one.start),
                self.text(other.clone()),
                self.text(one.end..other.start),
                self.text(one.clone()),
                self.text(other.end..all.end),
            ];
            let after = after.concat();
            self.replace("swapped argument", node, after);
        }
    }

    /// Another arm matches what an arm does not, if there is a catch-all.
    fn arms(&mut self, arms: &[Arm]) {
        for arm in arms {
            let text = self.of(&arm.pat);
            if text != "_" && !text.contains(" if ") {
                let (at, after) = (arm.pat.span().byte_range().end, format!("{text} if false"));
                self.add("removed arm", Place::Arm, at..at, after);
            }
        }
    }

    /// Returns whether a statement is a report, or a condition or a loop for nothing but reports.
    fn only_reports(&self, node: &Stmt) -> bool {
        match node {
            Stmt::Expr(Expr::If(one), _) => self.branches_only_report(one),
            Stmt::Expr(Expr::ForLoop(one), _) => self.block_only_reports(&one.body),
            Stmt::Expr(one @ (Expr::Call(_) | Expr::MethodCall(_)), Some(_)) => is_report(self.of(one)),
            Stmt::Expr(Expr::Macro(one), _) => self.of(&one.mac.path).starts_with("tracing"),
            Stmt::Macro(one) => self.of(&one.mac.path).starts_with("tracing"),
            _ => false,
        }
    }

    fn branches_only_report(&self, node: &ExprIf) -> bool {
        let other = node.else_branch.as_ref().is_none_or(|(_, other)| match &**other {
            Expr::Block(one) => self.block_only_reports(&one.block),
            Expr::If(one) => self.branches_only_report(one),
            _ => false,
        });
        other && self.block_only_reports(&node.then_branch)
    }

    fn block_only_reports(&self, block: &Block) -> bool {
        let reports = |one: &Stmt| matches!(one, Stmt::Local(_)) || self.only_reports(one);
        block.stmts.iter().any(|one| self.only_reports(one)) && block.stmts.iter().all(reports)
    }

    fn condition(&mut self, node: &Expr, values: &[&str]) {
        if has_let(node) || self.of(node).contains("mutant!") {
            return;
        }
        for value in values {
            self.replace("condition", node, (*value).to_owned());
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, node: &'ast ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast ItemImpl) {
        let printed = node.trait_.as_ref().is_some_and(|_| {
            let text = self.of(node);
            let head = &text[..text.find('{').unwrap_or(text.len())];
            ["Debug", "Display", "Default"].iter().any(|name| head.contains(name))
        });
        if !printed {
            visit::visit_item_impl(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast ItemFn) {
        let name = node.sig.ident.to_string();
        self.within(name, &node.attrs, node.sig.constness.is_some(), |it| visit::visit_block(it, &node.block));
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        let name = node.sig.ident.to_string();
        self.within(name, &node.attrs, node.sig.constness.is_some(), |it| visit::visit_block(it, &node.block));
    }

    fn visit_item_const(&mut self, _: &'ast ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast ItemStatic) {}

    /// An arm of the hand-written list is not mutated.
    fn visit_arm(&mut self, node: &'ast Arm) {
        if !matches!(&node.pat, Pat::Guard(one) if is_off(&one.guard)) {
            visit::visit_arm(self, node);
        }
    }

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        if self.only_reports(node) {
            return;
        }
        if let Stmt::Expr(expr, semicolon) = node {
            let range = node.span().byte_range();
            let text = self.text(range.clone());
            let reports = is_report(text);
            let acts = match expr {
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Try(_) | Expr::Await(_) | Expr::Assign(_) => {
                    semicolon.is_some()
                }
                Expr::Binary(binary) => semicolon.is_some() && is_assignment(&binary.op),
                Expr::If(one) => one.else_branch.is_none() && has_let(&one.cond) && !text.contains("mutant!"),
                Expr::ForLoop(_) => true,
                _ => false,
            };
            if acts && !reports {
                self.add("removed statement", Place::Statement, range.clone(), String::new());
            }
            if let (Expr::Try(tried), Some(_), false) = (expr, semicolon, reports) {
                let after = format!("let _ = {};", self.of(&tried.expr));
                self.add("ignored error", Place::Statement, range, after);
            }
        }
        visit::visit_stmt(self, node);
    }

    fn visit_expr(&mut self, node: &'ast Expr) {
        match node {
            // Code that only a mutant of the hand-written list runs is not mutated.
            Expr::Binary(_) if is_off(node) => return,
            Expr::Binary(one) => self.binary(node, &one.left, &one.op, &one.right),
            Expr::Lit(one) => match &one.lit {
                Lit::Int(number) => {
                    if let Ok(value) = number.base10_parse::<u64>() {
                        let after = format!("{}{}", value + 1, number.suffix());
                        self.replace("off by one", node, after);
                    }
                }
                Lit::Bool(value) => self.replace("constant", node, (!value.value).to_string()),
                _ => {}
            },
            Expr::Unary(one) if matches!(one.op, UnOp::Not(_)) && !is_planted(&one.expr) && !has_let(&one.expr) => {
                let after = self.of(&one.expr).to_owned();
                self.replace("logic", node, after);
            }
            Expr::MethodCall(one) => {
                let name = one.method.to_string();
                let other = OPPOSITES.iter().find_map(|(left, right)| match name.as_str() {
                    name if name == *left => Some(*right),
                    name if name == *right => Some(*left),
                    _ => None,
                });
                if let Some(other) = other {
                    let (all, at) = (node.span().byte_range(), one.method.span().byte_range());
                    let after = [self.text(all.start..at.start), other, self.text(at.end..all.end)].concat();
                    self.replace("opposite method", node, after);
                }
                self.arguments(node, one.args.iter());
            }
            // A hint.
            Expr::Call(one) if self.of(&one.func).ends_with("with_capacity") => return,
            Expr::Call(one) => {
                if self.of(&one.func) == "Some" {
                    self.replace("dropped value", node, "None".to_owned());
                }
                self.arguments(node, one.args.iter());
            }
            Expr::If(one) if is_planted(&one.cond) || is_off(&one.cond) => {
                if let Some((_, other)) = &one.else_branch {
                    self.visit_expr(other);
                }
                return;
            }
            Expr::If(one) => self.condition(&one.cond, &["true", "false"]),
            Expr::Match(one) if one.arms.iter().any(|arm| self.of(&arm.pat) == "_") => self.arms(&one.arms),
            Expr::While(one) => self.condition(&one.cond, &["false"]),
            _ => {}
        }
        visit::visit_expr(self, node);
    }
}

fn is_report(text: &str) -> bool {
    REPORTS.iter().any(|word| text.contains(word)) && text.len() < 200
}

fn is_assignment(op: &BinOp) -> bool {
    matches!(op, BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_) | BinOp::MulAssign(_))
}

/// `if let … && …` cannot be wrapped.
fn has_let(node: &Expr) -> bool {
    match node {
        Expr::Let(_) => true,
        Expr::Binary(one) => has_let(&one.left) || has_let(&one.right),
        _ => false,
    }
}

/// Whether it is false unless a mutant of the hand-written list is active.
fn is_off(node: &Expr) -> bool {
    match node {
        Expr::Binary(one) => match one.op {
            BinOp::And(_) => is_off(&one.left) || is_off(&one.right),
            BinOp::Or(_) => is_off(&one.left) && is_off(&one.right),
            _ => false,
        },
        Expr::Paren(one) => is_off(&one.expr),
        Expr::Macro(_) => is_planted(node),
        _ => false,
    }
}

/// Whether it is the `mutant!` of a mutant of the hand-written list.
fn is_planted(node: &Expr) -> bool {
    match node {
        Expr::Macro(one) => one.mac.path.segments.last().is_some_and(|last| last.ident == "mutant"),
        Expr::Unary(one) => is_planted(&one.expr),
        _ => false,
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|one| {
        one.path().is_ident("test")
            || one.path().is_ident("cfg")
                && one.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}
