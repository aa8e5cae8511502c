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

/// A loaded copy of the model on its way into service.
pub struct Loaded {
    /// What executes.
    pub engine: Box<dyn Engine>,
    /// Number of the GPU that it runs on; none for the processor.
    pub gpu: Option<u32>,
}

/// What lies between the copies in service and those that are wanted.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The GPUs of those to come; none for the processor.
    pub missing: Vec<Option<u32>>,
    /// The numbers of those to go.
    pub leaving: Vec<usize>,
}

/// One loaded copy of the model, and the parker of the thread that drives it.
pub struct InstanceSlot {
    /// Locked by the thread that drives the claimed instance, so the lock is never contended.
    pub state: Mutex<InstanceState>,
    /// Parks that thread until a batch is due.
    pub parker: Parker,
    /// The GPU that it runs on; none for the processor.
    gpu: Option<u32>,
}

type Table = Vec<Option<Arc<InstanceSlot>>>;

/// The copies; the table is replaced as a whole when copies are added or removed.
pub struct Slots {
    table: ArcSwap<Table>,
    /// Loaded like the others, never used.
    passive: Vec<Arc<InstanceSlot>>,
}

impl Slots {
    /// Copies of the model on the processor, around their loaded engines.
    pub fn new(engines: Vec<Box<dyn Engine>>) -> Slots {
        Slots::of(engines.into_iter().map(|engine| Loaded { engine, gpu: None }).collect())
    }

    /// Copies of the model, each where it is.
    pub fn of(copies: Vec<Loaded>) -> Slots {
        let table = ArcSwap::from_pointee(copies.into_iter().map(|copy| Some(slot(copy))).collect());
        Slots { table, passive: Vec::new() }
    }

    /// These copies of the model, and beside them copies that are held and never used.
    #[must_use]
    pub fn beside(self, passive: Vec<Loaded>) -> Slots {
        Slots { passive: passive.into_iter().map(slot).collect(), ..self }
    }

    /// Number of copies in service.
    pub fn count(&self) -> usize {
        self.table.load().iter().flatten().count()
    }

    /// What has to come and to go so that there is a copy on each of these GPUs, or the processor for none. Copies that
    /// are where one is wanted stay, the lowest numbers first.
    pub fn change_to(&self, wanted: &[Option<u32>]) -> Change {
        let mut missing = wanted.to_vec();
        let mut leaving = Vec::new();
        for (number, slot) in self.table.load().iter().enumerate() {
            let Some(slot) = slot else { continue };
            match missing.iter().position(|&gpu| gpu == slot.gpu) {
                Some(kept) => {
                    missing.remove(kept);
                }
                None => leaving.push(number),
            }
        }
        Change { missing, leaving }
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
        let names = model.spec.instances.iter().chain(&model.spec.passive_instances).map(String::as_str);
        warmup::warm_up(model, &slots, &names.collect::<Vec<_>>(), cancellation)
    }

    /// Warms further copies of these names up and puts them into service. The caller makes one change at a time.
    ///
    /// # Errors
    ///
    /// A sample fails, or the load is cancelled; nothing has changed then.
    pub fn grow(
        &self,
        model: &Arc<ModelVersion>,
        copies: Vec<Loaded>,
        names: &[&str],
        cancellation: &Cancellation,
    ) -> Result<(), InferError> {
        let fresh: Vec<_> = copies.into_iter().map(slot).collect();
        warmup::warm_up(model, &fresh, names, cancellation)?;
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

    /// Takes the copies of these numbers out of service. One that executes is freed when it has finished.
    pub fn shrink(&self, model: &Arc<ModelVersion>, numbers: &[usize]) {
        let mut table = Table::clone(&self.table.load());
        for (number, slot) in table.iter_mut().enumerate() {
            if numbers.contains(&number) {
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

fn slot(copy: Loaded) -> Arc<InstanceSlot> {
    let state = Mutex::new(InstanceState::new(copy.engine));
    Arc::new(InstanceSlot { state, parker: Parker::default(), gpu: copy.gpu })
}

#[cfg(test)]
mod tests {
    use alipes_engine::{EngineError, InputView, OutputTensor};

    use super::*;

    struct Nothing;

    impl Engine for Nothing {
        fn run(&mut self, _: &[InputView<'_>], _: &[usize], _: &mut Vec<OutputTensor>) -> Result<(), EngineError> {
            Ok(())
        }
    }

    fn on(gpus: &[Option<u32>]) -> Slots {
        Slots::of(gpus.iter().map(|&gpu| Loaded { engine: Box::new(Nothing), gpu }).collect())
    }

    #[test]
    fn another_number_of_copies_keeps_the_lowest_numbers() {
        let slots = on(&[None, None, None]);
        assert_eq!(slots.change_to(&[None]), Change { missing: vec![], leaving: vec![1, 2] });
        assert_eq!(slots.change_to(&[None; 5]), Change { missing: vec![None; 2], leaving: vec![] });
        assert_eq!(slots.change_to(&[None; 3]), Change { missing: vec![], leaving: vec![] });
    }

    #[test]
    fn a_copy_stays_only_on_the_gpu_that_is_wanted() {
        let slots = on(&[Some(0), Some(1), None]);
        let change = slots.change_to(&[Some(1), Some(2), Some(1)]);
        assert_eq!(change, Change { missing: vec![Some(2), Some(1)], leaving: vec![0, 2] });
    }
}
