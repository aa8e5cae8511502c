//! The loaded copies of a model that runs in this process, by the numbers under which its queue knows them.

use std::sync::Arc;

use alipes_engine::Engine;
use alipes_protocol::InferError;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::executor::park::Parker;
use alipes_runtime::model::ModelVersion;
use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::execute::InstanceState;
use super::warmup;

/// One loaded copy of the model, and the parker of the thread that drives it.
pub struct InstanceSlot {
    /// Locked by the thread that drives the claimed instance, so the lock is never contended.
    pub state: Mutex<InstanceState>,
    /// Parks that thread until a batch is due.
    pub parker: Parker,
}

type Table = Vec<Option<Arc<InstanceSlot>>>;

/// The copies; the table is replaced as a whole when copies are added or removed.
pub struct Slots {
    table: ArcSwap<Table>,
    /// Loaded like the others, never used.
    passive: Vec<Arc<InstanceSlot>>,
}

impl Slots {
    /// Copies around their loaded engines.
    pub fn new(engines: Vec<Box<dyn Engine>>) -> Slots {
        let table = ArcSwap::from_pointee(engines.into_iter().map(|engine| Some(slot(engine))).collect());
        Slots { table, passive: Vec::new() }
    }

    /// The same, and copies that are held and never used.
    #[must_use]
    pub fn beside(self, passive: Vec<Box<dyn Engine>>) -> Slots {
        Slots { passive: passive.into_iter().map(slot).collect(), ..self }
    }

    /// Number of copies in service.
    pub fn count(&self) -> usize {
        self.table.load().iter().flatten().count()
    }

    /// Calls `act` with an instance; none where it is no longer in service.
    pub fn with<T>(&self, instance: usize, act: impl FnOnce(&Arc<InstanceSlot>) -> T) -> Option<T> {
        self.table.load().get(instance)?.as_ref().map(act)
    }

    /// An instance; none where it is no longer in service.
    pub fn get(&self, instance: usize) -> Option<Arc<InstanceSlot>> {
        self.table.load().get(instance)?.clone()
    }

    /// Executes the model's warm-up samples on every copy.
    ///
    /// # Errors
    ///
    /// A sample fails, or the load is cancelled.
    pub fn warm_up(&self, model: &ModelVersion, cancellation: &Cancellation) -> Result<(), InferError> {
        let slots: Vec<_> = self.table.load().iter().flatten().chain(&self.passive).map(Arc::clone).collect();
        warmup::warm_up(model, &slots, cancellation)
    }

    /// Warms further copies up and puts them into service. The caller makes one change at a time.
    ///
    /// # Errors
    ///
    /// A sample fails, or the load is cancelled; nothing has changed then.
    pub fn grow(
        &self,
        model: &Arc<ModelVersion>,
        engines: Vec<Box<dyn Engine>>,
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        let fresh: Vec<_> = engines.into_iter().map(slot).collect();
        warmup::warm_up(model, &fresh, cancellation)?;
        cancellation.check()?;
        let mut table = Table::clone(&self.table.load());
        let queue = model.queue();
        let mut free = (0..).filter(|&number| queue.is_free(number));
        for slot in fresh {
            let number = free.next().unwrap_or(table.len());
            table.resize(table.len().max(number + 1), None);
            table[number] = Some(slot);
        }
        drop(free);
        drop(queue);
        self.table.store(Arc::new(table));
        self.serve(model);
        Ok(())
    }

    /// Takes copies out of service until `count` are left. A copy that executes is freed when it has finished.
    pub fn shrink(&self, model: &Arc<ModelVersion>, count: usize) {
        let mut table = Table::clone(&self.table.load());
        let mut in_service = 0;
        for slot in table.iter_mut().filter(|slot| slot.is_some()) {
            in_service += 1;
            if in_service > count {
                *slot = None;
            }
        }
        // The queue first: an instance that is woken to leave must still find its parker.
        rearrange(model, &table);
        self.table.store(Arc::new(table));
    }

    fn serve(&self, model: &Arc<ModelVersion>) {
        rearrange(model, &self.table.load());
    }
}

fn rearrange(model: &Arc<ModelVersion>, table: &Table) {
    let numbers: Vec<usize> = (0..).zip(table).filter_map(|(number, slot)| slot.as_ref().map(|_| number)).collect();
    let effect = model.with_queue(|queue, now| queue.rearrange(now, &numbers));
    model.carry_out(effect);
}

fn slot(engine: Box<dyn Engine>) -> Arc<InstanceSlot> {
    Arc::new(InstanceSlot { state: Mutex::new(InstanceState::new(engine)), parker: Parker::default() })
}
