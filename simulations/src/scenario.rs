//! Scenario files: a script as TOML. Errors name the line and the field; a written file reads back as the same script.

mod actions;
mod file;
mod setup;
mod values;
mod writing;

use std::collections::BTreeMap;

use actors::Condition;
use engine::payment::{Exception, State};

use crate::{
    options::{Fault, Faults, Setup},
    plan::{self, Mix},
    random::Random,
    script::{Expect, Script, Step},
};

use self::{
    actions::read_action,
    file::{File, RawExpect, RawStep},
    values::{duration, one_of, read_percent},
};

pub use self::{values::POINTS, writing::write};

/// Why a scenario file is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ScenarioError {
    /// The line, from 1.
    pub line: usize,
    /// The field and what is wrong with it.
    pub why: String,
}

/// The text of an error whose line is not known yet.
type Problem = String;

/// Reads a scenario.
///
/// # Errors
/// [`ScenarioError`] with the line and the field.
pub fn read(text: &str) -> Result<Script, ScenarioError> {
    let lines = Lines(text);
    let file: File = toml::from_str(text).map_err(|error| ScenarioError {
        line: lines.line_at(error.span().map_or(0, |span| span.start)),
        why: error.message().to_owned(),
    })?;
    let mut setup = Setup::default();
    if let Some(raw) = &file.environment {
        setup::read(raw.get_ref(), &mut setup).map_err(lines.error_at(raw.span().start))?;
    }
    let faults = read_faults(&file, &lines)?;
    let heal_at = file.heal_at.as_ref();
    let heal_at_ms = heal_at
        .map(|heal_at| duration("heal_at", heal_at.get_ref()).map_err(lines.error_at(heal_at.span().start)))
        .transpose()?;
    let mut names = Names::default();
    let mut steps = Vec::new();
    for raw in &file.steps {
        let step = read_step(raw.get_ref(), heal_at_ms, &mut names, &setup);
        steps.push(step.map_err(lines.error_at(raw.span().start))?);
    }
    let (mut expect, mut expect_nodes) = (Vec::new(), Vec::new());
    for (name, raw) in &file.expect {
        if let Some(word) = &raw.condition {
            let read = read_condition(name.get_ref(), word, &setup);
            expect_nodes.push(read.map_err(lines.error_at(name.span().start))?);
            continue;
        }
        expect.push(read_expect(name.get_ref(), raw, &names).map_err(lines.error_at(name.span().start))?);
    }
    let mut script = Script {
        name: file.name,
        why: file.why,
        seed: file.seed,
        setup,
        faults: faults.rates,
        steps,
        heal_at_ms,
        expect,
        expect_nodes,
        names: names.list(),
    };
    if let Some(payments) = &file.payments {
        if !script.steps.is_empty() {
            let error = lines.error_at(payments.span().start);
            return Err(error("`payments` and `steps` exclude each other".to_owned()));
        }
        draw_steps(&mut script, *payments.get_ref(), faults.is_swarm);
    } else if faults.is_swarm {
        script.faults = Faults::swarm(&mut Random::new(script.seed).fork("faults"));
        if script.setup.engines > 1 {
            script.faults.leave_out_disk();
        } else {
            script.faults.leave_out_shared_store();
        }
    }
    script.steps.sort_by_key(|step| step.at_ms);
    Ok(script)
}

