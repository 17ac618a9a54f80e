//! Disks that are full or read-only, torn files and connections that are cut: `tests/faults/io_faults.py`.

use querent_tests::{Python, package_folder, querent_binary, run_client};

#[tokio::test]
async fn failing_disks_and_networks_lose_nothing_that_was_acknowledged() {
    let binary = tokio::task::spawn_blocking(querent_binary).await.unwrap();
    let mut faults = Python::command([package_folder().join("faults/io_faults.py")]);
    faults.env("QUERENT_BINARY", binary);
    let [told, _] = run_client(faults).await;
    println!("{told}");
    assert!(told.contains("requests cut") && told.trim_end().ends_with(" 0 faults"), "{told}");
}
