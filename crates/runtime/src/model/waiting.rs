//! Which calls are waited for, so that a call is refused that nobody could ever answer.
//!
//! A model that calls another while it executes holds its instance until the answer comes. Models that call each other,
//! or themselves, may so come to wait in a circle. A call is refused exactly when it would close one: when, of those
//! who could answer it, each waits for a call that in turn can never be answered.
//!
//! What is assumed: a holder that waits for no call ends some time, and a free instance takes the request that has
//! waited longest. Where a request has to wait for a certain instance, or for what other requests of its model hold
//! (sequences, the rate limiter, answers in order, decoupled models), every instance of the model has to be able to go
//! on. A holder with several open calls waits for all of them. What the rate limiter gives to *other* models is not
//! looked at: two models that call each other and share a resource can still wait for each other.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_request::chain::{Chain, Holder, WaitId};
use parking_lot::Mutex;

/// Who may answer a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Somebody always does: the model calls nobody, or its steps are waited for by themselves.
    Always,
    /// Any one of these instances. Where there is none, one is about to be started.
    Any(Vec<Holder>),
    /// One of these, and nobody knows which.
    Each(Vec<Holder>),
}

/// A model that is called.
pub trait Callee: Send + Sync {
    /// Its instances that are up now.
    fn servers(&self) -> Servers;

    /// Its name.
    fn name(&self) -> &str;
}

struct Edge {
    holder: Holder,
    callee: Arc<dyn Callee>,
    /// Who executes the call, once that was seen.
    executor: Option<Holder>,
}

/// Who waits for whom.
#[derive(Default)]
pub struct WaitGraph {
    edges: BTreeMap<WaitId, Edge>,
    /// How many calls each holder waits for.
    open: HashMap<Holder, usize>,
    last: u64,
}

impl WaitGraph {
    /// The holder, which executes these calls, begins to wait for a call of its own.
    ///
    /// # Errors
    ///
    /// Nobody could ever answer it: the callee comes back, and the holder does not wait.
    pub fn begin(
        &mut self,
        holder: Holder,
        executes: &[WaitId],
        callee: Arc<dyn Callee>,
    ) -> Result<WaitId, Arc<dyn Callee>> {
        for wait in executes {
            if let Some(edge) = self.edges.get_mut(wait) {
                edge.executor = Some(holder);
            }
        }
        self.last += 1;
        let wait = WaitId(self.last);
        let servers = callee.servers();
        *self.open.entry(holder).or_default() += 1;
        self.edges.insert(wait, Edge { holder, callee, executor: None });
        // Most calls find somebody who waits for nothing, whatever the others wait for.
        if servers.go_on(&self.open) || self.is_live(wait) {
            return Ok(wait);
        }
        match self.end(wait) {
            Some(callee) => Err(callee),
            None => Ok(wait),
        }
    }

    /// A call is not waited for any more.
    pub fn end(&mut self, wait: WaitId) -> Option<Arc<dyn Callee>> {
        let edge = self.edges.remove(&wait)?;
        if let Entry::Occupied(mut waits) = self.open.entry(edge.holder) {
            *waits.get_mut() -= 1;
            if *waits.get() == 0 {
                waits.remove();
            }
        }
        Some(edge.callee)
    }

    /// Whether a call can be answered: found from those who wait for nothing, by what their answers set free.
    fn is_live(&self, wait: WaitId) -> bool {
        let mut open = self.open.clone();
        let mut left: Vec<(WaitId, Holder, Servers)> =
            self.edges.iter().map(|(&id, edge)| (id, edge.holder, edge.servers())).collect();
        loop {
            let before = left.len();
            let mut found = false;
            left.retain(|(id, holder, servers)| {
                let live = servers.go_on(&open);
                if live {
                    open.entry(*holder).and_modify(|waits| *waits -= 1);
                    found |= *id == wait;
                }
                !live
            });
            if found || left.len() == before {
                return found;
            }
        }
    }
}

impl Servers {
    /// Whether the call is answered, where these holders wait for so many calls that may not be.
    fn go_on(&self, open: &HashMap<Holder, usize>) -> bool {
        let goes_on = |server: &Holder| open.get(server).is_none_or(|&waits| waits == 0);
        match self {
            Servers::Always => true,
            Servers::Any(list) => list.is_empty() || list.iter().any(goes_on),
            Servers::Each(list) => list.iter().all(goes_on),
        }
    }
}

impl Edge {
    fn servers(&self) -> Servers {
        match (self.callee.servers(), self.executor) {
            (Servers::Any(_), Some(executor)) => Servers::Any(vec![executor]),
            // That of a decoupled model may go on behind its execution, and is none of those.
            (Servers::Each(mut list), Some(executor)) => {
                list.push(executor);
                Servers::Each(list)
            }
            (servers, _) => servers,
        }
    }
}

/// The calls of all models that are waited for.
#[derive(Default)]
pub struct Waits(Mutex<WaitGraph>);

impl Waits {
    /// A model is about to call another; none where nobody waits, or nobody can wait in vain.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where nobody could ever answer the call.
    pub fn begin(self: &Arc<Self>, chain: &Chain, callee: Arc<dyn Callee>) -> Result<Option<Wait>, InferError> {
        let Some(holder) = chain.holder.filter(|_| callee.servers() != Servers::Always) else { return Ok(None) };
        // Whatever the graph gives back is dropped without its lock: the last owner of a version frees its engines.
        let begun = self.0.lock().begin(holder, &chain.executes, callee);
        match begun {
            Ok(id) => Ok(Some(Wait { waits: Arc::clone(self), id })),
            Err(callee) => {
                let text = format!("the call would wait for itself: {}", chain.path(callee.name()));
                Err(InferError::invalid(text))
            }
        }
    }
}

/// A call that is waited for, until this is dropped. That happens before the last answer is given, since the caller
/// that gets this answer may call again at once.
pub struct Wait {
    waits: Arc<Waits>,
    id: WaitId,
}

impl Wait {
    /// Its number.
    pub fn id(&self) -> WaitId {
        self.id
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let callee = self.waits.0.lock().end(self.id);
        drop(callee);
    }
}
