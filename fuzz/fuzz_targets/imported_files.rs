//! Whatever a file is, of every format, it is imported or refused.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use querent_tests::FuzzedServer;

static SERVER: LazyLock<FuzzedServer> = LazyLock::new(FuzzedServer::start);

fuzz_target!(|input: &[u8]| SERVER.import(input));
