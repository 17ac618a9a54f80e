//! Whatever a body is, of every documented route, it is answered and the fault is its sender's.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use querent_tests::FuzzedServer;

static SERVER: LazyLock<FuzzedServer> = LazyLock::new(FuzzedServer::start);

fuzz_target!(|input: &[u8]| SERVER.request(input));