/// The text of a file, to find the lines of errors.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    /// Returns the line of a byte, from 1.
    fn line_at(&self, offset: usize) -> usize {
        self.0.as_bytes()[..offset.min(self.0.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Returns a function that adds the line of a byte to a problem.
    fn error_at(&self, offset: usize) -> impl FnOnce(Problem) -> ScenarioError {
        let line = self.line_at(offset);
        move |why| ScenarioError { line, why }
    }
}

/// The table `[faults]`.
struct ReadFaults {
    rates: Faults,
    /// Whether the rates are drawn at random instead.
    is_swarm: bool,
}

fn read_faults(file: &File, lines: &Lines<'_>) -> Result<ReadFaults, ScenarioError> {
    let mut read = ReadFaults { rates: Faults::default(), is_swarm: false };
    for (name, value) in &file.faults {
        let value_error = lines.error_at(value.span().start);
        if name.get_ref() == "swarm" {
            let is_swarm = value.get_ref().as_bool();
            read.is_swarm = is_swarm.ok_or_else(|| value_error("`swarm` must be true or false".to_owned()))?;
            continue;
        }
        let fault = Fault::ALL.iter().find(|fault| fault.as_str() == name.get_ref()).ok_or_else(|| {
            let known = Fault::ALL.iter().map(|fault| fault.as_str());
            lines.error_at(name.span().start)(one_of("faults", name.get_ref(), known))
        })?;
        let ppm = value.get_ref().as_str().and_then(read_percent).ok_or_else(|| {
            value_error(format!("`{}` must be a share from \"0%\" to \"100%\", such as \"2.5%\"", fault.as_str()))
        })?;
        read.rates.set(*fault, ppm);
    }
    Ok(read)
}

fn read_step(raw: &RawStep, heal_at_ms: Option<u64>, names: &mut Names, setup: &Setup) -> Result<Step, Problem> {
    let at_ms = duration("at", &raw.at)?;
    let action = read_action(raw, names, setup)?;
    let step = Step { at_ms, action, engine: read_engine(raw, setup)? };
    if let Some(unread) = raw.unread().next() {
        return Err(format!("`{unread}` has no meaning for `does` {:?}", raw.does));
    }
    if heal_at_ms.is_some_and(|heal_at_ms| heal_at_ms < step.ends_ms()) {
        return Err("it ends after `heal_at`".to_owned());
    }
    Ok(step)
}

/// Reads the engine that a step names.
fn read_engine(raw: &RawStep, setup: &Setup) -> Result<Option<usize>, Problem> {
    match *raw.engine {
        Some(engine) if engine >= setup.engines => {
            Err(format!("`engine` {engine}: there are {}, numbered from 0", setup.engines))
        }
        engine => Ok(engine),
    }
}

/// Draws the steps of a number of random payments, with `is_swarm` also the setup and the rates of faults.
fn draw_steps(script: &mut Script, payments: u32, is_swarm: bool) {
    if is_swarm {
        let drawn = plan::of_seed_with(script.seed, payments, Mix::Swarm, Some(script.setup.engines));
        (script.setup, script.faults, script.steps) = (drawn.setup, drawn.faults, drawn.steps);
    } else {
        script.steps = plan::steps(&script.setup, &Random::new(script.seed), payments);
    }
}

/// Reads what operators should see of a node.
fn read_condition(name: &str, word: &str, setup: &Setup) -> Result<(usize, Condition), Problem> {
    let node = name.strip_prefix("node ").and_then(|digits| digits.parse().ok()).filter(|node| *node < setup.nodes);
    let node = node.ok_or_else(|| format!("`condition` is of `node 0` to `node {}`", setup.nodes - 1))?;
    let condition = Condition::ALL.into_iter().find(|condition| condition.as_str() == word);
    let known = Condition::ALL.map(Condition::as_str);
    Ok((node, condition.ok_or_else(|| one_of("condition", word, known))?))
}

fn read_expect(name: &str, raw: &RawExpect, names: &Names) -> Result<Expect, Problem> {
    let session = names.find(name)?;
    for word in &raw.state {
        if State::parse(word).is_none() {
            return Err(one_of("state", word, State::ALL.iter().map(|state| state.as_str())));
        }
    }
    for word in raw.exceptions.iter().flatten() {
        if !Exception::ALL.iter().any(|exception| exception.as_str() == word) {
            return Err(one_of("exceptions", word, Exception::ALL.iter().map(|exception| exception.as_str())));
        }
    }
    let credited = raw.credited.as_deref().map(|text| values::credited("credited", text)).transpose()?;
    Ok(Expect {
        session,
        states: raw.state.clone(),
        credited,
        usd_cents: raw.usd_cents,
        exceptions: raw.exceptions.clone(),
        webhooks: raw.webhooks,
    })
}

/// The sessions that the steps created so far, numbered in the order of their creation, with the time of the first step that
/// creates them, in milliseconds.
#[derive(Default)]
struct Names(BTreeMap<String, (u32, u64)>);

impl Names {
    /// Returns the number of a session that is created under a name.
    fn create(&mut self, name: &str, at_ms: u64) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let (number, created_ms) = self.0.entry(name.to_owned()).or_insert((next, at_ms));
        *created_ms = at_ms.min(*created_ms);
        *number
    }

    /// Returns the names by number.
    fn list(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.iter().collect();
        names.sort_unstable_by_key(|(_, (number, _))| *number);
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    fn find(&self, name: &str) -> Result<u32, Problem> {
        let known = self.0.get(name).map(|(number, _)| *number);
        known.ok_or_else(|| format!("`session` {name:?} is not created before"))
    }

    /// Finds a session for a step at `at_ms`, which must not be before its creation.
    fn find_at(&self, name: &str, at_ms: u64) -> Result<u32, Problem> {
        let number = self.find(name)?;
        match self.0.get(name) {
            Some((_, created_ms)) if *created_ms > at_ms => {
                Err(format!("`session` {name:?} is not created until {}", values::show(*created_ms)))
            }
            _ => Ok(number),
        }
    }
}

#[cfg(test)]
mod tests;
