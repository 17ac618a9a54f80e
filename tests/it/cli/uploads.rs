//! A command-line import reads the same files with a server as without one.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use querent_tests::ServerProcess;

use super::WorkFolder;

impl WorkFolder {
    /// Writes a file below the working folder, with its folders.
    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_server_gets_the_files_that_are_read_without_one() {
    let work = WorkFolder::new();
    work.put("trips/1.csv", "a\n1\n");
    work.put("trips/deep/2.csv", "a\n2\n");
    work.put("trips/empty.csv", "");
    // What other programs leave beside the data.
    work.put("trips/.ipynb_checkpoints/1-checkpoint.csv", "a\n10\n");
    work.put("trips/_temporary/3.csv", "a\n20\n");
    work.put("trips/.4.csv", "a\n30\n");
    work.put("trips/_delta_log/0.json", "{\"add\": {}}\n");
    work.put("days/day=1/_part.csv", "a\n1\n");
    work.put("days/day=2/part.csv", "a\n2\n");
    work.put("notes.txt", "{\"a\": 5}\n{\"a\": 6}\n");
    let server = ServerProcess::start(&[]);
    for (table, source, sum) in [
        ("folder", "trips", "3"),
        ("globbed", "trips/*.csv", "1"),
        ("folders", "trips/d*", "2"),
        ("named", "days/*/_part.csv", "1"),
        ("parts", "days/*/*.csv", "3"),
        ("days", "days", "2"),
        ("told", "notes.txt", "11"),
    ] {
        let sql = format!("SELECT sum(a) AS s FROM {table}");
        for place in [&["--data", "lake"][..], &["--server", &server.url]] {
            work.run(&[&["import"][..], place, &["--table", table, source]].concat()).succeeded();
            let summed = work.run(&[&["sql", "--output", "csv"][..], place, &[sql.as_str()]].concat()).succeeded();
            assert_eq!(summed, format!("s\n{sum}\n"), "{source} {place:?}");
        }
    }
    for place in [&["--data", "lake"][..], &["--server", &server.url]] {
        let said = work.run(&[&["import"][..], place, &["trips/_*"]].concat());
        assert!(said.failed(1).contains("[bad_data]"), "{place:?}");
        let said = work.run(&[&["import"][..], place, &["trips/empty.csv"]].concat());
        assert!(said.failed(1).contains("[no_files]"), "{place:?}");
    }
}

/// Files of one table share one compression, through a server as without one.
#[test]
fn files_of_a_folder_are_compressed_alike() {
    let work = WorkFolder::new();
    work.put("mixed/1.csv", "a\n1\n");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"a\n2\n").unwrap();
    fs::write(work.path("mixed/2.csv.gz"), packed.finish().unwrap()).unwrap();
    let server = ServerProcess::start(&[]);
    for place in [&["--data", "lake"][..], &["--server", &server.url]] {
        let said = work.run(&[&["import"][..], place, &["mixed"]].concat()).failed(1);
        assert!(said.contains("[bad_data]") && said.contains("share one compression"), "{place:?}: {said}");
        // As the message says.
        work.run(&[&["import"][..], place, &["--table", "mixed", "mixed/*.csv"]].concat()).succeeded();
        work.run(&[&["import"][..], place, &["--append", "--table", "mixed", "mixed/*.csv.gz"]].concat()).succeeded();
        let sql = "SELECT sum(a) AS s FROM mixed";
        let summed = work.run(&[&["sql", "--output", "csv"][..], place, &[sql]].concat()).succeeded();
        assert_eq!(summed, "s\n3\n", "{place:?}");
    }
}
