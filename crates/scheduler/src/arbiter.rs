//! Which instance of which model may execute next, where executions take resources that are counted.
//!
//! An instance asks before an execution, is let in when all that it takes is there, and gives it back afterwards. Those
//! that wait are let in by turns: each execution moves its instance back by its priority, so that one of priority 2
//! gets half the turns of one of priority 1. An instance that lacks a resource keeps that resource from all instances
//! behind it: none is overtaken for good. Instances behind it that take none of that resource go ahead.
//!
//! Source: the rules are those of Triton's rate limiter, but for two. There one that lacks something holds up
//! everybody; and one that has long been idle, or is new, has all the turns until it has executed as often as the
//! others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So much of a resource, taken for the time of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Name of the resource.
    pub name: String,
    /// It is one for the whole machine; else each device has its own.
    pub global: bool,
    /// How much of it.
    pub count: u32,
}

/// What can never be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// More is demanded than the limit of the resource allows.
    Limited {
        /// The resource.
        name: String,
        /// How much there is.
        limit: u32,
        /// How much one instance takes.
        needed: u32,
    },
    /// The resource is one for the whole machine to some, and one of each device to others.
    Mixed {
        /// The resource.
        name: String,
    },
}

/// A record of the resources and of the instances that wait for them. An instance has the number of its admission.
#[derive(Debug, Default)]
pub struct Arbiter {
    /// By name; what is not listed is there as often as the instance takes it that takes most.
    limits: HashMap<String, u32>,
    pools: Vec<Pool>,
    members: Vec<Option<Member>>,
    /// In the order in which they are looked at.
    waiting: BTreeSet<WaitingKey>,
    /// Who asks later comes later among equals.
    arrival: u64,
    /// Where the one stood that was let in last: nobody who asks stands before it.
    floor: u64,
}

/// Where a waiting instance stands: by turns taken, then by the time of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingKey {
    turns: u64,
    arrival: u64,
    member: usize,
}

#[derive(Debug)]
struct Pool {
    name: String,
    global: bool,
    used: u32,
}

#[derive(Debug)]
struct Member {
    /// What it takes, by the number of the pool.
    takes: Vec<(usize, u32)>,
    priority: u64,
    turns: u64,
    /// How often it was let in and has not given back yet.
    granted: u32,
    /// Since when it waits.
    waiting: Option<u64>,
    /// It is gone, but what it has been granted is still taken.
    leaving: bool,
}

impl Arbiter {
    /// A record without instances. Resources that are named have these limits.
    pub fn new(limits: impl IntoIterator<Item = (String, u32)>) -> Arbiter {
        Arbiter { limits: limits.into_iter().collect(), ..Arbiter::default() }
    }

