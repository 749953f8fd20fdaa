//! Keeps a busy component from blocking the thread that runs it.

use std::thread;
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How long a component may compute before other tasks of its thread get their turn, the timer of its deadline among
/// them.
const TICK: Duration = Duration::from_millis(20);

/// Advances the engine's epoch once a tick, in a thread that ends with the engine.
///
/// # Errors
/// When the system gives no thread.
pub(crate) fn start(engine: &Engine) -> std::io::Result<()> {
    let engine = engine.weak();
    thread::Builder::new().name("component epochs".to_owned()).spawn(move || tick(&engine)).map(drop)
}

fn tick(engine: &EngineWeak) {
    loop {
        thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::{Config, Instance, Module, Store};

    use super::*;

    /// `(module (func (export "f") (loop br 0)))`
    const ENDLESS: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x07\x05\x01\x01f\0\0\
                             \x0a\x09\x01\x07\0\x03\x40\x0c\0\x0b\x0b";

    #[tokio::test]
    async fn an_endless_loop_gives_way_to_the_timer_of_its_deadline() {
        let mut config = Config::new();
        config.epoch_interruption(true);
        let engine = Engine::new(&config).unwrap();
        start(&engine).unwrap();
        let module = Module::new(&engine, ENDLESS).unwrap();
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        let instance = Instance::new_async(&mut store, &module, &[]).await.unwrap();
        let endless = instance.get_typed_func::<(), ()>(&mut store, "f").unwrap();
        let call = endless.call_async(&mut store, ());
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
    }
}