    /// Takes an instance in. Priority 0 counts as 1.
    ///
    /// # Errors
    ///
    /// What it demands can never be granted.
    pub fn admit(&mut self, demands: &[Demand], priority: u32) -> Result<usize, Impossible> {
        let takes = most(demands)?;
        for ((name, global), &count) in &takes {
            if let Some(&limit) = self.limits.get(*name).filter(|limit| **limit < count) {
                return Err(Impossible::Limited { name: (*name).to_owned(), limit, needed: count });
            }
            if self.pools_in_use().any(|pool| pool.name == *name && pool.global != *global) {
                return Err(Impossible::Mixed { name: (*name).to_owned() });
            }
        }
        let takes = takes.into_iter().map(|((name, global), count)| (self.pool(name, global), count)).collect();
        let priority = u64::from(priority.max(1));
        let member = Member { takes, priority, turns: self.floor, granted: 0, waiting: None, leaving: false };
        let free = self.members.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.members.push(None);
            self.members.len() - 1
        });
        self.members[number] = Some(member);
        Ok(number)
    }

    /// Lets an instance go. What it was granted is free once it is [released](Self::release).
    pub fn dismiss(&mut self, number: usize) {
        let Some(member) = &mut self.members[number] else { return };
        member.leaving = true;
        if let Some(arrival) = member.waiting.take() {
            self.waiting.remove(&WaitingKey { turns: member.turns, arrival, member: number });
        }
        if member.granted == 0 {
            self.members[number] = None;
        }
    }

    /// An instance would execute, and waits from now on. To be followed by [`let_in`](Self::let_in) until nobody more
    /// is let in. One that waits already is not asked for twice.
    pub fn ask(&mut self, number: usize) {
        let Some(member) = self.members[number].as_mut().filter(|member| !member.leaving) else { return };
        if member.waiting.is_none() {
            self.arrival += 1;
            member.turns = member.turns.max(self.floor);
            member.waiting = Some(self.arrival);
            self.waiting.insert(WaitingKey { turns: member.turns, arrival: self.arrival, member: number });
        }
    }

    /// An instance gives back what it was granted; false if that was nothing. To be followed by [`ask`](Self::ask)
    /// where it would execute again, so that it stands among the others when the next is chosen, and then by
    /// [`let_in`](Self::let_in) until nobody more is let in. What was granted and not used is no turn.
    pub fn release(&mut self, number: usize, executed: bool) -> bool {
        let Some(member) = self.members[number].as_mut().filter(|member| member.granted > 0) else { return false };
        member.granted -= 1;
        for &(pool, count) in &member.takes {
            self.pools[pool].used -= count;
        }
        // Where it waits already its place is taken, and it moves back from there.
        let moved = if executed { member.priority } else { 0 };
        if let Some(arrival) = member.waiting {
            self.waiting.remove(&WaitingKey { turns: member.turns, arrival, member: number });
            self.waiting.insert(WaitingKey { turns: member.turns + moved, arrival, member: number });
        }
        member.turns += moved;
        if member.leaving && member.granted == 0 {
            self.members[number] = None;
        }
        true
    }

    /// Lets in the first of those that wait for whom everything is there.
    pub fn let_in(&mut self) -> Option<usize> {
        let mut reserved: Vec<usize> = Vec::new();
        let place = *self.waiting.iter().find(|place| {
            let Some(member) = &self.members[place.member] else { return false };
            let lacks = |&(pool, count): &(usize, u32)| self.pools[pool].used + count > self.total(pool);
            let fits = member.takes.iter().all(|take| !lacks(take) && !reserved.contains(&take.0));
            if !fits {
                reserved.extend(member.takes.iter().map(|(pool, _)| pool));
            }
            fits
        })?;
        self.waiting.remove(&place);
        let member = self.members[place.member].as_mut()?;
        member.waiting = None;
        member.granted += 1;
        self.floor = self.floor.max(member.turns);
        for &(pool, count) in &member.takes {
            self.pools[pool].used += count;
        }
        Some(place.member)
    }

    /// How much of a resource there is: its limit, or what the instance takes that takes most.
    fn total(&self, pool: usize) -> u32 {
        let most = |member: &Member| member.takes.iter().filter(|take| take.0 == pool).map(|take| take.1).max();
        let limit = self.limits.get(&self.pools[pool].name).copied();
        limit.unwrap_or_else(|| self.members.iter().flatten().filter_map(most).max().unwrap_or(0))
    }

    fn pools_in_use(&self) -> impl Iterator<Item = &Pool> {
        let is_held =
            |number: usize| self.members.iter().flatten().any(|one| one.takes.iter().any(|take| take.0 == number));
        self.pools.iter().enumerate().filter(move |(number, _)| is_held(*number)).map(|(_, pool)| pool)
    }

    fn pool(&mut self, name: &str, global: bool) -> usize {
        let known = self.pools.iter().position(|pool| pool.name == name && pool.global == global);
        known.unwrap_or_else(|| {
            self.pools.push(Pool { name: name.to_owned(), global, used: 0 });
            self.pools.len() - 1
        })
    }
}

/// What is demanded of each resource; where one is named more than once, the most.
fn most(demands: &[Demand]) -> Result<BTreeMap<(&str, bool), u32>, Impossible> {
    let mut takes: BTreeMap<(&str, bool), u32> = BTreeMap::new();
    for Demand { name, global, count } in demands {
        if takes.contains_key(&(name.as_str(), !global)) {
            return Err(Impossible::Mixed { name: name.clone() });
        }
        let most = takes.entry((name, *global)).or_default();
        *most = (*most).max(*count);
    }
    Ok(takes)
}
